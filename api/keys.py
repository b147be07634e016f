"""API keys and tenants: made, found by their hash, listed, revoked; and the first key of an installation.

A key carries 40 random characters (about 240 bits), so one SHA-256 at rest is enough: there is nothing
to guess and no reason to be slow.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.db import Database, plain_rows, utcnow
from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from core.ids import new_id
from core.models import ApiKeyRow, CollectionRow, TenantRow
from core.settings import Settings, get_settings
from core.types import Role, Scope

log = logging.getLogger(__name__)

PREFIX = "geo_"
MIN_LENGTH = 16  # shorter strings are refused before any lookup
DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as shown to its administrators; the secret is not among it."""

    id: str
    tenant: str
    name: str
    role: Role
    collection_ids: tuple[str, ...] | None
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


def hash_key(plaintext: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(plaintext.encode()).hexdigest()


# Every request runs it, so it is made once and its row is not mapped.
_LIVE_KEY = select(
    ApiKeyRow.id, ApiKeyRow.tenant_id, ApiKeyRow.role, ApiKeyRow.key_hash, ApiKeyRow.collection_ids
).where(ApiKeyRow.key_hash == bindparam("hashed"), ApiKeyRow.revoked_at.is_(None))


def find_scope(session: Session, plaintext: str) -> Scope | None:
    """The scope of a valid, unrevoked key; None for anything else."""
    if len(plaintext) < MIN_LENGTH:
        return None
    hashed = hash_key(plaintext)
    for row in plain_rows(session, _LIVE_KEY, {"hashed": hashed}):
        if hmac.compare_digest(row.key_hash, hashed):
            readable = None if row.collection_ids is None else tuple(row.collection_ids)
            return Scope(row.tenant_id, readable, row.id, Role(row.role))
    return None


def create(
    session: Session,
    scope: Scope,
    *,
    name: str,
    role: Role,
    collections: Sequence[str] | None = None,
    tenant: str | None = None,
) -> tuple[ApiKey, str]:
    """Make a key; the second value is its plaintext, which nobody can read again.

    Args:
        session: a write session.
        scope: who makes it.
        name: for people to tell keys apart.
        role: not above the caller's own.
        collections: collection ids or names that the key is limited to; None: all of its tenant.
        tenant: name of another tenant, which is born with this key if it is new (operators only).

    Raises:
        Forbidden: a role above the caller's own, another tenant, or more collections than the caller's.
        NotFound: a collection that the caller cannot see.
    """
    if role.rank > scope.may.rank:
        raise Forbidden(f"A key of role {scope.may.value} cannot make one of role {role.value}.")
    tenant_row = _target_tenant(session, scope, tenant)
    chosen = None if collections is None else _resolve_collections(session, scope, tenant_row.id, collections)
    if chosen is None and scope.collection_ids is not None:
        raise Forbidden("A key that is limited to collections can only make keys limited to some of them.")
    if role is Role.OPERATOR and chosen is not None:
        raise InvalidInput(
            "An operator key acts on the whole installation; it cannot be limited to collections."
        )
    plaintext = PREFIX + secrets.token_urlsafe(30)  # 30 bytes are 40 characters
    row = _insert(session, tenant_row.id, name, role, chosen, plaintext)
    return _to_value(row, tenant_row.name), plaintext


def list_keys(
    session: Session, scope: Scope, *, tenant: str | None = None, after: str = "", limit: int = 100
) -> list[ApiKey]:
    """Keys in order of creation: of the caller's tenant, or of every tenant for an operator."""
    query = select(ApiKeyRow, TenantRow.name).join(TenantRow, TenantRow.id == ApiKeyRow.tenant_id)
    if scope.may is not Role.OPERATOR:
        query = query.where(ApiKeyRow.tenant_id == scope.tenant_id)
    if tenant is not None:
        query = query.where(TenantRow.name == tenant)
    rows = session.execute(query.where(ApiKeyRow.id > after).order_by(ApiKeyRow.id).limit(limit)).all()
    return [_to_value(row, name) for row, name in rows]


def revoke(session: Session, scope: Scope, key_id: str) -> ApiKey:
    """End a key at once; doing so again changes nothing.

    Raises:
        NotFound: unknown, or of another tenant (unless the caller is an operator).
        Forbidden: the key is stronger than the caller's, or reaches further.
        Conflict: it is the last operator key; nobody could open the global doors any more.
    """
    found = session.execute(
        select(ApiKeyRow, TenantRow.name)
        .join(TenantRow, TenantRow.id == ApiKeyRow.tenant_id)
        .where(ApiKeyRow.id == key_id)
    ).one_or_none()
    if found is None or (scope.may is not Role.OPERATOR and found[0].tenant_id != scope.tenant_id):
        raise NotFound("There is no such key.", key_id=key_id)
    row, tenant = found
    if Role(row.role).rank > scope.may.rank:
        raise Forbidden(
            f"A key of role {scope.may.value} cannot revoke one of role {row.role}.", key_id=key_id
        )
    narrower = row.collection_ids is not None and all(map(scope.allows_collection, row.collection_ids))
    if scope.collection_ids is not None and not narrower:
        raise Forbidden("A key that is limited to collections cannot revoke one that reaches further.")
    if row.revoked_at is None:
        if row.role == Role.OPERATOR.value and _live_operators(session) == 1:
            raise Conflict("This is the last operator key; make another one first.", key_id=key_id)
        row.revoked_at = utcnow()
        session.flush()
    return _to_value(row, tenant)


def mark_used(db: Database, used: Mapping[str, datetime]) -> None:
    """Store when keys were last used, many at a time."""
    if not used:
        return
    with db.write() as session:
        for key_id, at in used.items():
            session.execute(update(ApiKeyRow).where(ApiKeyRow.id == key_id).values(last_used_at=at))


def ensure_bootstrap(db: Database, settings: Settings | None = None) -> str | None:
    """Make the tenant `default` and the first operator key, once in the life of a database.

    Returns:
        The plaintext of a key that was made just now and is stored nowhere; None when an operator key
        exists already or `GEO_AUTH__BOOTSTRAP_KEY` gave it.
    """
    given = (settings or get_settings()).auth.bootstrap_key
    plaintext = given.get_secret_value().strip() if given else PREFIX + secrets.token_urlsafe(30)
    try:
        with db.write() as session:
            if _live_operators(session) > 0:
                if given and find_scope(session, plaintext) is None:
                    log.warning("bootstrap_key_ignored", extra={"why": "an operator key exists already"})
                return None
            tenant = _tenant_named(session, DEFAULT_TENANT)
            _insert(session, tenant.id, "first operator key", Role.OPERATOR, None, plaintext)
    except IntegrityError:  # another process was faster, on PostgreSQL
        return None
    return None if given else plaintext


def _target_tenant(session: Session, scope: Scope, name: str | None) -> TenantRow:
    own = session.get_one(TenantRow, scope.tenant_id)
    if name is None or name == own.name:
        return own
    if scope.may is not Role.OPERATOR:
        raise Forbidden("Only an operator makes keys for another tenant.")
    return _tenant_named(session, name)


def _tenant_named(session: Session, name: str) -> TenantRow:
    row = session.scalar(select(TenantRow).where(TenantRow.name == name))
    if row is None:
        row = TenantRow(id=new_id("ten"), name=name)
        session.add(row)
        session.flush()
    return row


def _resolve_collections(
    session: Session, scope: Scope, tenant_id: str, wanted: Sequence[str]
) -> tuple[str, ...]:
    chosen: list[str] = []
    for one in wanted:
        found = session.scalar(
            select(CollectionRow.id).where(
                CollectionRow.tenant_id == tenant_id, (CollectionRow.id == one) | (CollectionRow.name == one)
            )
        )
        foreign = tenant_id == scope.tenant_id and found is not None and not scope.allows_collection(found)
        if found is None or foreign:
            raise NotFound("There is no such collection.", collection=one)
        chosen.append(found)
    return tuple(dict.fromkeys(chosen))


def _insert(
    session: Session, tenant_id: str, name: str, role: Role, chosen: tuple[str, ...] | None, plaintext: str
) -> ApiKeyRow:
    row = ApiKeyRow(
        id=new_id("key"),
        tenant_id=tenant_id,
        name=name,
        role=role.value,
        key_hash=hash_key(plaintext),
        collection_ids=None if chosen is None else list(chosen),
    )
    session.add(row)
    session.flush()
    return row


def _live_operators(session: Session) -> int:
    return (
        session.scalar(
            select(func.count())
            .select_from(ApiKeyRow)
            .where(ApiKeyRow.role == Role.OPERATOR.value, ApiKeyRow.revoked_at.is_(None))
        )
        or 0
    )


def _to_value(row: ApiKeyRow, tenant: str) -> ApiKey:
    chosen = None if row.collection_ids is None else tuple(row.collection_ids)
    return ApiKey(
        row.id, tenant, row.name, Role(row.role), chosen, row.created_at, row.revoked_at, row.last_used_at
    )
