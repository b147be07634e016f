"""Incremental reader of marked text: from the model's deltas to claims with their markers.

It works one character at a time, so where the deltas are cut never matters: the claims of any cutting are
those of the whole text, and the provisional text handed out for a claim, joined, is that claim's text.
Whatever may be the beginning of a marker, a line of white space or the end of a sentence is held back; a
marker has at most `MARKER_CHARS` characters, so nothing is held for ever.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MARKER_CHARS = 24
_MARKER_PREFIX = re.compile(r"\[\s*(?:\d{1,3}(?:\s*[,，、]\s*\d{1,3})*\s*[,，、]?\s*)?\]?$")
_MARKER = re.compile(r"\[\s*\d{1,3}(?:\s*[,，、]\s*\d{1,3})*\s*\]$")
_NUMBER = re.compile(r"\d{1,3}")
_STOPS = ".!?。！？"
_CLOSERS = "”’」』）)\"'"
_WIDE_STOPS = "。！？"
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|No|vs|etc|approx|e\.g|i\.e|Fig|Jr|Sr|Inc|Ltd|Co|U\.S|U\.K)\.$"
)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Provisional text of claim number `claim` (from 0)."""

    claim: int
    text: str


@dataclass(frozen=True, slots=True)
class ParsedClaim:
    """One sentence, without its markers.

    Attributes:
        markers: numbers as written, in order, without repeats; they may not exist in the evidence.
        complete: False when the text ended in the middle of it.
    """

    ordinal: int
    text: str
    markers: tuple[int, ...]
    complete: bool


Event = TextDelta | ParsedClaim


@dataclass(slots=True)
class ClaimParser:
    """Feed deltas, get events; call `close` once at the end."""

    _ordinal: int = 0
    _text: str = ""  # of the current claim, as handed out
    _space: str = ""  # white space that is text only if more text follows
    _held: str = ""  # may become a marker
    _markers: list[int] = field(default_factory=list[int])

    def feed(self, delta: str) -> list[Event]:
        """Events that are certain after `delta`."""
        events: list[Event] = []
        for char in delta:
            self._take(char, events)
        return coalesced(events)

    def close(self, *, truncated: bool = False) -> list[Event]:
        """Events of what is still held.

        Args:
            truncated: the text was cut off (token limit, abort). A dangling beginning of a marker is
                dropped either way.
        """
        events: list[Event] = []
        held, self._held = self._held, ""
        if held and not _NUMBER.search(held) and not truncated and held != "[":
            self._append(held, events)
        ends = self._text.rstrip(_CLOSERS)[-1:]
        self._end(events, complete=bool(self._markers) or (bool(ends) and ends in _STOPS) or not truncated)
        return coalesced(events)

    def _take(self, char: str, events: list[Event]) -> None:
        if self._held:
            candidate = self._held + char
            if len(candidate) <= MARKER_CHARS and _MARKER_PREFIX.match(candidate):
                self._held = candidate
                if char == "]":
                    self._close_bracket(events)
                return
            literal, self._held = self._held, ""
            for held in literal:
                self._plain(held, events)
        if char == "[":
            self._held = char
            return
        self._plain(char, events)

    def _close_bracket(self, events: list[Event]) -> None:
        held, self._held = self._held, ""
        if not _MARKER.match(held):
            for char in held:
                self._plain(char, events)
            return
        if not self._text:
            return  # a marker with no sentence before it cites nothing
        self._space = ""
        for number in map(int, _NUMBER.findall(held)):
            if number not in self._markers:
                self._markers.append(number)

    def _plain(self, char: str, events: list[Event]) -> None:
        if char.isspace():
            if self._text:
                self._space += char
            return
        if self._markers:
            if char in _STOPS and self._text[-1:] not in _STOPS:
                self._space = ""
                self._append(char, events)  # the marker stood before the full stop
                return
            if char in _CLOSERS + _STOPS and not self._space and self._text[-1:] in _STOPS:
                if char in _CLOSERS:
                    self._append(char, events)
                return
            self._end(events, complete=True)
        elif (self._space or char not in _CLOSERS + _STOPS) and self._at_stop():
            self._end(events, complete=True)
        self._append(char, events)

    def _at_stop(self) -> bool:
        """Whether the text so far is a whole sentence and the next visible character starts another."""
        body = self._text.rstrip(_CLOSERS)
        if not body or body[-1] not in _STOPS:
            return False
        if body[-1] in _WIDE_STOPS:
            return True
        return bool(self._space) and not _ABBREVIATION.search(body)

    def _append(self, chars: str, events: list[Event]) -> None:
        piece = (self._space if self._text else "") + chars
        self._space = ""
        self._text += piece
        events.append(TextDelta(self._ordinal, piece))

    def _end(self, events: list[Event], *, complete: bool) -> None:
        if self._text:
            events.append(ParsedClaim(self._ordinal, self._text, tuple(self._markers), complete))
            self._ordinal += 1
        self._text, self._space, self._markers = "", "", []


def coalesced(events: list[Event]) -> list[Event]:
    """Neighbouring deltas of one claim as one."""
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta) and last.claim == event.claim:
            merged[-1] = TextDelta(event.claim, last.text + event.text)
        else:
            merged.append(event)
    return merged
