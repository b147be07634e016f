"""What the admission decision is made from, read in the transaction that stores the question.

Counting rows holds for any number of API processes and workers and through every restart; a counter kept
beside them would have to be repaired after each crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from core.db import plain_rows, utcnow
from core.models import QueryRow
from generation.admission import Demand

_WINDOW_S = 60.0  # the drain rate is that of the last minute
_LEARN_S, _LEARN_FROM = 3600.0, 50  # what a question needs is the mean of the last ones

_OPEN = QueryRow.finished_at.is_(None)
_ASKS_ENGINE = QueryRow.kv_tokens > 0


# Made once: every question runs them, and to build a statement takes longer than to run it.
_LAST = (
    select(QueryRow.kv_tokens)
    .where(QueryRow.finished_at > bindparam("since"), _ASKS_ENGINE)
    .order_by(QueryRow.finished_at.desc())
    .limit(_LEARN_FROM)
    .subquery()
)
_MEAN = select(func.avg(_LAST.c.kv_tokens))
_BY_PRIORITY = (
    select(QueryRow.priority, func.count(), func.sum(QueryRow.kv_tokens))
    .where(_OPEN, _ASKS_ENGINE)
    .group_by(QueryRow.priority)
)
_ENDED = select(func.coalesce(func.sum(QueryRow.kv_tokens), 0), func.min(QueryRow.created_at)).where(
    QueryRow.finished_at > bindparam("begin"), _ASKS_ENGINE, QueryRow.status.in_(("answered", "incomplete"))
)


def expected_kv_tokens(session: Session, plan: Mapping[str, Any]) -> int:
    """KV tokens that a question needs: the mean of the last answers, or all that the plan allows one."""
    since = utcnow() - timedelta(seconds=_LEARN_S)
    ((mean,),) = plain_rows(session, _MEAN, {"since": since})
    most = int(plan.get("max_model_len") or 0)
    return max(1, round(float(mean)) if mean else most)


@dataclass(frozen=True, slots=True)
class OpenDemand:
    """Questions that have not ended and need the engine, by priority."""

    interactive: Demand
    batch: Demand

    @property
    def questions(self) -> int:
        """Of any priority."""
        return self.interactive.questions + self.batch.questions

    def ahead(self, *, batch_at_once: int) -> Demand:
        """What an interactive question asked now has before it or beside it.

        That is every interactive one, and as many batch ones as may be at the engine at a time; a long queue
        of batch questions behind those keeps nobody out.
        """
        mine, others = self.interactive, self.batch
        beside = min(others.questions, batch_at_once)
        tokens = others.kv_tokens * beside // others.questions if others.questions else 0
        return Demand(mine.questions + beside, mine.kv_tokens + tokens)


def open_demand(session: Session) -> OpenDemand:
    """What is open now."""
    rows = plain_rows(session, _BY_PRIORITY, {})
    held = {priority: Demand(int(count), int(tokens)) for priority, count, tokens in rows}
    return OpenDemand(held.get("interactive", Demand(0, 0)), held.get("batch", Demand(0, 0)))


def drained_per_s(session: Session) -> float:
    """KV tokens of answers that ended in the last minute, per second that there was work."""
    now = utcnow()
    begin = now - timedelta(seconds=_WINDOW_S)
    ((ended, first),) = plain_rows(session, _ENDED, {"begin": begin})
    if not ended:
        return 0.0
    oldest: datetime = max(begin, first or begin)
    return float(ended) / max(1.0, (now - oldest).total_seconds())
