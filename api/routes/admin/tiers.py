"""`/v1/admin/tiers` and `/v1/admin/builds`."""

from __future__ import annotations

from fastapi import APIRouter

from api import audit
from api.deps import Db, Limit, Operator
from api.schemas.common import Listed, PathId
from api.schemas.tiers import BuildOut, RebuildBody, RollbackBody
from retrieval import service as retrieval
from retrieval.service import TierStatus

router = APIRouter(prefix="/v1/admin", tags=["admin"])


@router.get("/tiers")
def list_tiers(_scope: Operator, db: Db) -> Listed[TierStatus]:
    """What each tier and the lexical index serve: segments, bytes, vectors, recall, why one is refused."""
    with db.read() as session:
        return Listed(items=retrieval.tier_status(session), next_cursor=None)


@router.post("/tiers/{tier}/rebuild", status_code=202)
def rebuild_tier(tier: PathId, scope: Operator, db: Db, body: RebuildBody | None = None) -> BuildOut:
    """Build the next generation of a tier, of `lexical` or of `all`; 409 while a build of it is open."""
    wanted = body or RebuildBody()
    with db.write() as session:
        build = retrieval.request_rebuild(
            session, scope, tier=tier, mode=wanted.mode, model=wanted.model, accept_moved=wanted.accept_moved
        )
        audit.record(
            session, scope, "tier.rebuild", build.id, tier=build.tier, mode=build.mode, model=build.model
        )
    return BuildOut.of(build)


@router.post("/tiers/{tier}/rollback", status_code=202)
def roll_back_tier(tier: PathId, scope: Operator, db: Db, body: RollbackBody | None = None) -> BuildOut:
    """Serve an earlier generation again, with everything that came since."""
    generation = body.generation if body else None
    with db.write() as session:
        build = retrieval.request_rollback(session, scope, tier=tier, generation=generation)
        audit.record(session, scope, "tier.rollback", build.id, tier=build.tier, generation=generation)
    return BuildOut.of(build)


@router.get("/builds")
def list_builds(scope: Operator, db: Db, limit: Limit = 50) -> Listed[BuildOut]:
    """The newest builds."""
    with db.read() as session:
        found = retrieval.list_builds(session, scope, limit=limit)
    return Listed(items=[BuildOut.of(b) for b in found], next_cursor=None)


@router.get("/builds/{build_id}")
def get_build(build_id: PathId, scope: Operator, db: Db) -> BuildOut:
    """State and progress of one build."""
    with db.read() as session:
        return BuildOut.of(retrieval.get_build(session, scope, build_id=build_id))


@router.post("/builds/{build_id}/pause", status_code=202)
def pause_build(build_id: PathId, scope: Operator, db: Db) -> BuildOut:
    """Stop a build for now; it stays open and keeps what it has made."""
    with db.write() as session:
        build = retrieval.pause_build(session, scope, build_id=build_id)
        audit.record(session, scope, "build.pause", build_id)
    return BuildOut.of(build)


@router.post("/builds/{build_id}/resume", status_code=202)
def resume_build(build_id: PathId, scope: Operator, db: Db) -> BuildOut:
    """Let a paused build go on where it stopped."""
    with db.write() as session:
        build = retrieval.resume_build(session, scope, build_id=build_id)
        audit.record(session, scope, "build.resume", build_id)
    return BuildOut.of(build)


@router.post("/builds/{build_id}/cancel", status_code=202)
def cancel_build(build_id: PathId, scope: Operator, db: Db) -> BuildOut:
    """Stop a build; what is served does not change."""
    with db.write() as session:
        build = retrieval.cancel_build(session, scope, build_id=build_id)
        audit.record(session, scope, "build.cancel", build_id)
    return BuildOut.of(build)
