"""what a tier takes in memory; its search effort stands in the manifest"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("tiers", "effort")
    op.add_column("tiers", sa.Column("ram_bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("tiers", "ram_bytes")
    op.add_column("tiers", sa.Column("effort", sa.Double(), nullable=False, server_default=sa.text("1.0")))
