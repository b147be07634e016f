"""The part of CSS that says whether text can be seen: inline styles and simple rules of a page's sheets."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import regex

Declarations = dict[str, str]
"""Property → value, in lower case, without `!important`."""

_MAX_CSS_CHARS = 2_000_000
_COMMENT = regex.compile(r"/\*.*?\*/", regex.DOTALL)
_BRACE = regex.compile(r"[{}]")
# One compound of a tag, classes and an id; anything with a combinator or a pseudo-class is left to browsers.
_SELECTOR = regex.compile(r"(?P<tag>[a-z][a-z0-9]*|\*)?(?P<parts>(?:[.#][\w-]+)*)", regex.IGNORECASE)
_PART = regex.compile(r"[.#][\w-]+")
_NUMBER = regex.compile(r"(-?\d*\.?\d+)\s*(px|em|rem|pt|%|vw|vh|ch|ex|in|cm|mm|)")
_HEX = regex.compile(r"#([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})")
_RGB = regex.compile(r"rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})(?:[\s,/]+([\d.]+%?))?\s*\)")
_NAMED_COLOURS = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "snow": (255, 250, 250),
    "ivory": (255, 255, 240),
}
_CLIPPED = regex.compile(r"rect\((?:\s*[01](?:px)?[\s,]*){4}\)|inset\(\s*(?:50|100)%")
_SCALED_AWAY = regex.compile(r"scale[xy]?\(\s*0(?:\.0+)?\s*[,)]")
_PIXELS_PER = {"": 1.0, "px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ch": 8.0, "ex": 8.0}
_FAR_PIXELS = -500.0
_LIGHT = 225
_SAME_COLOUR = 12  # closer than this in every channel cannot be told apart

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """A style rule; `rank` orders rules as the cascade does."""

    tag: str
    classes: frozenset[str]
    identifier: str
    declarations: Declarations
    rank: tuple[int, int, int, int]

    def fits(self, element: Any) -> bool:
        """Whether the rule applies to `element`."""
        if self.tag not in ("", "*", element.tag):
            return False
        if self.identifier and element.get("id") != self.identifier:
            return False
        return not self.classes or self.classes <= frozenset((element.get("class") or "").split())


def declarations_of(style: str) -> Declarations:
    """Read `name: value; …`."""
    found: Declarations = {}
    for part in style.lower().split(";"):
        name, colon, value = part.partition(":")
        if colon:
            found[name.strip()] = value.replace("!important", "").strip()
    return found


def rules_of(sheets: Iterable[str]) -> list[Rule]:
    """Simple rules that always hold: those inside `@media` and the like are left out."""
    rules: list[Rule] = []
    for selectors, body in _blocks("\n".join(sheets)[:_MAX_CSS_CHARS]):
        declarations: Declarations | None = None
        for selector in selectors.split(","):
            match = _SELECTOR.fullmatch(selector.strip())
            if match is None or not match.group():
                continue
            if declarations is None:
                declarations = declarations_of(body)
            rules.append(_rule(match, declarations, len(rules)))
    return rules


def _blocks(css: str) -> Iterator[tuple[str, str]]:
    if "/*" in css:
        css = _COMMENT.sub(" ", css)
    open_at: list[tuple[str, int]] = []
    last = 0
    for brace in _BRACE.finditer(css):
        if brace.group() == "{":
            open_at.append((css[last : brace.start()].rpartition(";")[2].strip(), brace.end()))
        elif open_at:
            prelude, start = open_at.pop()
            if not open_at and not prelude.startswith("@"):
                yield prelude, css[start : brace.start()]
        last = brace.end()


def _rule(match: regex.Match[str], declarations: Declarations, order: int) -> Rule:
    parts = _PART.findall(match.group("parts") or "")
    classes = frozenset(p[1:] for p in parts if p.startswith("."))
    identifiers = [p[1:] for p in parts if p.startswith("#")]
    tag = (match.group("tag") or "").lower()
    rank = (len(identifiers), len(classes), int(tag not in ("", "*")), order)
    return Rule(tag, classes, identifiers[0] if identifiers else "", declarations, rank)


def hides(style: Declarations) -> bool:
    """Whether text with this style cannot be seen, whatever surrounds it."""
    if style.get("display") == "none" or style.get("visibility") in ("hidden", "collapse"):
        return True
    if _is_zero(style.get("font-size")) or _is_zero(style.get("opacity")):
        return True
    if _pixels(style.get("text-indent")) <= _FAR_PIXELS:
        return True
    if is_transparent(style.get("color")):
        return True
    if _CLIPPED.search(style.get("clip", "")) or _CLIPPED.search(style.get("clip-path", "")):
        return True
    if _SCALED_AWAY.search(style.get("transform", "")):
        return True
    return _is_off_page(style) or _is_cut_off(style)


def background_of(style: Declarations) -> str:
    """What the style paints behind its text; empty when it says nothing about it."""
    if "background-image" in style:
        return style["background-image"]
    return style.get("background-color") or style.get("background") or ""


def may_matter(style: Declarations, backgrounds: Container[Colour]) -> bool:
    """Whether the style can hide something: by itself, or as text in one of the colours of `backgrounds`."""
    colour = colour_of(style.get("color"))
    if colour is not None and (min(colour) >= _LIGHT or colour in backgrounds or background_of(style)):
        return True
    return hides(style)


def _is_off_page(style: Declarations) -> bool:
    if style.get("position") not in ("absolute", "fixed", "relative"):
        return _pixels(style.get("margin-left")) <= _FAR_PIXELS
    return any(_pixels(style.get(side)) <= _FAR_PIXELS for side in ("left", "top", "right", "bottom"))


def _is_cut_off(style: Declarations) -> bool:
    if not any(
        style.get(name, "").startswith(("hidden", "clip"))
        for name in ("overflow", "overflow-x", "overflow-y")
    ):
        return False
    sizes = (style.get(name) for name in ("height", "width", "max-height", "max-width"))
    return any(
        size is not None and 0 <= _pixels(size) <= 1 and _NUMBER.match(size) is not None for size in sizes
    )


def _is_zero(value: str | None) -> bool:
    number = _NUMBER.fullmatch(value) if value else None
    return number is not None and float(number.group(1)) == 0


def _pixels(value: str | None) -> float:
    number = _NUMBER.match(value) if value else None
    return float(number.group(1)) * _PIXELS_PER.get(number.group(2), 0.0) if number else 0.0


def is_transparent(value: str | None) -> bool:
    """Whether the colour lets everything through."""
    if not value:
        return False
    rgb = _RGB.match(value)
    alpha = rgb.group(4) if rgb else None
    return value == "transparent" or (alpha is not None and float(alpha.rstrip("%") or 1) == 0)


def colour_of(value: str | None) -> Colour | None:
    """The colour at the start of `value`; None when it names none that is known."""
    if not value:
        return None
    if (rgb := _RGB.match(value)) is not None:
        return int(rgb.group(1)), int(rgb.group(2)), int(rgb.group(3))
    if (code := _HEX.match(value)) is not None:
        digits = code.group(1)
        if len(digits) < 6:
            digits = "".join(d * 2 for d in digits)
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    return _NAMED_COLOURS.get(value.split()[0])


def look_the_same(one: Colour, other: Colour) -> bool:
    """Whether text of one colour cannot be told from a background of the other."""
    return all(abs(a - b) <= _SAME_COLOUR for a, b in zip(one, other, strict=True))
