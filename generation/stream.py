"""Events of one query: what the worker appends, and what the HTTP process reads back.

The stored answer is the truth. A reader whose stream is gone, or whose worker died, gets the same events
made from the stored state, so it never hangs and never sees less than a reader who came later.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

import redis
import redis.asyncio
from redis.exceptions import RedisError
from sqlalchemy import event
from sqlalchemy.orm import Session

from core import streams
from core.streams import StreamEvent
from core.types import AnswerStatus, Claim, Evidence, Verdict
from generation.publisher import Channel, Publisher
from generation.values import AnswerView, ClaimView, Ending

log = logging.getLogger(__name__)

DELTA_INTERVAL_S = 0.05  # at most one delta entry per claim and 50 ms (decision 11)
# Of all streams of one worker together: each entry wakes Redis, the API and the reader, which take processor
# time from the engine on a machine that they share. Sixteen streams then have an entry each 320 ms.
DELTAS_PER_S = 50
_STREAM_ID = re.compile(r"^\d{1,20}-\d{1,20}$")
_STORED_ID = re.compile(r"^stored-(\d{1,9})$")
_ENDED_ROUNDS = 2  # quiet rounds after a terminal row before the stored state is sent instead
_RECONNECT_S = 1.0


class EventWriter:
    """The worker's side: tells in order and coalesces deltas. Not shared between threads.

    Args:
        client: for looking at what the stream has.
        query_id: whose stream it is.
        interval_s: between two deltas.
        publisher: that sends for all answers of the process; None: one of its own.
    """

    def __init__(
        self,
        client: redis.Redis,
        query_id: str,
        *,
        interval_s: float = DELTA_INTERVAL_S,
        publisher: Publisher | None = None,
    ) -> None:
        self._client, self._publisher = client, publisher or Publisher(client)
        self._channel = Channel(query_id, interval_s)
        self._told: dict[str, Any] | None = None  # sources of an attempt that told nothing else

    @property
    def interval_s(self) -> float:
        """Seconds between two deltas."""
        return self._channel.interval_s

    def sources(self, evidence: Iterable[Evidence]) -> None:
        """Tell what may be cited, before any text; an attempt that only repeats them stays silent."""
        payload = {"sources": [source_payload(e) for e in evidence]}
        told, self._told = self._told, None
        if payload == told:
            return
        if told is not None:
            self._tell("restart", {})
        self._tell("sources", payload)

    def delta(self, claim: int, text: str) -> None:
        """Append provisional text of claim number `claim`."""
        self._publisher.add_text(self._channel, claim, text)

    def share(self, streams_now: int) -> None:
        """Tell that so many streams are written in this worker; each waits longer between its deltas."""
        self._channel.interval_s = max(self._channel.interval_s, streams_now / DELTAS_PER_S)

    def claim(self, ordinal: int, claim: Claim, evidence: dict[int, Evidence]) -> None:
        """Send a claim's final form; pending provisional text of it is void."""
        self._publisher.drop_text(self._channel, ordinal)
        self._tell("claim", claim_payload(ordinal, claim, evidence))

    def begin(self) -> None:
        """An attempt begins: where an earlier one has told something, readers drop what they have.

        The stream itself is asked, because an attempt that was handed back or died is not always counted. One
        that has told only the sources leaves nothing to drop: where many wait for an engine that restarts,
        each is handed back and taken up again once a second.
        """
        query_id = self._channel.query_id
        self._publisher.drop_text(self._channel)
        try:
            last = streams.last(self._client, query_id)
        except RedisError:
            log.warning("event_not_published", extra={"query_id": query_id, "event_name": "restart"})
            return
        if last is not None and last.event == "sources":
            self._told = last.payload
        elif last is not None:
            self._tell("restart", {})

    def done(self, payload: dict[str, Any]) -> None:
        """The last entry; call it after the commit."""
        self._publisher.drop_text(self._channel)
        self._tell("done", payload)

    def close(self) -> None:
        """The attempt is over: what it has not told is void. Another one may follow, here or elsewhere."""
        self._publisher.drop_text(self._channel)

    def _tell(self, event: str, payload: dict[str, Any]) -> None:
        self._publisher.tell(self._channel, event, streams.as_text(payload))


def source_payload(e: Evidence) -> dict[str, Any]:
    """A source on the wire."""
    return {
        "marker": e.marker,
        "passage_id": e.passage.id,
        "document_id": e.passage.document_id,
        "document_name": e.document_name,
        "version": e.passage.version,
        "page": e.passage.page,
        "heading_path": list(e.passage.heading_path),
        "text": e.passage.text,
        "score": e.score,
        "routes": [{"route": h.route.value, "rank": h.rank, "score": h.score} for h in e.routes],
        "collapsed": e.collapsed,
    }


def claim_payload(ordinal: int, claim: Claim, evidence: dict[int, Evidence]) -> dict[str, Any]:
    """A claim on the wire, as `ClaimView` has it."""
    return {
        "ordinal": ordinal,
        "text": claim.text,
        "verdict": claim.verdict.value,
        "reason": claim.reason,
        "citations": [
            {
                "marker": c.marker,
                "passage_id": c.passage_id,
                "document_id": c.document_id,
                "document_name": evidence[c.marker].document_name if c.marker in evidence else "",
                "version": c.version,
                "page": evidence[c.marker].passage.page_at(c.quote.start if c.quote else None)
                if c.marker in evidence
                else None,
                "heading_path": list(evidence[c.marker].passage.heading_path) if c.marker in evidence else [],
                "quote": {"start": c.quote.start, "end": c.quote.end, "text": c.quote_text}
                if c.quote
                else None,
            }
            for c in claim.citations
        ],
        "erased": False,
    }


