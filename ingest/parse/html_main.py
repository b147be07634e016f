"""Which part of a page is its content. Works on the tree, so every kept block still knows its line."""

from __future__ import annotations

from typing import Any

import regex

_NEVER_SHOWN = (
    "script style noscript template svg iframe object embed canvas audio video button select input textarea "
    "datalist head dialog map"
)
_NEVER_TEXT = frozenset(_NEVER_SHOWN.split())
_FURNITURE_TAGS = frozenset({"nav", "footer", "aside", "menu", "form"})
_ROLES = "navigation banner contentinfo complementary search dialog alertdialog menu menubar"
_FURNITURE_ROLES = frozenset(_ROLES.split())
_HIDDEN_STYLE = regex.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])",
    regex.IGNORECASE,
)
_FURNITURE_NAME = regex.compile(
    r"(?:^|[\s_-])(?:cookies?|consent|gdpr|breadcrumbs?|crumbs|nav|navbar|navigation|navbox|menu|sidebar|side-?bar"
    r"|footer|foot|masthead|topbar|toolbar|share|sharing|sharedaddy|social|related|recommend(?:ed|ations?)?|recirc"
    r"|comments?|comment-?list|disqus|respond|advert(?:s|isement|ising)?|ads?|adsense|banner|promo|sponsor(?:ed)?"
    r"|newsletter|subscribe|subscription|signup|login|popup|modal|overlay|pagination|pager|paging|tags?|tag-?list"
    r"|widget|byline-?share|print|skip|jump|toc|editsection|mw-jump-link|catlinks|printfooter|noprint|hidden"
    r"|sr-only|screen-reader-text|visually-?hidden|copyright|legal|rating|author-?box|popular|trending|more-?links"
    r"|tools|search(?:box|form)?|hot-?list|guess-?like)(?:$|[\s_-])",
    regex.IGNORECASE,
)
_PROSE_TAGS = (
    "p td th li dd dt pre blockquote div section article main body figcaption span font b strong em i code "
    "h1 h2 h3 h4 h5 h6 center"
)
_PROSE_PARENTS = frozenset(_PROSE_TAGS.split())
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
_MAIN_PATHS = ('//*[@itemprop="articleBody"]', "//main", '//*[@role="main"]', "//article")
# A container counts as the content when it holds this share of the page's prose.
_HOLDS = 0.8
_LINKY = 0.6


def prune(root: Any, *, hidden_only: bool = False) -> None:
    """Remove what is never shown and, unless `hidden_only`, what is page furniture. Changes `root`."""
    total = _text_length(root)
    for element in list(root.iter()):
        if element is root or not isinstance(element.tag, str) or element.getparent() is None:
            continue
        if _is_hidden(element) or (not hidden_only and _is_furniture(element, total)):
            _drop(element)


def find_main(root: Any) -> Any:
    """The smallest element that holds most of the page's prose, without its furniture. Changes `root`."""
    prune(root)
    body = root.find("body")
    body = root if body is None else body
    prose = _prose_by_element(body)
    whole = prose.get(body, 0)
    if not whole:
        return body
    for path in _MAIN_PATHS:
        found = [e for e in root.xpath(path) if prose.get(e, 0) >= 0.5 * whole]
        if len(found) == 1:
            return found[0]
    return _descend(body, prose)


def _is_hidden(element: Any) -> bool:
    if element.tag in _NEVER_TEXT:
        return True
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    style = element.get("style")
    return style is not None and _HIDDEN_STYLE.search(style) is not None


def _is_furniture(element: Any, total: int) -> bool:
    tag = element.tag
    if tag in ("html", "body", "main", "article", "h1"):
        return False
    if tag in _FURNITURE_TAGS or element.get("role") in _FURNITURE_ROLES:
        return (
            tag != "form" or _text_length(element) < 0.5 * total
        )  # some sites wrap the whole page in a form
    if tag == "header":
        return not any(a.tag in ("article", "main", "section") for a in element.iterancestors())
    if tag == "sup" and "reference" in (element.get("class") or ""):
        return True
    name = f"{element.get('class') or ''} {element.get('id') or ''}"
    if name != " " and _FURNITURE_NAME.search(name) and _text_length(element) < 0.4 * total:
        return True
    return tag in ("ul", "ol", "div", "table", "p", "dl", "section", "td") and _is_link_list(element)


def _is_link_list(element: Any) -> bool:
    """Three or more links that make up most of the text: a menu, whatever it is called."""
    links = element.findall(".//a")
    if len(links) < 3:
        return False
    text = _text_length(element)
    linked = sum(_text_length(link) for link in links)
    return linked > _LINKY * text and (text / len(links) < 40 or linked > 0.85 * text)


def _prose_by_element(body: Any) -> dict[Any, int]:
    """Characters of running text (not link text, not short labels) under each element."""
    prose: dict[Any, int] = {}
    for element in body.iter():
        if not isinstance(element.tag, str) or element.tag not in _PROSE_PARENTS:
            own = (element.tail or "") if isinstance(element.tag, str) else ""
            holder = element.getparent()
        else:
            own, holder = (element.text or ""), element
            if element is not body and element.tail and (parent := element.getparent()) is not None:
                _credit(prose, parent, element.tail)
        if holder is not None and own:
            _credit(prose, holder, own)
    return prose


def _credit(prose: dict[Any, int], holder: Any, text: str) -> None:
    text = text.strip()
    weight = len(text) + 2 * len(_CJK.findall(text))
    if weight < 25:
        return
    if holder.tag == "a" or any(a.tag == "a" for a in holder.iterancestors()):
        return
    while holder is not None:
        prose[holder] = prose.get(holder, 0) + weight
        holder = holder.getparent()


def _descend(body: Any, prose: dict[Any, int]) -> Any:
    at = body
    whole = prose.get(body, 0)
    while True:
        inner = [c for c in at if prose.get(c, 0) >= _HOLDS * whole]
        if not inner or inner[0].tag in (
            "p",
            "table",
            "tbody",
            "tr",
            "ul",
            "ol",
            "pre",
            "blockquote",
            "span",
        ):
            return at
        at = inner[0]


def _text_length(element: Any) -> int:
    return sum(len(t.strip()) for t in element.itertext())


def _drop(element: Any) -> None:
    """Remove the element but keep the text after it."""
    parent = element.getparent()
    tail = element.tail or ""
    before = element.getprevious()
    if tail:
        if before is not None:
            before.tail = (before.tail or "") + " " + tail
        else:
            parent.text = (parent.text or "") + " " + tail
    parent.remove(element)
