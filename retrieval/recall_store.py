"""Rows ↔ values of the recall monitor: sampled questions, their recall, and what operators see of it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from core.db import utcnow
from core.models import BuildRow, QueryRow, QuestionVectorRow, RecallSampleRow
from core.settings import get_settings
from core.types import BuildStatus, Scope, Tier

_KEPT_QUESTIONS = 1000  # the newest; a build's gate may draw on them
_HISTORY_ROWS = 20_000
_SERVING = (BuildStatus.PUBLISHED.value, BuildStatus.ROLLED_BACK.value)


@dataclass(frozen=True, slots=True)
class SampledQuestion:
    """A live question that waits to be run again; `vector` is fp16 little endian."""

    query_id: str
    tenant_id: str
    collection_ids: tuple[str, ...]
    filters: Mapping[str, Any]
    model: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """Recall@10 of one question in one tier: its share of the exact ten."""

    tier: str
    generation: int
    effort: float
    recall: float


@dataclass(frozen=True, slots=True)
class Window:
    """The newest samples of a tier as it is served now; `mean` is None while there are none."""

    mean: float | None
    count: int


@dataclass(frozen=True, slots=True)
class RecallPoint:
    """Samples of a stretch of time: mean and lowest recall."""

    at: datetime
    recall: float
    lowest: float
    samples: int


@dataclass(frozen=True, slots=True)
class TierRecall:
    """Recall of a tier.

    Attributes:
        mean: over the last `recall.window` samples, or None.
        effort: of the newest sample.
        points: oldest first.
    """

    tier: str
    mean: float | None
    samples: int
    effort: float
    points: tuple[RecallPoint, ...]


@dataclass(frozen=True, slots=True)
class RecallReport:
    """Recall of all tiers, and the floor they must keep."""

    floor: float
    sample_share: float
    tiers: tuple[TierRecall, ...]


# -- questions ---------------------------------------------------------------------------------


def is_sampled(query_id: str, share: float) -> bool:
    """Whether a query belongs to the sample: decided by its id alone, so a retry decides the same."""
    return zlib.crc32(query_id.encode()) < share * 2**32


def keep_question(session: Session, query_id: str, vector: bytes, model: str) -> None:
    """Keep the vector of a sampled question; others are not looked at. Part of the query's last write."""
    if not is_sampled(query_id, get_settings().recall.sample_share):
        return
    if session.get(QuestionVectorRow, query_id) is None:
        session.add(QuestionVectorRow(query_id=query_id, model=model, vector=vector))


def waiting_questions(session: Session, limit: int, since: datetime) -> list[SampledQuestion]:
    """Questions that nobody measured yet, newest first; those older than `since` never will be."""
    v = QuestionVectorRow
    session.execute(update(v).where(v.measured_at.is_(None), v.at < since).values(measured_at=since))
    rows = session.execute(
        select(v.query_id, QueryRow.tenant_id, QueryRow.collection_ids, QueryRow.filters, v.model, v.vector)
        .join(QueryRow, QueryRow.id == v.query_id)
        .where(v.measured_at.is_(None), v.at >= since)
        .order_by(v.at.desc())
        .limit(limit)
    )
    return [
        SampledQuestion(query_id, tenant_id, tuple(collections), filters, model, vector)
        for query_id, tenant_id, collections, filters, model, vector in rows
    ]


def waiting_since(session: Session) -> tuple[int, datetime | None]:
    """How many sampled questions nobody looked at yet, and when the first of them was asked."""
    waits = select(func.count(), func.min(QuestionVectorRow.at)).where(
        QuestionVectorRow.measured_at.is_(None)
    )
    count, since = session.execute(waits).one()
    return int(count), since


# -- samples -----------------------------------------------------------------------------------


def store_samples(session: Session, query_ids: Sequence[str], samples: Sequence[Sample]) -> None:
    """Store what was measured and mark its questions; both commit together."""
    now = utcnow()
    session.execute(
        update(QuestionVectorRow).where(QuestionVectorRow.query_id.in_(query_ids)).values(measured_at=now)
    )
    session.add_all(
        RecallSampleRow(tier=s.tier, generation=s.generation, effort=s.effort, recall=s.recall, at=now)
        for s in samples
    )
    session.flush()


def window(session: Session, tier: str, effort: float) -> Window:
    """The newest samples taken with this effort since the tier was last rebuilt or rolled back."""
    since = session.scalar(
        select(func.max(BuildRow.to_generation)).where(
            BuildRow.tier.in_((tier, "all")), BuildRow.status.in_(_SERVING)
        )
    )
    r = RecallSampleRow
    found = session.scalars(
        select(r.recall)
        .where(r.tier == tier, r.effort == effort, r.generation >= (since or 0))
        .order_by(r.at.desc(), r.id.desc())
        .limit(get_settings().recall.window)
    ).all()
    return Window(sum(found) / len(found) if found else None, len(found))


def asked_since(session: Session, principal: str, tier: str, since: datetime) -> bool:
    """Whether this principal opened a build of the tier since then, however it ended."""
    return (
        session.scalar(
            select(BuildRow.id)
            .where(BuildRow.tier == tier, BuildRow.created_by == principal, BuildRow.created_at >= since)
            .limit(1)
        )
        is not None
    )


def forget_old(session: Session, now: datetime) -> None:
    """Remove samples past their time, and all but the newest questions."""
    before = now - timedelta(days=get_settings().recall.keep_days)
    session.execute(delete(RecallSampleRow).where(RecallSampleRow.at < before))
    oldest_kept = session.scalar(
        select(QuestionVectorRow.at).order_by(QuestionVectorRow.at.desc()).offset(_KEPT_QUESTIONS).limit(1)
    )
    if oldest_kept is not None:
        session.execute(delete(QuestionVectorRow).where(QuestionVectorRow.at <= oldest_kept))


def recall_report(session: Session, scope: Scope, *, hours: float, points: int = 60) -> RecallReport:
    """Recall of each tier over the last hours, in at most `points` stretches of equal length."""
    settings = get_settings()
    now = utcnow()
    since, r = now - timedelta(hours=hours), RecallSampleRow
    tiers: list[TierRecall] = []
    for tier in Tier if scope.tenant_id else ():
        rows = session.execute(
            select(r.at, r.recall)
            .where(r.tier == tier.value, r.at >= since)
            .order_by(r.at.desc())
            .limit(_HISTORY_ROWS)
        ).all()
        effort = session.scalar(
            select(r.effort).where(r.tier == tier.value).order_by(r.at.desc(), r.id.desc()).limit(1)
        )
        seen = window(session, tier.value, effort or 1.0)
        drawn = _points([(at, recall) for at, recall in rows], since, now, points)
        tiers.append(TierRecall(tier.value, seen.mean, seen.count, effort or 1.0, drawn))
    return RecallReport(settings.retrieval.recall_floor, settings.recall.sample_share, tuple(tiers))


def _points(
    samples: Sequence[tuple[datetime, float]], since: datetime, until: datetime, count: int
) -> tuple[RecallPoint, ...]:
    step = (until - since) / count
    stretches: dict[int, list[float]] = {}
    for at, recall in samples:
        stretches.setdefault(min(count - 1, int((at - since) / step)), []).append(recall)
    return tuple(
        RecallPoint(since + (n + 0.5) * step, sum(found) / len(found), min(found), len(found))
        for n, found in sorted(stretches.items())
    )
