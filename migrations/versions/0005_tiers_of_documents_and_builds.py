"""which tier a document is in, moves in the index log, builds that pause and change the encoder"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("tier", sa.String(length=8), nullable=False, server_default="hot"))
    op.add_column("documents", sa.Column("wanted_tier", sa.String(length=8), nullable=True))
    op.create_index(op.f("ix_documents_wanted_tier"), "documents", ["wanted_tier"])
    op.add_column("index_log", sa.Column("tier", sa.String(length=8), nullable=False, server_default="hot"))
    for name, kind, default in (
        ("model", sa.String(length=120), ""),
        (
            "options",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            sa.text("'{}'"),
        ),
        ("wanted", sa.String(length=16), ""),
        ("seq", sa.BigInteger(), "0"),
    ):
        op.add_column("builds", sa.Column(name, kind, nullable=False, server_default=default))


def downgrade() -> None:
    for name in ("seq", "wanted", "options", "model"):
        op.drop_column("builds", name)
    op.drop_column("index_log", "tier")
    op.drop_index(op.f("ix_documents_wanted_tier"), "documents")
    op.drop_column("documents", "wanted_tier")
    op.drop_column("documents", "tier")
