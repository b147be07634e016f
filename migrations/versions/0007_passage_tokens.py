"""token vectors of passages"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "passage_tokens",
        sa.Column(
            "passage_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
        ),
        sa.Column("model", sa.String(length=120), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["passage_id"],
            ["passages.id"],
            name=op.f("fk_passage_tokens_passage_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("passage_id", "model", name=op.f("pk_passage_tokens")),
    )


def downgrade() -> None:
    op.drop_table("passage_tokens")
