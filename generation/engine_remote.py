"""Existing vLLM servers instead of an engine in the worker: fleets, routers, multi-node models.

One address or several. A request goes to the server that should have its evidence in its prefix cache, unless
that one is much busier; when a server fails, its requests go to another one. The served context length is
asked from the servers and budgets follow the shortest.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator, Sequence
from typing import Any

import httpx

from core.errors import ConfigError, DeadlineExceeded, GeoError, TransientError
from core.metrics import ENGINE_ABORTS, REPLICA_FAILURES
from core.settings import GenerationSettings
from core.types import EnginePlan
from generation.plan import Planned
from generation.plan_batch import PROMPT_OVERHEAD
from generation.plan_languages import known_languages
from generation.replica import Flight, Replica, ReplicaFailed
from generation.replica_choice import Candidate, choose, prefix_key
from generation.requests import Cancelled, Chunk, EngineLoad, GenerationRequest

log = logging.getLogger(__name__)

_LOOK_S = 1.0  # between looks at each server
_PATIENCE_S = 30.0  # for a server to come back before the answer is put back into the queue
_ROUNDS = 3  # times that every server may fail one request

_LONGEST = 8192  # tokens of context where neither the settings nor the server say less


class RemoteEngine:
    """Client of one or several servers that serve the same model.

    Args:
        settings: `engine_url` (addresses separated by commas) and `engine_key` say where and as whom.
        model: the model's id, used when a server serves several.

    Raises:
        TransientError: no server answers.
        ConfigError: one serves no model, or too short a context.
    """

    def __init__(self, settings: GenerationSettings, *, model: str) -> None:
        key = settings.engine_key.get_secret_value() if settings.engine_key else ""
        urls = dict.fromkeys(filter(None, (u.strip() for u in settings.engine_url.split(","))))
        self._replicas = [Replica(url, key=key, model=model) for url in urls]
        self.planned = _plan(self._cards(), settings)
        self._flights: dict[str, Flight] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        for replica in self._replicas:
            threading.Thread(
                target=self._watch, args=(replica,), name=f"watch {replica.url}", daemon=True
            ).start()

    def _cards(self) -> list[dict[str, Any]]:
        """What the servers that answer serve; at least one has to."""
        cards: list[dict[str, Any]] = []
        away: TransientError | None = None
        for replica in self._replicas:
            try:
                cards.append(replica.served())
                replica.probe()
            except TransientError as error:
                away = error
                replica.failed(error.detail)
                log.warning("engine_server_away", extra={"url": replica.url})
        if not cards:
            raise away or ConfigError("GEO_GENERATION__ENGINE_URL names no server.")
        return cards

    # -- generate ------------------------------------------------------------------------------

    def generate(self, request: GenerationRequest) -> Generator[Chunk]:
        """See `Engine.generate`; closing the connection is how a server is told to abort.

        When a server fails, the request goes to another one. Text that was yielded is not yielded again: the
        new server's text must begin with it. Where it does not, `TransientError` has the answer begun anew.
        """
        flight = Flight()
        with self._lock:
            self._flights[request.id] = flight
        try:
            yield from self._failing_over(request, flight)
        except Cancelled:
            ENGINE_ABORTS.labels("cancelled").inc()
            raise
        except DeadlineExceeded:
            ENGINE_ABORTS.labels("deadline").inc()
            raise
        finally:
            with self._lock:
                self._flights.pop(request.id, None)

    def _failing_over(self, request: GenerationRequest, flight: Flight) -> Generator[Chunk]:
        told = ""
        failed: list[str] = []
        while True:
            replica = self._choose(request, flight, avoid=failed)
            ahead = told  # what this server has to say again
            try:
                for chunk in replica.stream(request, flight):
                    ahead, text = _beyond(ahead, chunk.text)
                    told += text
                    if text or chunk.finish_reason is not None:
                        yield Chunk(text, chunk.finish_reason, chunk.usage)
            except ReplicaFailed as error:
                REPLICA_FAILURES.labels(replica.url).inc()
                log.warning("engine_server_failed", extra={"url": replica.url, "why": str(error)})
                if not (error.busy or flight.broken_off):  # broken off: counted by who did it
                    replica.failed(str(error))
                failed.append(replica.url)
                if len(failed) >= _ROUNDS * len(self._replicas):
                    raise TransientError(f"The engine servers broke off: {error}") from error
            else:
                return

    def _choose(self, request: GenerationRequest, flight: Flight, *, avoid: Sequence[str]) -> Replica:
        """A server that may be asked; waits for one to come back while there is none.

        Raises:
            Cancelled, DeadlineExceeded: meanwhile.
            TransientError: none came back.
        """
        rules, evidence = request.messages[0], request.messages[:2][-1]  # earlier turns stand after both
        key = prefix_key(request.cache_salt, rules.content, evidence.content)
        until = time.monotonic() + _PATIENCE_S
        while True:
            usable = [r for r in self._replicas if r.usable]
            # The one that just failed is asked again only when no other is left.
            fresh = [r for r in usable if r.url not in avoid[-len(self._replicas) :]] or usable
            if fresh:
                url = choose(key, [Candidate(r.url, r.requests) for r in fresh])
                return next(r for r in fresh if r.url == url)
            if flight.cancelled:
                raise Cancelled
            if time.monotonic() >= request.deadline:
                raise DeadlineExceeded("No engine server answered before the answer's deadline.")
            if time.monotonic() >= until or self._closing.wait(0.1):
                raise TransientError(f"No engine server answers. {self.complaint()}")

    def cancel(self, request_id: str) -> None:
        """See `Engine.cancel`."""
        with self._lock:
            flight = self._flights.get(request_id)
        if flight is not None:
            flight.cancel()

    # -- the servers ---------------------------------------------------------------------------

    def _watch(self, replica: Replica) -> None:
        while not self._closing.wait(_LOOK_S):
            if not replica.breaker.probe_due(time.monotonic()):
                continue
            was_closed = replica.breaker.closed
            try:
                if not was_closed or not replica.model:
                    self._meet(replica)
                replica.probe()
            except GeoError as error:
                replica.failed(error.detail)
            except RuntimeError:  # the client was closed under us
                return
            if was_closed != replica.breaker.closed:
                log.warning("engine_server", extra={"url": replica.url, "usable": replica.usable})

    def _meet(self, replica: Replica) -> None:
        """A server that comes (back) has to serve what the plan was made for."""
        card, plan = replica.served(), self.planned.plan
        length = int(card.get("max_model_len") or plan.max_model_len)
        replica.refused = (
            ""
            if length >= plan.max_model_len
            else f"serves {length} tokens, the others {plan.max_model_len}; restart the generation worker"
        )

    def complaint(self) -> str:
        """See `Engine.complaint`."""
        away = [f"{r.url}: {r.refused or r.fault or 'not met yet'}" for r in self._replicas if not r.usable]
        if not away:
            return ""
        return f"{len(self._replicas) - len(away)} of {len(self._replicas)} servers answer; {'; '.join(away)}"

    def load(self) -> EngineLoad:
        """See `Engine.load`; the sum over the servers as they last told, zeros where they have no metrics."""
        loads = [r.load for r in self._replicas if r.usable]
        kv_tokens = sum(one.kv_tokens for one in loads)
        if kv_tokens:
            used = sum(one.kv_used_share * one.kv_tokens for one in loads) / kv_tokens
        else:
            used = sum(one.kv_used_share for one in loads) / max(1, len(loads))
        return EngineLoad(
            used,
            sum(one.running for one in loads),
            sum(one.waiting for one in loads),
            sum(one.preemptions for one in loads),
            kv_tokens,
        )

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`; without the server's tokenizer a safe over-estimate."""
        for replica in self._replicas:
            if replica.usable:
                try:
                    return replica.count_tokens(text)
                except (httpx.HTTPError, ValueError, KeyError):
                    continue
        return len(text.encode()) // 2 + 1

    @property
    def special_tokens(self) -> Sequence[str]:
        """Unknown here; `generation/prompt.py` breaks the usual ones."""
        return ()

    @property
    def dead(self) -> bool:
        """A server that is down may come back; requests say so one by one."""
        return False

    def silent_s(self) -> float:
        """Servers that hang are found by the watch, one by one."""
        return 0.0

    def prove(self, within_s: float) -> None:
        """See `Engine.prove`; the watch asks every second."""
        if not any(r.usable for r in self._replicas):
            raise TransientError(f"No engine server answers. {self.complaint()}")

    def kill(self) -> None:
        """The servers are not ours to end."""

    def close(self) -> None:
        """Close the connections."""
        self._closing.set()
        with self._lock:
            flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        for replica in self._replicas:
            replica.close()


