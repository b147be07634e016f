"""Whether this installation can work: each check names what is wrong and what to do."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import redis
import redis.exceptions
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from core.db import Database
from core.errors import GeoError
from core.models import TierRow
from core.redis_client import get_redis
from core.settings import Settings
from core.types import Tier
from core.worker import WORKERS
from generation.service import engine_status


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold."""

    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TierState:
    """What a tier serves."""

    tier: str
    generation: int
    published_at: datetime | None
    refused: str | None


@dataclass(frozen=True, slots=True)
class WorkerState:
    """When a worker last took work; `alive` while that is recent."""

    alive: bool
    quiet_s: float | None


@dataclass(frozen=True, slots=True)
class EngineState:
    """The engine as last heard: `starting`, `ready`, `failed` or `unknown`, and why."""

    state: str
    detail: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """All checks together; `ready` when each is ok.

    A silent worker or a lost engine does not make the API unready: what they are asked waits in the
    database, and answers that quote need no engine.
    """

    ready: bool
    checks: dict[str, Check]
    workers: dict[str, WorkerState]
    tiers: list[TierState]
    engine: EngineState


def readiness(db: Database, settings: Settings) -> Readiness:
    """Look at the database, Redis and the disk; tell of workers and tiers."""
    checks = {
        "database": _checked(lambda: _database(db)),
        "redis": _checked(lambda: _redis(get_redis())),
        "disk": _checked(lambda: _disk(settings)),
    }
    tiers: list[TierState] = []
    engine = EngineState("unknown", "The database does not answer.")
    if checks["database"].ok:
        with db.read() as session:
            tiers = _tiers(session)
            told = engine_status(session)
        engine = EngineState(told.state, told.detail)
        checks["index"] = _index(tiers)
    workers = _workers(get_redis(), settings.worker.stall_after_s) if checks["redis"].ok else {}
    return Readiness(all(check.ok for check in checks.values()), checks, workers, tiers, engine)


def _checked(check: Callable[[], Check]) -> Check:
    try:
        return check()
    except (GeoError, redis.exceptions.RedisError, OSError) as error:
        return Check(False, f"{type(error).__name__}; see the log.")


def _database(db: Database) -> Check:
    with db.read() as session:
        session.execute(text("SELECT 1"))
    return Check(True)


def _redis(client: redis.Redis) -> Check:
    start = time.perf_counter()
    client.ping()
    return Check(True, f"{(time.perf_counter() - start) * 1000:.1f} ms")


def _workers(client: redis.Redis, stall_after_s: float) -> dict[str, WorkerState]:
    from core.canary import last_seen  # its tasks bind to the settings of the moment it is imported

    states: dict[str, WorkerState] = {}
    for name in WORKERS:
        seen = last_seen(client, name)
        quiet_s = None if seen is None else round(max(0.0, time.time() - seen), 1)
        states[name] = WorkerState(quiet_s is not None and quiet_s <= stall_after_s, quiet_s)
    return states


def _disk(settings: Settings) -> Check:
    folder = settings.root
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < settings.min_free_bytes:
        needed = settings.min_free_bytes >> 20
        return Check(
            False, f"{free >> 20} MiB free, {needed} MiB needed; uploads get 507 until space is freed."
        )
    return Check(True, f"{free >> 20} MiB free")


def _index(tiers: list[TierState]) -> Check:
    """Not ready without the hot tier, which holds what is new and used; any other part is only named."""
    damaged = [t for t in tiers if t.refused]
    told = "; ".join(f"{t.tier}: {t.refused}" for t in damaged)
    return Check(
        all(t.tier != Tier.HOT.value for t in damaged), f"refused until rebuilt: {told}" if damaged else ""
    )


def _tiers(session: Session) -> list[TierState]:
    """Every part of the index that has a row; all of them serve the generation of the hot one's."""
    rows = {row.tier: row for row in session.scalars(select(TierRow).order_by(TierRow.tier))}
    served = rows.get(Tier.HOT.value)
    if served is None:
        return []
    return [TierState(row.tier, served.generation, served.published_at, row.refused) for row in rows.values()]
