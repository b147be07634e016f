"""JSON with the place of every value in the source; numbers as written, double names kept.

The standard library's reader tells no offsets, rounds numbers and keeps only the last of two equal names.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

_TOKEN = regex.compile(
    r"""[ \t\r\n\ufeff]*+(?:
      (?P<string>"(?:[^"\\]|\\.)*+")
    | (?P<scalar>-?(?:Infinity|\d[\d.eE+-]*+)|true|false|null|NaN)
    | (?P<mark>[\[\]{},:])
    )""",
    regex.VERBOSE | regex.DOTALL,
)
_BLANK = regex.compile(r"[ \t\r\n\ufeff]*+")
_ESCAPE = regex.compile(r"(?:\\(?:u[0-9A-Fa-f]{4}|.))+", regex.DOTALL)
_ONE_ESCAPE = regex.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", regex.DOTALL)
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}
MAX_DEPTH = 200


@dataclass(slots=True)
class Scalar:
    """A string, number, `true`, `false` or `null`, at `[start, end)` of the source, quotes included."""

    start: int
    end: int
    is_string: bool


@dataclass(slots=True)
class Items:
    """An array."""

    start: int
    values: list[Value]


@dataclass(slots=True)
class Fields:
    """An object; its names in order, equal ones too."""

    start: int
    names: list[str]
    values: list[Value]


Value = Scalar | Items | Fields


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a string: `text`, which takes `length` characters at `start`; escapes stand apart."""

    text: str
    start: int
    length: int


class NotJson(ValueError):
    """The text is not JSON."""


def scan(text: str, start: int = 0) -> tuple[Value, int]:
    """Read the value that begins at `start`.

    Returns:
        The value, and the offset of the first character after it that is not white space.

    Raises:
        NotJson: it is no complete value, or deeper than `MAX_DEPTH`.
    """
    return _Scan(text, start).value()


class _Scan:
    """One pass with a stack of its own, so that deep nesting ends in an error and not in a crash."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = start

    def value(self) -> tuple[Value, int]:
        stack: list[Items | Fields] = []
        while True:
            done = self._open(stack)
            while done is not None:
                if not stack:
                    return done, _after_blank(self._text, self._at)
                stack[-1].values.append(done)
                done = self._next(stack)

    def _open(self, stack: list[Items | Fields]) -> Value | None:
        """Read a scalar or an empty container, or push a container whose first value comes next."""
        kind, start, end = self._token()
        if kind != "mark":
            return Scalar(start, end, kind == "string")
        mark = self._text[start]
        if mark not in "[{" or len(stack) >= MAX_DEPTH:
            raise NotJson(f"unexpected {mark} at {start}")
        container: Items | Fields = Items(start, []) if mark == "[" else Fields(start, [], [])
        if self._peek() == ("]" if mark == "[" else "}"):
            self._token()
            return container
        stack.append(container)
        if isinstance(container, Fields):
            self._name(container)
        return None

    def _next(self, stack: list[Items | Fields]) -> Value | None:
        """After a value: a comma leads to the next one (None), a bracket ends the container."""
        container = stack[-1]
        _, start, _ = self._token()
        mark = self._text[start]
        if mark == ",":
            if isinstance(container, Fields):
                self._name(container)
            return None
        if mark != ("]" if isinstance(container, Items) else "}"):
            raise NotJson(f"unexpected {mark} at {start}")
        return stack.pop()

    def _name(self, fields: Fields) -> None:
        kind, start, end = self._token()
        _, colon, _ = self._token()
        if kind != "string" or self._text[colon] != ":":
            raise NotJson(f"a name is missing at {start}")
        fields.names.append("".join(piece.text for piece in pieces(self._text, start + 1, end - 1)))

    def _peek(self) -> str:
        return self._text[_after_blank(self._text, self._at) :][:1] if self._at < len(self._text) else ""

    def _token(self) -> tuple[str, int, int]:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:
            raise NotJson(f"no value at {self._at}")
        self._at = found.end()
        return found.lastgroup, *found.span(found.lastgroup)


def pieces(text: str, start: int, end: int) -> list[Piece]:
    """The inside of a string at `[start, end)`, cut where escapes begin and end."""
    if text.find("\\", start, end) < 0:
        return [Piece(text[start:end], start, end - start)]
    found: list[Piece] = []
    at = start
    for escape in _ESCAPE.finditer(text, start, end):
        if escape.start() > at:
            found.append(Piece(text[at : escape.start()], at, escape.start() - at))
        found.append(Piece(_unescaped(escape.group()), escape.start(), len(escape.group())))
        at = escape.end()
    if at < end:
        found.append(Piece(text[at:end], at, end - at))
    return found


def _unescaped(escapes: str) -> str:
    units = "".join(
        chr(int(one[1], 16)) if one[1] else _SHORT.get(str(one[2]), str(one[2]))
        for one in _ONE_ESCAPE.finditer(escapes)
    )
    # Two halves of a pair become one character; a half alone stays and is replaced when the text is cleaned.
    return (
        units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if _paired(units)
        else units
    )


def _paired(units: str) -> bool:
    return regex.search(r"[\ud800-\udbff][\udc00-\udfff]", units) is not None


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