def _beyond(ahead: str, text: str) -> tuple[str, str]:
    """What is still to be said again, and what of `text` is new.

    Raises:
        TransientError: the text is another one.
    """
    shared = min(len(ahead), len(text))
    if ahead[:shared] != text[:shared]:
        raise TransientError("Another server's answer came out otherwise; it is begun anew.")
    return ahead[shared:], text[shared:]


def _plan(cards: Sequence[dict[str, Any]], settings: GenerationSettings) -> Planned:
    """The plan that holds for all servers that answer."""
    most = settings.max_model_len or _LONGEST
    served = min(cards, key=lambda card: int(card.get("max_model_len") or most))
    length = min(int(served.get("max_model_len") or most), most)
    context = length - settings.answer_reserve - PROMPT_OVERHEAD
    if context < 1:
        raise ConfigError(
            f"The engine server's context of {length} tokens leaves none for evidence beside an answer of "
            f"{settings.answer_reserve}; lower GEO_GENERATION__ANSWER_RESERVE or serve a longer context."
        )
    plan = EnginePlan(
        model=str(served["id"]),
        tokenizer=str(served.get("root") or served["id"]),
        languages=known_languages(str(served.get("root") or served["id"])),
        max_model_len=length,
        answer_reserve=settings.answer_reserve,
        context_budget=context,
        block_size=settings.block_size or 16,
        kv_blocks=0,
        kv_free_share=1.0,
        tp=0,
        pp=0,
        vector_page_bytes=0,
    )
    return Planned(plan, 0, settings.max_num_seqs or 16, 0, bool(settings.enforce_eager), ())
