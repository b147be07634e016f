"""Who asks: tenants, their keys, and what was done."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from core.db import utcnow
from core.models.base import Base, BigId, created


class TenantRow(Base):
    __tablename__ = "tenants"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    created_at: Mapped[datetime] = created()


class ApiKeyRow(Base):
    """A hashed key. `collection_ids` None means every collection of the tenant."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(16))
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    collection_ids: Mapped[list[str] | None]
    created_at: Mapped[datetime] = created()
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class AuditRow(Base):
    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    at: Mapped[datetime] = mapped_column(default=utcnow, index=True)
    tenant_id: Mapped[str] = mapped_column(String(40), index=True)
    principal: Mapped[str] = mapped_column(String(40))
    action: Mapped[str] = mapped_column(String(60))
    subject: Mapped[str] = mapped_column(String(80))
    request_id: Mapped[str] = mapped_column(String(64), default="-")
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)
