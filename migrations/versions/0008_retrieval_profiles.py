"""retrieval profiles"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from core.db import UtcDateTime

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "retrieval_profiles",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("collection_id", sa.String(length=40), nullable=True),
        sa.Column("target", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("body", _JSON, nullable=False),
        sa.Column("figures", _JSON, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_retrieval_profiles_tenant_id")),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name=op.f("fk_retrieval_profiles_collection_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_retrieval_profiles")),
        sa.UniqueConstraint("target", "version", name=op.f("uq_retrieval_profiles_target_version")),
    )
    op.create_index(op.f("ix_retrieval_profiles_tenant_id"), "retrieval_profiles", ["tenant_id"])
    op.create_index(op.f("ix_retrieval_profiles_collection_id"), "retrieval_profiles", ["collection_id"])
    op.create_table(
        "retrieval_profile_uses",
        sa.Column("id", _BIG, autoincrement=True, nullable=False),
        sa.Column("target", sa.String(length=40), nullable=False),
        sa.Column("profile_id", sa.String(length=40), nullable=True),
        sa.Column("before", _BIG, nullable=True),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("forced", sa.Boolean(), nullable=False),
        sa.Column("applied_by", sa.String(length=40), nullable=False),
        sa.Column("applied_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["profile_id"],
            ["retrieval_profiles.id"],
            name=op.f("fk_retrieval_profile_uses_profile_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_retrieval_profile_uses")),
    )
    op.create_index("ix_retrieval_profile_uses_target", "retrieval_profile_uses", ["target", "id"])


def downgrade() -> None:
    op.drop_table("retrieval_profile_uses")
    op.drop_table("retrieval_profiles")
