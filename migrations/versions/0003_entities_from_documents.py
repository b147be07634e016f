"""what mentions need so that documents can bring entities of their own"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("mentions", sa.Column("key", sa.String(length=300), nullable=False, server_default=""))
    op.add_column("mentions", sa.Column("affiliations", sa.Text(), nullable=False, server_default=""))
    op.add_column("mentions", sa.Column("growing", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(op.f("ix_mentions_key"), "mentions", ["tenant_id", "key"])
    op.create_index(op.f("ix_entities_provenance"), "entities", ["tenant_id", "provenance"])


def downgrade() -> None:
    op.drop_index(op.f("ix_entities_provenance"), "entities")
    op.drop_index(op.f("ix_mentions_key"), "mentions")
    for name in ("growing", "affiliations", "key"):
        op.drop_column("mentions", name)
