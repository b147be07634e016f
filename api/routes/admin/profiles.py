"""`/v1/admin/retrieval-profiles`: the numbers of the ranking, versioned; apply one, or go back."""

from __future__ import annotations

from fastapi import APIRouter

from api import audit
from api.deps import Db, Limit, Operator
from api.schemas.common import Listed, PathId
from api.schemas.profiles import ApplyBody, ProfileBody, ProfileOut, RollbackProfileBody
from retrieval import service as retrieval
from retrieval.service import ProfileUse

router = APIRouter(prefix="/v1/admin/retrieval-profiles", tags=["admin"])


@router.get("")
def list_profiles(scope: Operator, db: Db, limit: Limit = 50) -> Listed[ProfileOut]:
    """The newest profiles, newest first, and which ones are in force."""
    with db.read() as session:
        found = retrieval.list_profiles(session, scope, limit=limit)
    return Listed(items=[ProfileOut.of(p) for p in found], next_cursor=None)


@router.post("", status_code=201)
def add_profile(body: ProfileBody, scope: Operator, db: Db) -> ProfileOut:
    """Store the next version for a collection or the tenant; queries follow it once it is applied."""
    with db.write() as session:
        stored = retrieval.add_profile(
            session, scope, body=body.profile, figures=body.figures, collection=body.collection
        )
        audit.record(session, scope, "profile.add", stored.id, version=stored.version)
    return ProfileOut.of(stored)


@router.get("/{profile_id}")
def get_profile(profile_id: PathId, scope: Operator, db: Db) -> ProfileOut:
    """One profile with what was measured of it."""
    with db.read() as session:
        return ProfileOut.of(retrieval.get_profile(session, scope, profile_id=profile_id))


@router.post("/{profile_id}/apply")
def apply_profile(profile_id: PathId, scope: Operator, db: Db, body: ApplyBody | None = None) -> ProfileUse:
    """Let queries follow it from now on; 409 when its held-out result is worse than the present one's."""
    force = body is not None and body.force
    with db.write() as session:
        use = retrieval.apply_profile(session, scope, profile_id=profile_id, force=force)
        audit.record(session, scope, "profile.apply", profile_id, target=use.target, forced=force)
    return use


@router.post("/rollback")
def roll_back_profile(scope: Operator, db: Db, body: RollbackProfileBody | None = None) -> ProfileUse:
    """Return to what was in force before the last change; 409 when nothing is applied."""
    with db.write() as session:
        use = retrieval.roll_back_profile(session, scope, collection=body.collection if body else None)
        audit.record(session, scope, "profile.rollback", use.id, target=use.target)
    return use
