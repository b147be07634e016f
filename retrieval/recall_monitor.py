"""Recall of live questions: a share of them is run again, exactly, in the maintenance worker.

A query only leaves its vector behind (`recall_store.keep_question`). A round takes the newest of those, asks
each tier of the served generation once as queries do and once exactly, and stores the share that was found,
of those of its vectors that are among the best over all tiers: the others are in no answer. When the mean of
a tier falls below the floor, its search effort is raised; when that is at its limit, the tier is rebuilt;
when it is far above the floor, less effort is tried. All are audit entries of the principal `recall-monitor`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from core.db import Database, utcnow
from core.errors import Conflict, GeoError
from core.metrics import RECALL, RECALL_FLOOR, RECALL_SAMPLES, TIER_EFFORT
from core.models import AuditRow
from core.settings import RecallSettings, get_settings
from core.types import Role, Scope
from retrieval import builds, recall_store
from retrieval.filters import parse_filters
from retrieval.query_repository import live_passage_ids
from retrieval.recall_store import Sample, SampledQuestion, Window

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from retrieval.vector_tier import TierStats

log = logging.getLogger(__name__)

K = 10
_TIE = 1e-6  # cosines that differ by less are equally good answers
_FRESH = timedelta(hours=1)  # older questions say little of what is served now
_ROUND_S = 10.0  # a round stops after so long: exact search of a large tier takes its time
_MAX_FILTER_PASSAGES = 20_000
_STEP = 1.5
# Of what the floor leaves: with so much to spare over a whole window, less effort is tried. A hundred
# questions tell a mean to within .02.
_SPARE = 0.6
_NOTHING = Window(None, 0)
PRINCIPAL = "recall-monitor"
Vector = npt.NDArray[np.float32]
Ids = Sequence[int] | None
Found = list[tuple[int, float]]


class Action(StrEnum):
    """What the recall of a tier calls for."""

    NONE = "none"
    RAISE = "raise"
    LOWER = "lower"
    REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What to do about a tier, and the effort it is searched with from then on."""

    action: Action
    effort: float