def done_payload(answer: AnswerView | Ending) -> dict[str, Any]:
    """The last event: everything about the answer that is not a source or a claim."""
    return {
        "status": answer.status.value,
        "text": answer.text,
        "mode": answer.mode.value,
        "mode_used": answer.mode_used.value if answer.mode_used else None,
        "mode_reason": answer.mode_reason,
        "notices": [asdict(notice) for notice in answer.notices],
        "usage": answer.usage,
        "timings_ms": answer.timings_ms,
        "index_generation": answer.index_generation,
        "policy_version": answer.policy_version,
        "error": asdict(answer.error) if answer.error else None,
    }


def stored_events(answer: AnswerView, *, after: str = "") -> list[StreamEvent]:
    """The events of an ended query made from its stored state.

    Args:
        answer: a query with a terminal status.
        after: the reader's last event id. An id of this form (`stored-<n>`) resumes, where it is one before
            `done`; `done` is told again to whoever has it, since each stream ends in one. Any other non-empty
            id belongs to a stream that is gone, so a `restart` comes first.
    """
    resumed = _STORED_ID.match(after)
    entries: list[tuple[str, dict[str, Any]]] = [("restart", {})] if after and not resumed else []
    sources = [asdict(s) for s in answer.sources if s.text is not None]
    entries.append(("sources", {"sources": sources}))
    entries.extend(("claim", _view_payload(claim)) for claim in answer.claims)
    entries.append(("done", done_payload(answer)))
    events = [
        StreamEvent(f"stored-{n}", name, streams.as_text(entry)) for n, (name, entry) in enumerate(entries, 1)
    ]
    return events[min(int(resumed[1]), len(events) - 1) :] if resumed else events


def _view_payload(claim: ClaimView) -> dict[str, Any]:
    payload = asdict(claim)
    payload["verdict"] = Verdict(claim.verdict).value
    return payload


def after_commit(session: Session, action: Callable[[], None]) -> None:
    """Run `action` once the session has committed; its failure is logged, a rollback drops it."""

    def run(_session: Session) -> None:
        event.remove(session, "after_rollback", forget)
        try:
            action()
        except RedisError:
            log.warning("after_commit_action_failed", exc_info=True)

    def forget(_session: Session) -> None:
        if event.contains(session, "after_commit", run):
            event.remove(session, "after_commit", run)

    event.listen(session, "after_commit", run, once=True)
    event.listen(session, "after_rollback", forget, once=True)


async def follow_query(
    client: redis.asyncio.Redis,
    query_id: str,
    load: Callable[[], AnswerView],
    *,
    status: Callable[[], AnswerStatus],
    known: AnswerStatus,
    after: str = "",
) -> AsyncIterator[StreamEvent | None]:
    """Events after `after` until `done`, from the stream or, where it is gone, from the stored state.

    Args:
        client: asyncio Redis.
        query_id: the query, already checked for visibility.
        load: reads the stored answer in a short session; called in a thread.
        status: reads its status alone, which is all that is asked while the answer is made.
        known: what the status was a moment ago.
        after: `Last-Event-ID`; malformed ids count as none.

    Yields:
        Events, and None about every two quiet seconds (send a keep-alive, look for a disconnect).
    """
    after = after if _STREAM_ID.match(after) or _STORED_ID.match(after) else ""
    position, quiet_after_end = (after if _STREAM_ID.match(after) else "0-0"), 0
    # The stream of one that has not ended may not have begun; one that is gone is noticed by its silence.
    if known.terminal and (_STORED_ID.match(after) or not await _stream_exists(client, query_id)):
        for stored in stored_events(await asyncio.to_thread(load), after=after):
            yield stored
        return
    while True:
        try:
            async with aclosing(streams.follow(client, query_id, after=position)) as entries:
                async for entry in entries:
                    yield entry
                    if entry is not None:
                        position, quiet_after_end = entry.id, 0
                        if entry.event == "done":
                            return
                        continue
                    ended = (await asyncio.to_thread(status)).terminal
                    quiet_after_end = quiet_after_end + 1 if ended else 0
                    if quiet_after_end >= _ENDED_ROUNDS:
                        answer = await asyncio.to_thread(load)
                        for stored in stored_events(answer, after=position if position != "0-0" else ""):
                            yield stored
                        return
        except RedisError:
            # Without Redis the stored state still tells the truth; it is asked once a second.
            if (await asyncio.to_thread(status)).terminal:
                answer = await asyncio.to_thread(load)
                for stored in stored_events(answer, after=position if position != "0-0" else ""):
                    yield stored
                return
            yield None
            await asyncio.sleep(_RECONNECT_S)


async def _stream_exists(client: redis.asyncio.Redis, query_id: str) -> bool:
    try:
        return bool(await client.exists(streams.stream_key(query_id)))
    except RedisError:
        return False
