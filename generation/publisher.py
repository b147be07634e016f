"""What all answers of a worker tell goes out together: one step on Redis, which wakes a reader once."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field

import redis
from redis.exceptions import RedisError

from core import streams
from core.settings import get_settings

log = logging.getLogger(__name__)

GATHER_S = 0.01  # an engine's step hands over all answers' text within some milliseconds
_RENEWALS = 10  # of a stream's time to live in that time, while it is written
_SOON = 0.5  # of its interval after which a stream's text goes along with what others send


@dataclass(slots=True, eq=False)
class Channel:
    """One query's stream as its worker writes it.

    Attributes:
        query_id: of the stream.
        interval_s: between two entries of provisional text.
        waiting: provisional text that was not sent, by claim, in order.
        sent_at: `time.monotonic()` of the last provisional text.
        renew_at: when the stream's time to live is renewed next.
    """

    query_id: str
    interval_s: float
    waiting: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    sent_at: float = 0.0
    renew_at: float = 0.0


class Publisher:
    """Sends what its channels hold. Each channel belongs to one thread; any thread sends for all.

    Provisional text waits until its channel's interval is over, and then for what the same step of the engine
    brings the others; a channel's first text waits for nobody. What must be told at once goes at once, in the
    order of its channel. A Redis outage never fails an answer: entries are dropped with a warning and readers
    fall back to the stored state.

    Args:
        client: where the streams are.
        gather_s: how long text that is due waits for that of others; 0: not at all.
    """

    def __init__(self, client: redis.Redis, *, gather_s: float = 0.0) -> None:
        self._client, self._gather_s = client, gather_s
        self._due = threading.Event()
        self._gathering: threading.Thread | None = None
        self._held = threading.Lock()  # what waits
        self._sending = threading.Lock()  # one at a time, so that a stream's entries keep their order
        self._entries: list[tuple[Channel, str, str]] = []
        self._with_text: dict[int, Channel] = {}

    def add_text(self, channel: Channel, claim: int, text: str) -> None:
        """Append provisional text of a claim, and send it when the channel is due."""
        with self._held:
            waiting = channel.waiting
            if waiting and waiting[-1][0] == claim:
                waiting[-1] = (claim, waiting[-1][1] + text)
            else:
                waiting.append((claim, text))
            self._with_text[id(channel)] = channel
            due = time.monotonic() - channel.sent_at >= channel.interval_s
        if not due:
            return
        if self._gather_s and channel.sent_at:
            self._gather()
        else:
            self._send()

    def drop_text(self, channel: Channel, claim: int | None = None) -> None:
        """Provisional text of a claim (None: of all) that was not sent is void."""
        with self._held:
            channel.waiting = [] if claim is None else [one for one in channel.waiting if one[0] != claim]

    def tell(self, channel: Channel, event: str, text: str) -> None:
        """Send an event with this payload now, behind all that was told before."""
        with self._held:
            self._take_text(channel)
            self._entries.append((channel, event, text))
        self._send()

    def _gather(self) -> None:
        if self._due.is_set():
            return
        with self._held:
            if self._gathering is None or not self._gathering.is_alive():
                self._gathering = threading.Thread(target=self._send_due, name="event-publisher", daemon=True)
                self._gathering.start()
        self._due.set()

    def _send_due(self) -> None:
        while True:
            self._due.wait()
            time.sleep(self._gather_s)
            self._due.clear()
            self._send()

    def _send(self) -> None:
        with self._sending:
            with self._held:
                entries = self._taken(time.monotonic())
            if entries:  # else another thread has sent ours with its own
                self._append(entries)

    def _taken(self, now: float) -> list[tuple[Channel, str, str]]:
        for channel in list(self._with_text.values()):
            if now - channel.sent_at >= channel.interval_s * _SOON:
                self._take_text(channel, now)
        entries, self._entries = self._entries, []
        return entries

    def _take_text(self, channel: Channel, now: float | None = None) -> None:
        if channel.waiting and now is not None:
            channel.sent_at = now
        for claim, text in channel.waiting:
            self._entries.append((channel, "delta", streams.as_text({"claim": claim, "text": text})))
        channel.waiting = []
        self._with_text.pop(id(channel), None)

    def _append(self, entries: list[tuple[Channel, str, str]]) -> None:
        now = time.monotonic()
        told = [
            streams.NewEntry(channel.query_id, event, text, event == "done" or now >= channel.renew_at)
            for channel, event, text in entries
        ]
        try:
            refused = streams.publish_all(self._client, told)
        except RedisError as error:
            refused = dict.fromkeys(range(len(told)), error)
        for place, entry in enumerate(told):
            if place in refused:
                named = {"query_id": entry.query_id, "event_name": entry.event, "why": str(refused[place])}
                log.warning("event_not_published", extra=named)
            elif entry.renew:
                entries[place][0].renew_at = now + get_settings().redis.stream_ttl_s / _RENEWALS
