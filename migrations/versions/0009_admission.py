"""what a query needs of the engine, and until when it has to be answered"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("queries", sa.Column("kv_tokens", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("queries", sa.Column("deadline_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("queries", "deadline_at")
    op.drop_column("queries", "kv_tokens")