class Searched(Protocol):
    """What the monitor needs of one tier of one generation (`vector_tier.TierSnapshot`)."""

    @property
    def live_count(self) -> int:
        """Vectors that a search can return."""
        ...

    @property
    def refused(self) -> str:
        """Why it serves nothing; empty while it serves."""
        ...

    def stats(self) -> TierStats:
        """What it takes in this process."""
        ...

    def search(
        self,
        vector: npt.NDArray[np.float32],
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        """As queries search."""
        ...

    def search_exact(
        self,
        vector: npt.NDArray[np.float32],
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        """Missing nothing."""
        ...

    def search_exact_many(self, vectors: Vector, k: int, scope: Scope) -> list[Found]:
        """The same for [n, d] vectors, in one pass."""
        ...


@dataclass(frozen=True, slots=True)
class ServedTier:
    """One tier as it is served now."""

    name: str
    effort: float
    snapshot: Searched


def recall_at(found: Sequence[tuple[int, float]], exact: Sequence[tuple[int, float]]) -> float | None:
    """Share of the exact hits that was found; an equally good one counts. None: there is nothing to find."""
    if not exact:
        return None
    wanted, worst = {passage_id for passage_id, _ in exact}, exact[-1][1]
    good = sum(1 for passage_id, score in found if passage_id in wanted or score >= worst - _TIE)
    return min(good, len(exact)) / len(exact)


def among_best(own: Found, others: Iterable[Found], k: int) -> Found:
    """Of one tier's exact hits, best first, those that are among the k best of all tiers."""
    beating = sorted((score for found in others for _, score in found), reverse=True)
    kept = 0  # hit number n has n of its own tier before it, and all of `beating` that are higher
    for number, (_, score) in enumerate(own):
        if number + sum(1 for other in beating if other > score) >= k:
            break
        kept += 1
    return own[:kept]


def judge(
    seen: Window, effort: float, floor: float, settings: RecallSettings, less: Window = _NOTHING
) -> Judgement:
    """What the newest samples of a tier call for; too few call for nothing.

    Args:
        seen: with the effort that is served.
        effort: that one.
        floor: recall@10.
        settings: of the monitor.
        less: samples with the effort one step below. A tier that was below the floor with it is not searched
            with it again before the next rebuild.
    """
    if seen.mean is None or seen.count < settings.min_samples:
        return Judgement(Action.NONE, effort)
    if seen.mean >= floor:
        spare = seen.count >= settings.window and seen.mean >= floor + _SPARE * (1 - floor)
        tried = less.mean is not None and less.mean < floor
        if spare and not tried and lower_effort(effort) >= settings.min_effort:
            return Judgement(Action.LOWER, lower_effort(effort))
        return Judgement(Action.NONE, effort)
    if effort < settings.max_effort:
        return Judgement(Action.RAISE, min(settings.max_effort, round(effort * _STEP, 4)))
    return Judgement(Action.REBUILD, effort)


def lower_effort(effort: float) -> float:
    """One step below."""
    return round(effort / _STEP, 4)


def measure(
    db: Database, tiers: Sequence[ServedTier], generation: int, model: str, now: datetime | None = None
) -> int:
    """Run waiting questions again in each tier and store what was found; returns how many were run."""
    now, settings = now or utcnow(), get_settings().recall
    with db.write() as session:
        questions = recall_store.waiting_questions(session, settings.per_round, now - _FRESH)
    current = [q for q in questions if q.model == model]  # another encoder's question says nothing here
    done = [q.query_id for q in questions if q.model != model]
    samples: list[Sample] = []
    deadline = time.monotonic() + _ROUND_S
    for asked in _together(current):
        if done and time.monotonic() > deadline:
            break
        done += [q.query_id for q in asked]
        samples += _samples(db, tiers, generation, asked)
    with db.write() as session:
        recall_store.store_samples(session, done, samples)
        recall_store.forget_old(session, now)
    for sample in samples:
        RECALL_SAMPLES.labels(sample.tier).inc()
    return len(done)


def _together(questions: Sequence[SampledQuestion]) -> list[list[SampledQuestion]]:
    """Questions of the same scope, which one pass over the originals answers; those with a filter alone."""
    groups: dict[object, list[SampledQuestion]] = {}
    for q in questions:
        alone = q.query_id if q.filters else ""
        groups.setdefault((q.tenant_id, q.collection_ids, alone), []).append(q)
    return list(groups.values())


def _samples(
    db: Database, tiers: Sequence[ServedTier], generation: int, asked: Sequence[SampledQuestion]
) -> list[Sample]:
    scope = Scope(asked[0].tenant_id, asked[0].collection_ids, PRINCIPAL, Role.READER)
    passages = _filtered(db, scope, asked[0])
    vectors = np.stack([np.frombuffer(q.vector, np.float16) for q in asked]).astype(np.float32)
    asked_tiers = [t for t in tiers if t.snapshot.live_count and not t.snapshot.refused]
    exact = [_exact(tier.snapshot, vectors, scope, passages) for tier in asked_tiers]
    samples: list[Sample] = []
    for number, tier in enumerate(asked_tiers):
        for at, vector in enumerate(vectors):
            others = [found[at] for other, found in enumerate(exact) if other != number]
            wanted = among_best(exact[number][at], others, K)
            if not wanted:
                continue
            found = tier.snapshot.search(vector, K, scope, passage_ids=passages)
            recall = recall_at(found, wanted)
            if recall is not None:
                samples.append(Sample(tier.name, generation, tier.effort, recall))
    return samples


def _exact(snapshot: Searched, vectors: Vector, scope: Scope, passages: list[int] | None) -> list[Found]:
    if passages is None:
        return snapshot.search_exact_many(vectors, K, scope)
    return [snapshot.search_exact(v, K, scope, passage_ids=passages) for v in vectors]


def _filtered(db: Database, scope: Scope, question: SampledQuestion) -> list[int] | None:
    """Passages that the question's filter leaves; None without one, or when it leaves too many to name."""
    filters = parse_filters(question.filters)
    if filters.empty:
        return None
    with db.read() as session:
        return live_passage_ids(session, scope, filters, limit=_MAX_FILTER_PASSAGES)


def verdicts(session: Session, tiers: Sequence[ServedTier]) -> dict[str, tuple[Window, Judgement]]:
    """The mean of every tier that holds something, and what it calls for; sets the metrics."""
    floor, settings = get_settings().retrieval.recall_floor, get_settings().recall
    RECALL_FLOOR.set(floor)
    found: dict[str, tuple[Window, Judgement]] = {}
    for tier in tiers:
        if tier.snapshot.refused or not tier.snapshot.live_count:
            continue
        seen = recall_store.window(session, tier.name, tier.effort)
        TIER_EFFORT.labels(tier.name).set(tier.effort)
        if seen.mean is not None:
            RECALL.labels(tier.name).set(seen.mean)
        less = recall_store.window(session, tier.name, lower_effort(tier.effort))
        found[tier.name] = seen, judge(seen, tier.effort, floor, settings, less)
    return found


def note(session: Session, action: str, tier: str, details: Mapping[str, object]) -> None:
    """An audit entry that operators read."""
    session.add(
        AuditRow(tenant_id="system", principal=PRINCIPAL, action=action, subject=tier, details=dict(details))
    )


def told(seen: Window) -> dict[str, object]:
    """What an audit entry says of a window."""
    return {"recall": None if seen.mean is None else round(seen.mean, 4), "samples": seen.count}


def ask_for_rebuild(db: Database, tier: str, seen: Window) -> bool:
    """Open a rebuild of a tier that cannot be searched well, unless one is open or was tried just now."""
    scope = Scope("system", None, PRINCIPAL, Role.OPERATOR)
    try:
        with db.write() as session:
            if recall_store.asked_since(session, PRINCIPAL, tier, utcnow() - _FRESH):
                return False
            build = builds.request_rebuild(session, scope, tier=tier)
            note(session, "tier.rebuild", tier, {"build": build.id, **told(seen)})
    except Conflict:
        return False
    except GeoError:
        log.exception("rebuild_not_asked_for", extra={"tier": tier})
        return False
    return True
