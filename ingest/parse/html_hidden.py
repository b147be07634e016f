"""Text of a page that people cannot see.

Found by attributes, inline styles and simple rules of the page's own sheets. Nothing is fetched: what an
external sheet hides stays, and light text on a background that such a sheet may darken is taken as readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from ingest.parse.html_style import (
    Colour,
    Declarations,
    Rule,
    background_of,
    colour_of,
    declarations_of,
    hides,
    look_the_same,
    may_matter,
    rules_of,
)
from ingest.parse.html_tree import drop

_NEVER_HIDDEN = frozenset({"html", "body", "head"})
_WHITE = (255, 255, 255)
_MAX_LOOK = 500  # elements inside one whose style may be undone there


def sheets_of(root: Any) -> list[str]:
    """The style sheets in the page itself."""
    return [style.text for style in root.iter("style") if style.text]


def take_out_hidden(root: Any, sheets: Iterable[str], *, keep: bool) -> int:
    """Remove what people cannot see, or with `keep` make it look like the rest. Changes `root`.

    Args:
        root: without scripts and sheets.
        sheets: the page's own style sheets.
        keep: take away what hides it instead.

    Returns:
        Characters, white space apart, that are hidden.
    """
    hidden = _hidden(root, rules_of(sheets))
    chars = sum(len("".join(text.split())) for element in hidden for text in element.itertext())
    if not keep:
        for element in hidden:
            drop(element)
    else:
        for element in root.xpath("//*[@style or @hidden]"):
            element.attrib.pop("style", None)
            element.attrib.pop("hidden", None)
    return chars


def _hidden(root: Any, rules: list[Rule]) -> list[Any]:
    """The outermost hidden elements, in document order."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    styles = _Styles(root, rules)
    chosen = {e for e in styles.candidates() if e.tag not in _NEVER_HIDDEN and styles.hide(e)}
    if not chosen:
        return []
    outermost: list[Any] = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if element in chosen:
            outermost.append(element)
            walk.skip_subtree()
    return outermost


class _Styles:
    """Computed styles of the few elements for which they may matter."""

    def __init__(self, root: Any, rules: list[Rule]) -> None:
        self._root = root
        self._has_links = root.find('.//link[@rel="stylesheet"]') is not None
        self._known: dict[Any, Declarations] = {}
        self._rules: dict[str, list[Rule]] = {}
        self._keys: set[str] = set()  # those under which a rule may hide something
        backgrounds = {colour_of(background_of(rule.declarations)) for rule in rules}
        for rule in rules:
            key = _key_of(rule)
            self._rules.setdefault(key, []).append(rule)
            if may_matter(rule.declarations, backgrounds):
                self._keys.add(key)

    def candidates(self) -> Iterable[Any]:
        """Elements whose attributes or rules may hide them."""
        styled = self._root.xpath("//*[@style or @hidden] | //font[@color]")
        if not self._keys:
            return styled
        found = list(styled)
        verdicts: dict[tuple[str, str | None, str | None], bool] = {}
        for element in self._root.iter():
            names = (element.tag, element.get("class"), element.get("id"))
            verdict = verdicts.get(names)
            if verdict is None:
                verdict = verdicts[names] = not self._keys.isdisjoint(_keys_of(element))
            if verdict:
                found.append(element)
        return found

    def hide(self, element: Any) -> bool:
        """Whether the element's text cannot be seen."""
        if element.get("hidden") is not None:
            return True
        style = self._of(element)
        if hides(style):
            return style.get("display") == "none" or not self._is_undone_inside(element, style)
        colour = colour_of(style.get("color"))
        if colour is None or self._is_set_inside(element, "color"):
            return False
        background = self._background_of(element)
        return background is not None and look_the_same(colour, background)

    def _of(self, element: Any) -> Declarations:
        """The element's own declarations, weaker ones overridden."""
        known = self._known.get(element)
        if known is None:
            known = {}
            rules = [r for key in _keys_of(element) for r in self._rules.get(key, ()) if r.fits(element)]
            for rule in sorted(rules, key=lambda r: r.rank):
                known.update(rule.declarations)
            if element.tag == "font" and element.get("color"):
                known["color"] = element.get("color").lower()
            if element.get("bgcolor"):
                known["background-color"] = element.get("bgcolor").lower()
            if element.get("style"):
                known.update(declarations_of(element.get("style")))
            self._known[element] = known
        return known

    def _is_undone_inside(self, element: Any, style: Declarations) -> bool:
        """Zero-size text is a common way to close gaps between boxes that set a size of their own."""
        if "font-size" in style:
            return self._is_set_inside(element, "font-size")
        return "visibility" in style and self._is_set_inside(element, "visibility")

    def _is_set_inside(self, element: Any, name: str) -> bool:
        return any(name in self._of(inner) for inner in islice(element.iterdescendants(), _MAX_LOOK))

    def _background_of(self, element: Any) -> Colour | None:
        """The colour behind the element's text; None when it cannot be known."""
        at = element
        while at is not None and at.tag != "html":
            value = background_of(self._of(at))
            if "url(" in value or "gradient" in value:
                return None
            if value and value not in ("none", "transparent", "inherit"):
                return colour_of(value)
            if self._has_links and at.tag != "body" and (at.get("class") or at.get("id")):
                return None
            at = at.getparent()
        return _WHITE


def _key_of(rule: Rule) -> str:
    if rule.identifier:
        return f"#{rule.identifier}"
    return f".{next(iter(rule.classes))}" if rule.classes else rule.tag or "*"


def _keys_of(element: Any) -> list[str]:
    keys = ["*", element.tag]
    if (names := element.get("class")) is not None:
        keys.extend(f".{name}" for name in names.split())
    if (identifier := element.get("id")) is not None:
        keys.append(f"#{identifier}")
    return keys
