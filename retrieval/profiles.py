"""Retrieval profiles as operators use them: store, list, apply, roll back; and which one a query follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import Conflict, InvalidInput, NotFound
from core.ids import new_id
from core.models import CollectionRow, ProfileUseRow, RetrievalProfileRow, TenantRow
from core.settings import RetrievalSettings
from core.types import Role, Scope
from retrieval.profile import BUILT_IN, Profile, ProfileInForce, built_in, parse_profile

_MAX_FIGURES = 60  # names at the top of what a tune reports


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """One version of a profile.

    Attributes:
        collection_id: None for the whole tenant.
        figures: what `geo tune` measured; `held_out` and `base` decide whether it may be applied.
        in_force: whether queries of its target follow it now.
    """

    id: str
    version: int
    tenant_id: str
    collection_id: str | None
    body: Mapping[str, Any]
    figures: Mapping[str, Any]
    in_force: bool
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ProfileUse:
    """What is in force for a target after a change; `id` is `built-in` when nothing of its own is."""

    target: str
    id: str
    version: int
    action: str
    forced: bool
    applied_by: str
    applied_at: datetime


def add_profile(
    session: Session,
    scope: Scope,
    *,
    body: Mapping[str, Any],
    figures: Mapping[str, Any] | None = None,
    collection: str | None = None,
) -> StoredProfile:
    """Store the next version for a collection, or for the caller's tenant; nothing changes for queries yet.

    Args:
        session: a write session.
        scope: an operator's.
        body: see `Profile`.
        figures: what a tune measured.
        collection: id, or a name in the caller's tenant; None for the tenant.

    Raises:
        InvalidInput: a field of the body is unknown, missing or out of bounds, or the figures cannot be read.
        NotFound: no such collection.
    """
    profile = parse_profile(body)
    if len(figures or {}) > _MAX_FIGURES:
        raise InvalidInput(f"figures has {len(figures or {})} names; at most {_MAX_FIGURES} are kept.")
    _check_held_out((figures or {}).get("held_out"))
    tenant_id, collection_id = _target(session, scope, collection)
    target = _held(session, tenant_id, collection_id)
    newest = session.scalar(
        select(func.max(RetrievalProfileRow.version)).where(RetrievalProfileRow.target == target)
    )
    row = RetrievalProfileRow(
        id=new_id("rpf"),
        tenant_id=tenant_id,
        collection_id=collection_id,
        target=target,
        version=(newest or 0) + 1,
        body=profile.model_dump(mode="json"),
        figures=dict(figures or {}),
        created_by=scope.principal,
        created_at=utcnow(),
    )
    session.add(row)
    session.flush()
    return _stored(row, None)


def list_profiles(session: Session, scope: Scope, *, limit: int = 50) -> list[StoredProfile]:
    """The newest profiles that this scope may see, newest first."""
    p = RetrievalProfileRow
    wanted = select(p).order_by(p.id.desc()).limit(limit)
    if scope.may is not Role.OPERATOR:
        wanted = wanted.where(p.tenant_id == scope.tenant_id)
    if scope.collection_ids is not None:
        wanted = wanted.where(p.collection_id.in_(scope.collection_ids))
    rows = session.scalars(wanted).all()
    uses = _newest_uses(session, [row.target for row in rows])
    return [_stored(row, uses.get(row.target)) for row in rows]


def get_profile(session: Session, scope: Scope, *, profile_id: str) -> StoredProfile:
    """One profile. Raises `NotFound`."""
    row = _row(session, scope, profile_id)
    return _stored(row, _newest_uses(session, [row.target]).get(row.target))


def apply_profile(session: Session, scope: Scope, *, profile_id: str, force: bool = False) -> ProfileUse:
    """Let the queries of the profile's target follow it from now on.

    Args:
        session: a write session.
        scope: an operator's.
        profile_id: a stored one.
        force: although its held-out result is worse, or was compared with another than the present one.

    Raises:
        NotFound: no such profile.
        Conflict: not forced, and its figures speak against it.
    """
    row = _row(session, scope, profile_id)
    _held(session, row.tenant_id, row.collection_id)
    uses = _newest_uses(session, [row.target, row.tenant_id])
    present = uses.get(row.target)
    why = None if force else _against(row.figures, _in_force_id(present, uses.get(row.tenant_id)))
    if why is not None:
        raise Conflict(f"{why} Use force to apply it all the same.", profile_id=profile_id)
    return _use(session, scope, row.target, row, present.id if present else None, "apply", forced=force)


def roll_back_profile(session: Session, scope: Scope, *, collection: str | None = None) -> ProfileUse:
    """Return to what was in force before the last `apply`; again, to what was before that.

    Raises:
        NotFound: no such collection.
        Conflict: nothing was applied there.
    """
    tenant_id, collection_id = _target(session, scope, collection)
    target = _held(session, tenant_id, collection_id)
    present = _newest_uses(session, [target]).get(target)
    if present is None or (present.profile_id is None and present.before is None):
        raise Conflict("No profile is applied there, so there is nothing to roll back.", target=target)
    earlier = session.get(ProfileUseRow, present.before) if present.before is not None else None
    row = session.get(RetrievalProfileRow, earlier.profile_id) if earlier and earlier.profile_id else None
    return _use(session, scope, target, row, earlier.before if earlier else None, "rollback")


def profile_of(
    session: Session, tenant_id: str, collection_ids: Sequence[str], settings: RetrievalSettings
) -> ProfileInForce:
    """The profile that a query of these collections follows, read anew for each.

    A collection's own comes before its tenant's, and that before the built-in one. Collections that differ
    are ranked together by their tenant's: one ranking has one scale.
    """
    uses = _newest_uses(session, [*collection_ids, tenant_id])
    own = {uses[c].profile_id if c in uses else None for c in collection_ids}
    wanted = own.pop() if len(own) == 1 else None
    if wanted is None and tenant_id in uses:
        wanted = uses[tenant_id].profile_id
    row = session.get(RetrievalProfileRow, wanted) if wanted is not None else None
    if row is None or row.tenant_id != tenant_id:
        return ProfileInForce(built_in(settings))
    return ProfileInForce(Profile.model_validate(row.body), row.id, row.version)


def _against(figures: Mapping[str, Any], present: str) -> str | None:
    """Why a profile should not be applied, by what a tune measured; None when nothing speaks against it."""
    held_out = figures.get("held_out") or {}
    difference = held_out.get("difference")
    if difference is None:
        return None
    if difference < 0:
        return f"On the held-out questions it is worse than {figures.get('base')} ({difference:+.4f})."
    if figures.get("base") not in (None, present):
        return f"It was compared with {figures['base']}, and {present} is in force now; tune again."
    return None


def _check_held_out(held_out: Any) -> None:
    """`_against` reads it at every apply, so what it could not read is not stored."""
    difference = held_out.get("difference") if isinstance(held_out, Mapping) else None
    if not isinstance(held_out, Mapping | None) or not isinstance(difference, int | float | None):
        raise InvalidInput("figures.held_out is an object and its difference a number; geo tune writes both.")


def _target(session: Session, scope: Scope, collection: str | None) -> tuple[str, str | None]:
    if collection is None:
        if scope.collection_ids is not None:
            raise NotFound("This key sees some collections of its tenant only; name one of them.")
        return scope.tenant_id, None
    c = CollectionRow
    mine = (c.tenant_id == scope.tenant_id) & (c.name == collection)
    row = session.scalar(select(c).where(c.deleted_at.is_(None), (c.id == collection) | mine))
    if row is None or not _may(scope, row.tenant_id, row.id):
        raise NotFound("No such collection.", collection=collection)
    return row.tenant_id, row.id


def _held(session: Session, tenant_id: str, collection_id: str | None) -> str:
    """The target's id. Its row is locked, so that the next change of it sees this one's version and use.

    Rows that only refer to it, such as new documents, wait for nothing.
    """
    table, target = (TenantRow, tenant_id) if collection_id is None else (CollectionRow, collection_id)
    session.execute(select(table.id).where(table.id == target).with_for_update(key_share=True))
    return target


def _may(scope: Scope, tenant_id: str, collection_id: str | None) -> bool:
    if scope.may is not Role.OPERATOR and tenant_id != scope.tenant_id:
        return False
    return scope.collection_ids is None or (
        collection_id is not None and scope.allows_collection(collection_id)
    )


def _row(session: Session, scope: Scope, profile_id: str) -> RetrievalProfileRow:
    row = session.get(RetrievalProfileRow, profile_id)
    if row is None or not _may(scope, row.tenant_id, row.collection_id):
        raise NotFound("No such retrieval profile.", profile_id=profile_id)
    return row


def _newest_uses(session: Session, targets: Sequence[str]) -> dict[str, ProfileUseRow]:
    u = ProfileUseRow
    newest = select(func.max(u.id)).where(u.target.in_(sorted(set(targets)))).group_by(u.target)
    return {row.target: row for row in session.scalars(select(u).where(u.id.in_(newest)))}


def _use(
    session: Session,
    scope: Scope,
    target: str,
    row: RetrievalProfileRow | None,
    before: int | None,
    action: str,
    *,
    forced: bool = False,
) -> ProfileUse:
    use = ProfileUseRow(
        target=target,
        profile_id=row.id if row else None,
        before=before,
        action=action,
        forced=forced,
        applied_by=scope.principal,
        applied_at=utcnow(),
    )
    session.add(use)
    session.flush()
    return ProfileUse(
        target,
        row.id if row else BUILT_IN,
        row.version if row else 0,
        action,
        forced,
        use.applied_by,
        use.applied_at,
    )


def _in_force_id(*uses: ProfileUseRow | None) -> str:
    """Of the first that names a profile: a target's own use, then its tenant's."""
    return next((use.profile_id for use in uses if use is not None and use.profile_id), BUILT_IN)


def _stored(row: RetrievalProfileRow, use: ProfileUseRow | None) -> StoredProfile:
    return StoredProfile(
        row.id,
        row.version,
        row.tenant_id,
        row.collection_id,
        dict(row.body),
        dict(row.figures),
        use is not None and use.profile_id == row.id,
        row.created_by,
        row.created_at,
    )
