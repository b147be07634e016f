"""entities that documents bring, changed aliases, page breaks inside passages"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

import core.db

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("mentions", sa.Column("key", sa.String(length=300), nullable=False, server_default=""))
    op.add_column("mentions", sa.Column("affiliations", sa.Text(), nullable=False, server_default=""))
    op.add_column("mentions", sa.Column("growing", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column(
        "passages",
        sa.Column(
            "page_breaks",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
            server_default=sa.text("'[]'"),
        ),
    )
    op.add_column(
        "entity_aliases",
        sa.Column(
            "changed_at",
            core.db.UtcDateTime(timezone=True),
            nullable=False,
            server_default=sa.text("'1970-01-01 00:00:00'"),
        ),
    )
    op.create_index(op.f("ix_entity_aliases_changed"), "entity_aliases", ["tenant_id", "changed_at"])
    op.create_index(op.f("ix_mentions_key"), "mentions", ["tenant_id", "key"])
    op.create_index(op.f("ix_entities_provenance"), "entities", ["tenant_id", "provenance"])


def downgrade() -> None:
    op.drop_index(op.f("ix_entities_provenance"), "entities")
    op.drop_index(op.f("ix_mentions_key"), "mentions")
    op.drop_index(op.f("ix_entity_aliases_changed"), "entity_aliases")
    op.drop_column("entity_aliases", "changed_at")
    op.drop_column("passages", "page_breaks")
    for name in ("growing", "affiliations", "key"):
        op.drop_column("mentions", name)
