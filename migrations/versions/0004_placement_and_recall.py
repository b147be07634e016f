"""placement of documents in tiers, moves, recall of live questions"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

import core.db

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TIME = core.db.UtcDateTime(timezone=True)


def _json() -> sa.types.TypeEngine:
    return sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql")


def _number() -> sa.Column:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("id", kind, autoincrement=True, nullable=False)


def upgrade() -> None:
    _placement()
    _recall()
    op.add_column("tiers", sa.Column("effort", sa.Double(), nullable=False, server_default=sa.text("1.0")))
    op.create_index(op.f("ix_queries_finished"), "queries", ["finished_at"])


def _placement() -> None:
    op.create_table(
        "placement_policies",
        sa.Column("collection_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("body", _json(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name=op.f("fk_placement_policies_collection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "version", name=op.f("pk_placement_policies")),
    )
    op.create_table(
        "document_placements",
        sa.Column("document_id", sa.String(length=40), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("scored_at", _TIME, nullable=True),
        sa.Column("pinned", sa.String(length=8), nullable=True),
        sa.Column("pinned_by", sa.String(length=40), nullable=True),
        sa.Column("moved_at", _TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_document_placements_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_document_placements")),
    )
    op.create_table(
        "moves",
        _number(),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("collection_id", sa.String(length=40), nullable=False),
        sa.Column("document_id", sa.String(length=40), nullable=False),
        sa.Column("open_key", sa.String(length=40), nullable=True),
        sa.Column("from_tier", sa.String(length=8), nullable=False),
        sa.Column("to_tier", sa.String(length=8), nullable=False),
        sa.Column("reason", sa.String(length=16), nullable=False),
        sa.Column("facts", _json(), nullable=False),
        sa.Column("vectors", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("moved_by", sa.String(length=40), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("finished_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_moves")),
        sa.UniqueConstraint("open_key", name=op.f("uq_moves_open_key")),
    )
    op.create_index(op.f("ix_moves_collection_id"), "moves", ["collection_id"])
    op.create_index(op.f("ix_moves_document_id"), "moves", ["document_id"])
    op.create_index(op.f("ix_moves_status"), "moves", ["status", "id"])


def _recall() -> None:
    op.create_table(
        "question_vectors",
        sa.Column("query_id", sa.String(length=40), nullable=False),
        sa.Column("model", sa.String(length=120), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("measured_at", _TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_question_vectors_query_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("query_id", name=op.f("pk_question_vectors")),
    )
    op.create_index(op.f("ix_question_vectors_at"), "question_vectors", ["measured_at", "at"])
    op.create_table(
        "recall_samples",
        _number(),
        sa.Column("tier", sa.String(length=8), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("effort", sa.Double(), nullable=False),
        sa.Column("recall", sa.Double(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recall_samples")),
    )
    op.create_index(op.f("ix_recall_samples_tier"), "recall_samples", ["tier", "at"])
    op.create_table(
        "cursors",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_cursors")),
    )


def downgrade() -> None:
    op.drop_index(op.f("ix_queries_finished"), "queries")
    op.drop_column("tiers", "effort")
    for name in (
        "cursors", "recall_samples", "question_vectors", "moves", "document_placements",
        "placement_policies",
    ):  # fmt: skip
        op.drop_table(name)
