"""Formulas as one line of text, `x = (-b ± √(b^2-4ac))/(2a)`: from OMML (Office) and MathML (ODF)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import regex

from ingest.parse.ooxml import local

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_DELETED = frozenset({"del", "moveFrom", "annotation", "annotation-xml"})
_SIMPLE = regex.compile(r"[+-]?\d+(?:[.,]\d+)?|\p{L}\p{M}*|\p{S}|∞")
_RELATIONS = "=<>≤≥≠≈→±∓∈⊂∪∩⇒"
_ACCENT_BAR = "\u0305"


def linear(element: Any) -> str:
    """Text of an `m:oMath`, an `m:oMathPara` or a MathML `math` element, on one line."""
    return _spaced(" ".join(_text(element).split()))


def _spaced(text: str) -> str:
    """Spaces around relations, as they are set in print; not inside of sub- and superscripts."""
    out: list[str] = []
    tight: list[bool] = []
    for at, char in enumerate(text):
        before = text[at - 1] if at else ""
        if char == "(":
            tight.append(before in ("_", "^") or bool(tight and tight[-1]))
        elif char == ")" and tight:
            tight.pop()
        relation = char in _RELATIONS and (before.isalnum() or before in ")]}") and before
        if relation and not (tight and tight[-1]):
            out.append(f" {char} ")
        else:
            out.append(char)
    return " ".join("".join(out).split())


def _text(element: Any) -> str:
    word = local(element)
    if not word or word in _DELETED or word.endswith("Pr"):
        return ""
    if word in _FORMS:
        return _FORMS[word](element)
    if word in ("t", "mi", "mn", "mo", "mtext", "ms"):
        return _token(element, word)
    return _joined(element)


def _token(element: Any, word: str) -> str:
    text = "".join(element.itertext())
    return f" {text.strip()} " if word == "mo" and text.strip() in tuple(_RELATIONS) else text


def _joined(children: Iterable[Any], glue: str = "") -> str:
    return glue.join(t for t in (_text(c) for c in children) if t)


def _part(element: Any, name: str) -> str:
    """Text of an OMML argument, empty when it is missing."""
    part = element.find(_M + name)
    return "" if part is None else _joined(part).strip()


def _sign(element: Any, name: str, default: str) -> str:
    """A character that OMML keeps as a property; missing means the default, empty means none."""
    properties = element.find(f"{_M}{local(element)}Pr")
    sign = None if properties is None else properties.find(_M + name)
    return default if sign is None else sign.get(_M + "val", "")


def _group(text: str) -> str:
    """Brackets around anything longer than one number, letter or sign."""
    text = text.strip()
    return text if not text or _SIMPLE.fullmatch(text) or _is_bracketed(text) else f"({text})"


def _is_bracketed(text: str) -> bool:
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and at < len(text) - 1:
            return False
    return depth == 0


def _scripts(base: str, below: str = "", above: str = "") -> str:
    base = base if _SIMPLE.fullmatch(base) or base.isalpha() or not base else _group(base)
    return base + (f"_{_group(below)}" if below else "") + (f"^{_group(above)}" if above else "")


def _root(base: str, degree: str) -> str:
    sign = {"3": "∛", "4": "∜", "2": "", "": ""}.get(degree)
    if sign is None:
        return f"{_group(degree)}√{_group(base)}"
    return (sign or "√") + _group(base)


def _fraction(above: str, below: str) -> str:
    return f"{_group(above)}/{_group(below)}"


def _nary(element: Any) -> str:
    sign = _sign(element, "chr", "∫")
    return f"{_scripts(sign, _part(element, 'sub'), _part(element, 'sup'))} {_part(element, 'e')}"


def _delimited(element: Any) -> str:
    parts = [_joined(e).strip() for e in element.findall(_M + "e")]
    separator = _sign(element, "sepChr", "|")
    body = f"{separator} ".join(parts) if separator == "," else separator.join(parts)
    return _sign(element, "begChr", "(") + body + _sign(element, "endChr", ")")


def _matrix(element: Any) -> str:
    rows = [r for r in element if local(r) in ("mr", "mtr", "mlabeledtr")]
    return "[" + "; ".join(", ".join(_joined(cell).strip() for cell in _cells(r)) for r in rows) + "]"


def _cells(row: Any) -> list[Any]:
    return [c for c in row if local(c) in ("e", "mtd")]


def _accent(element: Any) -> str:
    return _part(element, "e") + _sign(element, "chr", "\u0302")


def _function(element: Any) -> str:
    name, argument = _part(element, "fName"), _part(element, "e")
    return f"{name}{argument}" if argument.startswith("(") else f"{name} {argument}"


def _children(element: Any) -> list[str]:
    """Texts of MathML children; missing ones are empty."""
    found = [_text(c).strip() for c in element if local(c)]
    return found + [""] * (3 - len(found))


def _fenced(element: Any) -> str:
    inner = ", ".join(t for t in (_text(c).strip() for c in element) if t)
    return element.get("open", "(") + inner + element.get("close", ")")


_FORMS: dict[str, Callable[[Any], str]] = {
    "f": lambda e: _fraction(_part(e, "num"), _part(e, "den")),
    "rad": lambda e: _root(_part(e, "e"), _part(e, "deg")),
    "sSup": lambda e: _scripts(_part(e, "e"), above=_part(e, "sup")),
    "sSub": lambda e: _scripts(_part(e, "e"), _part(e, "sub")),
    "sSubSup": lambda e: _scripts(_part(e, "e"), _part(e, "sub"), _part(e, "sup")),
    "sPre": lambda e: _scripts("", _part(e, "sub"), _part(e, "sup")) + _part(e, "e"),
    "limLow": lambda e: _scripts(_part(e, "e"), _part(e, "lim")),
    "limUpp": lambda e: _scripts(_part(e, "e"), above=_part(e, "lim")),
    "nary": _nary,
    "d": _delimited,
    "m": _matrix,
    "eqArr": lambda e: "; ".join(_joined(c).strip() for c in e.findall(_M + "e")),
    "acc": _accent,
    "bar": lambda e: _part(e, "e") + _ACCENT_BAR,
    "func": _function,
    "oMathPara": lambda e: _joined(e, " "),
    "mfrac": lambda e: _fraction(*_children(e)[:2]),
    "msqrt": lambda e: _root(_joined(e), ""),
    "mroot": lambda e: _root(*_children(e)[:2]),
    "msup": lambda e: _scripts(_children(e)[0], above=_children(e)[1]),
    "msub": lambda e: _scripts(*_children(e)[:2]),
    "msubsup": lambda e: _scripts(*_children(e)[:3]),
    "munder": lambda e: _scripts(*_children(e)[:2]),
    "mover": lambda e: _scripts(_children(e)[0], above=_children(e)[1]),
    "munderover": lambda e: _scripts(*_children(e)[:3]),
    "mtable": _matrix,
    "mfenced": _fenced,
}
