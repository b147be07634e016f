"""Invitations (iCalendar) as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from ingest.parse.model import Block, BlockKind, Fragment

_FOLD = regex.compile(r"\r?\n[ \t]")
_PROPERTY = regex.compile(r"""([A-Za-z-]+)((?:;[^:";]*+(?:"[^"]*+"[^:";]*+)?)*+):(.*)""")
_TIME = regex.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?")
_NAME = regex.compile(r';CN=(?:"([^"]*)"|([^;:]*))', regex.IGNORECASE)
_ZONE = regex.compile(r';TZID=(?:"([^"]*)"|([^;:]*))', regex.IGNORECASE)
_SHOWN = {
    "SUMMARY": "Event",
    "DTSTART": "Start",
    "DTEND": "End",
    "DUE": "Due",
    "LOCATION": "Place",
    "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendee",
    "DESCRIPTION": "Description",
}
_EACH_AT_MOST = 20


def calendar_blocks(text: str, *, description: bool = True) -> list[Block]:
    """Events and tasks of a calendar, one line for each property.

    Args:
        text: an iCalendar object, decoded.
        description: also the free text; off where the message says the same.
    """
    counts: dict[str, int] = {}
    blocks: list[Block] = []
    for name, told in _told(text):
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > _EACH_AT_MOST or (name == "DESCRIPTION" and not description):
            continue
        blocks.append(Block(BlockKind.PARAGRAPH, (Fragment(f"{_SHOWN[name]}: {told}", ""),)))
    return blocks


def _told(text: str) -> Iterator[tuple[str, str]]:
    inside: list[str] = []
    for line in _FOLD.sub("", text).splitlines():
        found = _PROPERTY.fullmatch(line.strip())
        if found is None:
            continue
        name, parameters, value = found.group(1).upper(), found.group(2), found.group(3)
        if name == "BEGIN":
            inside.append(value.strip().upper())
        elif name == "END" and inside:
            inside.pop()
        elif name in _SHOWN and inside and inside[-1] in ("VEVENT", "VTODO") and value.strip():
            yield name, _value(name, parameters, value.strip())


def _value(name: str, parameters: str, value: str) -> str:
    if name in ("DTSTART", "DTEND", "DUE"):
        return _time(value, parameters)
    if name in ("ORGANIZER", "ATTENDEE"):
        known = _NAME.search(parameters)
        address = regex.sub(r"^mailto:", "", value, flags=regex.IGNORECASE)
        return f"{known.group(1) or known.group(2)} <{address}>" if known else address
    return " ".join(
        regex.sub(r"\\([nN,;\\])", lambda m: " " if m.group(1) in "nN" else m.group(1), value).split()
    )


def _time(value: str, parameters: str) -> str:
    found = _TIME.fullmatch(value)
    if found is None:
        return value
    year, month, day, hour, minute, utc = found.groups()
    if hour is None:
        return f"{year}-{month}-{day}"
    zone = _ZONE.search(parameters)
    place = " UTC" if utc else f" ({zone.group(1) or zone.group(2)})" if zone else ""
    return f"{year}-{month}-{day} {hour}:{minute}{place}"
