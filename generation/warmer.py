"""Keeps the beginnings of most prompts in the engine's prefix cache while nobody asks.

After a start the cache is empty, and a rush of rare questions pushes popular passages out of it. When the
engine has been idle for a while, the openings that most prompts had are computed once more, one token each,
under their tenant's salt. A question that arrives aborts the one in work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from itertools import takewhile

from sqlalchemy.exc import SQLAlchemyError

from core.db import Database
from core.errors import GeoError
from core.metrics import PREWARMED
from core.types import Evidence, Scope
from generation import repository
from generation.prompt import Message, build_prompt
from generation.prompt_book import Opening
from generation.requests import Cancelled, Engine, GenerationRequest
from generation.runtime import EngineRuntime
from retrieval.live import live_passages

log = logging.getLogger(__name__)

IDLE_S = 5.0  # without an answer before anything is computed ahead
_LOOK_S = 1.0
_DEADLINE_S = 30.0
_LAST = 1 << 60  # priority behind every question, should one come while the abort is on its way
_KV_SHARE = 0.25  # of the blocks, at most, that openings may fill
_SEEDED = 500  # stored answers whose prompts a new worker begins with


class Warmer:
    """One thread per generation worker.

    Args:
        runtime: whose engine is warmed, and whose book says with what.
        db: passages are read when they are computed, so one that was deleted meanwhile is left out.
        openings: at most so many in one idle time; 0 turns it off.
        idle_s: see `IDLE_S`.
    """

    def __init__(
        self, runtime: EngineRuntime, db: Database, *, openings: int, idle_s: float = IDLE_S
    ) -> None:
        self._runtime, self._db = runtime, db
        self._openings, self._idle_s = openings, idle_s
        self._stopping = threading.Event()
        self._abort: Callable[[], None] | None = None
        self._busy_at = time.monotonic()
        self._done_at = -1  # prompts noted when the last pass ended: without new ones nothing has to be done

    def start(self) -> None:
        """Watch in a thread; does nothing when turned off."""
        if not self._openings:
            return
        self._runtime.on_busy = self._make_way
        threading.Thread(target=self._watch, name="prefix-warmer", daemon=True).start()

    def stop(self) -> None:
        """Abort what is in work and end the thread."""
        self._stopping.set()
        self._make_way()

    def seed(self) -> None:
        """Learn from stored answers what prompts began with before this worker started."""
        with self._db.read() as session:
            prompts = repository.recent_prompts(session, limit=_SEEDED)
        for tenant_id, form, passages in prompts:
            self._runtime.prompts.note(tenant_id, form, passages)

    def warm(self) -> int:
        """One pass over the popular openings, as far as nobody asks.

        Returns:
            How many were computed, or found in the cache.
        """
        engine = self._runtime.engine
        if engine is None:
            return 0
        noted, done, tokens = self._runtime.prompts.noted, 0, 0
        limit = engine.planned.plan.kv_blocks * engine.planned.plan.block_size * _KV_SHARE
        for opening in self._runtime.prompts.popular(self._openings):
            if self._stopping.is_set() or not self._idle(engine):
                return done
            used = self._compute(engine, opening)
            if used is None:
                return done
            done, tokens = done + 1, tokens + used
            if limit and tokens >= limit:
                break
        self._done_at = noted
        return done

    def _watch(self) -> None:
        try:
            self.seed()
        except SQLAlchemyError:
            log.warning("prompts_not_seeded", exc_info=True)
        while not self._stopping.wait(_LOOK_S):
            engine = self._runtime.engine
            if engine is None or self._done_at == self._runtime.prompts.noted or not self._idle(engine):
                continue
            try:
                self.warm()
            except (GeoError, SQLAlchemyError):
                log.warning("prefixes_not_warmed", exc_info=True)
                self._done_at = self._runtime.prompts.noted  # not again before somebody has asked

    def _idle(self, engine: Engine) -> bool:
        quiet = time.monotonic() - self._busy_at >= self._idle_s
        return quiet and not self._runtime.active and not engine.dead and not engine.load().running

    def _make_way(self) -> None:
        self._busy_at = time.monotonic()
        if (abort := self._abort) is not None:
            abort()

    def _compute(self, engine: Engine, opening: Opening) -> int | None:
        """Tokens of the opening; None when it was aborted."""
        messages = self._messages(engine, opening)
        if not messages:
            return 0
        request = GenerationRequest(
            id=f"prewarm-{time.monotonic_ns()}",
            messages=messages,
            max_tokens=1,
            deadline=time.monotonic() + _DEADLINE_S,
            priority=_LAST,
            cache_salt=opening.tenant_id,
        )
        self._abort = lambda: engine.cancel(request.id)
        used = 0
        try:
            if self._runtime.active:
                raise Cancelled
            for chunk in engine.generate(request):
                used = chunk.usage.prompt_tokens if chunk.usage else 0
                if self._runtime.active:  # came before the engine knew the request
                    raise Cancelled
        except Cancelled:
            PREWARMED.labels("aborted").inc()
            return None
        finally:
            self._abort = None
        PREWARMED.labels("computed").inc()
        return used

    def _messages(self, engine: Engine, opening: Opening) -> tuple[Message, ...]:
        """The opening as a prompt without a question; empty once its first passage is gone."""
        scope = Scope.internal(opening.tenant_id)
        with self._db.read() as session:
            live = live_passages(session, scope, opening.passages)
        here = list(takewhile(lambda passage_id: passage_id in live, opening.passages))
        if not here:
            return ()
        evidence = [Evidence(n, live[passage_id].passage, 1.0) for n, passage_id in enumerate(here, 1)]
        return build_prompt(
            "",
            evidence,
            lang=opening.form.lang,
            budget=engine.planned.plan.max_model_len - 1,
            count=engine.count_tokens,
            mode=opening.form.mode,
            tone=opening.form.tone,
            specials=engine.special_tokens,
            order=here,
        ).messages
