"""Incremental reader of `quote` answers: lines of `[n] "copied words" claim`.

One character at a time, so where the deltas are cut never matters. Only the claim is handed out as
provisional text; a line that does not begin with a marker and a quote is a claim that cites nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from generation.parse import Event, ParsedClaim, TextDelta, coalesced

_HEAD = re.compile(r'\[(\d{1,3})\] "([^"\n]*)"\s?')
_PARTIAL_HEAD = re.compile(r'\[\d{0,3}(?:\](?: (?:"[^"\n]*)?)?)?')
_STOPS = ".!?。！？"


@dataclass(frozen=True, slots=True)
class QuotedClaim(ParsedClaim):
    """A claim with the words that were copied for it; empty where the line had none."""

    quote: str = ""


@dataclass(slots=True)
class QuoteParser:
    """Feed deltas, get events; call `close` once at the end."""

    _ordinal: int = 0
    _held: str = ""  # of a line whose head is not complete
    _head: tuple[int, str] | None = None
    _text: str = ""
    _open: bool = field(default=False)  # the head is behind us, text flows

    def feed(self, delta: str) -> list[Event]:
        """Events that are certain after `delta`."""
        events: list[Event] = []
        for char in delta:
            self._take(char, events)
        return coalesced(events)

    def close(self, *, truncated: bool = False) -> list[Event]:
        """Events of what is still held; a line that was cut off is not complete."""
        events: list[Event] = []
        if not self._open and self._held and not _PARTIAL_HEAD.fullmatch(self._held):
            self._begin(events)
        self._end(events, complete=not truncated or self._text.rstrip()[-1:] in tuple(_STOPS))
        return coalesced(events)

    def _take(self, char: str, events: list[Event]) -> None:
        if char == "\n":
            if not self._open and self._held:
                self._begin(events)
            self._end(events, complete=True)
        elif self._open:
            self._append(char, events)
        else:
            self._held += char
            if (_HEAD.fullmatch(self._held) and char.isspace()) or (
                not _PARTIAL_HEAD.fullmatch(self._held) and not _HEAD.fullmatch(self._held)
            ):
                self._begin(events)

    def _begin(self, events: list[Event]) -> None:
        match = _HEAD.match(self._held)
        rest = self._held[match.end() :] if match else self._held
        self._head = (int(match[1]), match[2]) if match else None
        self._held, self._open = "", True
        for char in rest:
            self._append(char, events)

    def _append(self, char: str, events: list[Event]) -> None:
        if not self._text and char.isspace():
            return
        self._text += char
        events.append(TextDelta(self._ordinal, char))

    def _end(self, events: list[Event], *, complete: bool) -> None:
        text = self._text.rstrip()
        if text:
            marker, quote = self._head or (0, "")
            events.append(
                QuotedClaim(self._ordinal, text, (marker,) if self._head else (), complete, quote=quote)
            )
            self._ordinal += 1
        self._held, self._head, self._text, self._open = "", None, "", False
