"""Bodies of the administrators' doors."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from api.audit import AuditEntry
from api.keys import ApiKey
from api.schemas.common import Body, Name
from core.types import Role


class NewKey(Body):
    """A key to be made."""

    name: Name
    role: Role = Role.READER
    collections: Annotated[list[Name] | None, Field(min_length=1, max_length=200)] = Field(
        None, description="ids or names that the key is limited to; null: every collection of the tenant"
    )
    tenant: Name | None = Field(None, description="another tenant, made if new (operators only)")


class KeyOut(BaseModel):
    """A key without its secret."""

    id: str
    tenant: str
    name: str
    role: Role
    collections: list[str] | None
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def of(cls, key: ApiKey, **more: Any) -> KeyOut:
        """From the service's value."""
        chosen = None if key.collection_ids is None else list(key.collection_ids)
        return cls(
            id=key.id,
            tenant=key.tenant,
            name=key.name,
            role=key.role,
            collections=chosen,
            created_at=key.created_at,
            revoked_at=key.revoked_at,
            last_used_at=key.last_used_at,
            **more,
        )


class KeyMade(KeyOut):
    """A new key with its secret."""

    key: str = Field(description="shown once; only its hash is stored")


class AuditOut(BaseModel):
    """One entry of the audit log."""

    id: int
    at: datetime
    tenant_id: str
    principal: str
    action: str
    subject: str
    request_id: str
    details: dict[str, Any]

    @classmethod
    def of(cls, entry: AuditEntry) -> AuditOut:
        """From the service's value."""
        return cls(
            id=entry.id,
            at=entry.at,
            tenant_id=entry.tenant_id,
            principal=entry.principal,
            action=entry.action,
            subject=entry.subject,
            request_id=entry.request_id,
            details=entry.details,
        )
