"""Inline markup that plain text cannot carry: raised and lowered text, formulas, marks of footnotes."""

from __future__ import annotations

from typing import Any

import regex

from ingest.parse.html_page import HEADING_TAGS
from ingest.parse.html_tree import drop

_RAISED = dict(zip("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ", strict=True))
_LOWERED = dict(zip("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎", strict=True))
_FOOTNOTE_MARK = regex.compile(r"[\[(〔［]?\s*(?:注|note)?\s*[\d*†‡§a-z]{1,4}\s*[\])〕］]?", regex.IGNORECASE)
_STYLE_WRAPPER = regex.compile(r"^\{\\(?:displaystyle|textstyle)\s*(.*)\}$", regex.DOTALL)
_FORMULA_CLASS = regex.compile(
    r"(?:^|[\s_-])(?:tex|latex|math|formula|equation|katex|mathjax)(?:$|[\s_-])", regex.IGNORECASE
)
_MAX_MATH_DEPTH = 60
_SELF_LINKS = frozenset("¶#§🔗∞")
_OPERATORS = {"mfrac": "/", "msup": "^", "msub": "_", "mover": "^", "munder": "_"}


def write_out_inline(root: Any) -> None:
    """Turn formulas, superscripts and subscripts into text; drop what headings link to themselves with."""
    for element in list(root.iter("math", "m:math", "mml:math", "img", "sup", "sub")):
        if element.tag == "img":
            if element.get("alt") and _FORMULA_CLASS.search(element.get("class") or ""):
                element.text = f" {element.get('alt')} "
                element.tag = "span"
        elif element.tag in ("sup", "sub"):
            _write_script(element)
        else:
            _replace(element, f" {_formula(element)} ")

    for heading in root.iter(*HEADING_TAGS):
        for link in list(heading.iter("a")):
            if "".join(link.itertext()).strip() in _SELF_LINKS:
                drop(link)


def _write_script(element: Any) -> None:
    text = "".join(element.itertext()).strip()
    if not text:
        return
    if element.tag == "sup" and _is_footnote_mark(element, text):
        drop(element)
        return
    table = _RAISED if element.tag == "sup" else _LOWERED
    if all(c in table for c in text) and (text != "n" or element.tag == "sup"):
        _replace(element, "".join(table[c] for c in text))


def _is_footnote_mark(element: Any, text: str) -> bool:
    if "reference" in (element.get("class") or "").split():
        return True
    link = next(element.iter("a"), None)
    links = link is not None and "#" in (link.get("href") or "")
    return links and _FOOTNOTE_MARK.fullmatch(text) is not None


def _replace(element: Any, text: str) -> None:
    for child in list(element):
        element.remove(child)
    element.text = text


def _formula(math: Any) -> str:
    """The formula as its author wrote it, else read out of its markup."""
    written = math.get("alttext")
    if not written:
        for element in math.iter():
            if _local(element) == "annotation" and "tex" in (element.get("encoding") or "").lower():
                written = "".join(element.itertext())
                break
    if written:
        written = written.strip()
        wrapped = _STYLE_WRAPPER.match(written)
        return wrapped.group(1).strip() if wrapped else written
    return _read_math(math, 0).strip()


def _read_math(element: Any, depth: int) -> str:
    name = _local(element)
    if name in ("annotation", "annotation-xml"):
        return ""
    if depth > _MAX_MATH_DEPTH:
        return "".join(element.itertext()).strip()
    parts = [_read_math(child, depth + 1) for child in element]
    if name in _OPERATORS and len(parts) == 2:
        return f"{_grouped(parts[0])}{_OPERATORS[name]}{_grouped(parts[1])}"
    if name in ("msubsup", "munderover") and len(parts) == 3:
        return f"{_grouped(parts[0])}_{_grouped(parts[1])}^{_grouped(parts[2])}"
    if name == "mroot" and len(parts) == 2:
        return f"root({parts[0]}, {parts[1]})"
    own = (element.text or "").strip()
    if name == "msqrt":
        return f"√({own}{''.join(parts)})"
    if name == "mo" and own and own not in "()[]{}|,.⁡⁢":
        return f" {own} "
    joint = "; " if name == "mtable" else ", " if name == "mtr" else ""
    return own + joint.join(parts)


def _grouped(part: str) -> str:
    part = part.strip()
    return part if len(part) <= 1 or part.isalnum() else f"({part})"


def _local(element: Any) -> str:
    return element.tag.rpartition(":")[2] if isinstance(element.tag, str) else ""
