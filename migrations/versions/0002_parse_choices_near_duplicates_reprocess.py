"""parse choices, properties, near-duplicates, reprocessing of collections"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Text
from sqlalchemy.dialects import postgresql

import core.db

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_EMPTY = sa.text("'{}'")


def _json() -> sa.types.TypeEngine:
    return sa.JSON().with_variant(postgresql.JSONB(astext_type=Text()), "postgresql")


def _of_version(table: str, columns: tuple[str, str] = ("document_id", "version")) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        list(columns),
        ["document_versions.document_id", "document_versions.version"],
        name=op.f(f"fk_{table}_{columns[0]}_{columns[1]}"),
        ondelete="CASCADE",
    )


def upgrade() -> None:
    # Added one by one: SQLite would copy the table for anything else, and its foreign keys would cascade.
    op.add_column("jobs", sa.Column("gives_way", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("collections", sa.Column("parse", _json(), nullable=False, server_default=_EMPTY))
    op.add_column("documents", sa.Column("parse", sa.String(length=400), nullable=False, server_default=""))
    for name in ("properties", "parse"):
        op.add_column("document_versions", sa.Column(name, _json(), nullable=False, server_default=_EMPTY))
    for name in ("parser_version", "recipe"):
        op.add_column(
            "document_versions", sa.Column(name, sa.String(length=40), nullable=False, server_default="")
        )

    op.create_table(
        "signatures",
        sa.Column("document_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("values", sa.LargeBinary(), nullable=False),
        _of_version("signatures"),
        sa.PrimaryKeyConstraint("document_id", "version", name=op.f("pk_signatures")),
    )
    op.create_table(
        "signature_bands",
        sa.Column("document_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.Column("collection_id", sa.String(length=40), nullable=False),
        _of_version("signature_bands"),
        sa.PrimaryKeyConstraint("document_id", "version", "key", name=op.f("pk_signature_bands")),
    )
    op.create_index("ix_signature_bands_key", "signature_bands", ["collection_id", "key"])
    op.create_table(
        "near_duplicates",
        sa.Column("document_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("other_id", sa.String(length=40), nullable=False),
        sa.Column("other_version", sa.Integer(), nullable=False),
        sa.Column("similarity", sa.Double(), nullable=False),
        _of_version("near_duplicates"),
        _of_version("near_duplicates", ("other_id", "other_version")),
        sa.PrimaryKeyConstraint(
            "document_id", "version", "other_id", "other_version", name=op.f("pk_near_duplicates")
        ),
    )
    op.create_index("ix_near_duplicates_other", "near_duplicates", ["other_id", "other_version"])
    op.create_table(
        "reprocesses",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("collection_id", sa.String(length=40), nullable=False),
        sa.Column("open_key", sa.String(length=40), nullable=True),
        sa.Column("only", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("cursor", sa.String(length=40), nullable=False),
        sa.Column("until", sa.String(length=40), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("queued", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", core.db.UtcDateTime(timezone=True), nullable=False),
        sa.Column("finished_at", core.db.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name=op.f("fk_reprocesses_collection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reprocesses")),
        sa.UniqueConstraint("open_key", name=op.f("uq_reprocesses_open_key")),
    )
    op.create_index(op.f("ix_reprocesses_collection_id"), "reprocesses", ["collection_id"])
    op.create_index(op.f("ix_reprocesses_tenant_id"), "reprocesses", ["tenant_id"])


def downgrade() -> None:
    for table in ("reprocesses", "near_duplicates", "signature_bands", "signatures"):
        op.drop_table(table)
    for table, columns in (
        ("document_versions", ("recipe", "parser_version", "parse", "properties")),
        ("documents", ("parse",)),
        ("collections", ("parse",)),
        ("jobs", ("gives_way",)),
    ):
        for name in columns:
            op.drop_column(table, name)
