"""what is searched for beside a question"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Text
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = sa.JSON().with_variant(postgresql.JSONB(astext_type=Text()), "postgresql")
    op.add_column("queries", sa.Column("variants", json, nullable=False, server_default="[]"))


def downgrade() -> None:
    op.drop_column("queries", "variants")
