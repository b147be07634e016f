"""What surrounds the content of a page: menus, banners, share bars, related links, comments."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Any

import regex

from ingest.parse.html_page import PageText
from ingest.parse.html_tree import drop, empty

FURNITURE_TAGS = frozenset({"nav", "footer", "menu", "dialog"})
_ROLES = "navigation banner contentinfo search dialog alertdialog menu menubar tablist toolbar"
_FURNITURE_ROLES = frozenset(_ROLES.split())
# Names that mean furniture wherever they stand.
_STRONG = (
    r"cookies?|consent|gdpr|breadcrumbs?|crumbs?|nav|navi|navbar|navigation|navlinks?|navheader|navfooter|navbox|docnav"
    r"|subnav|menu|footer?|masthead|topbar|shares?|sharing|sharebar|sharedaddy|socials?|follow-us|related|relatedposts"
    r"|recommend|recommended|recommendations?|recirc|outbrain|taboola|comments?|commentlist|disqus|respond"
    r"|advert(?:s|isement|ising)?|ads?|adsense|adbox|banner|promo|promotion|sponsor(?:ed)?|newsletter|subscribe"
    r"|subscription|signup|login|popup|modal|overlay|pagination|pager|paging|tag-?list|tag-?cloud|post-tags|author-?box"
    r"|author-?bio|about-?author|editsection|jump-link|catlinks|printfooter|noprint|sr-only|screen-reader-text"
    r"|visually-?hidden|skip|skip-?link|copyright|popular|trending|most-?read|more-?links|read-?more"
    r"|search-?(?:box|form|bar)|hot-?list|guess-?like|attribution|credits?|paywall|teasers?|prev-?next"
)
# Names that mean it only around links or labels: books call a boxed note a sidebar.
_WEAK = (
    r"side-?bar|widgets?|toc|table-of-contents|tools?|toolbar|tags?|rating|print|legal|rights|header|byline|meta|author"
    r"|aside|jump|info|extra|bottom|top|links?|hot|rank(?:ing)?|buttons?"
)
_STRONG_NAME = regex.compile(rf"(?:^|[\s_-])(?:{_STRONG})(?:$|[\s_-])")
_WEAK_NAME = regex.compile(rf"(?:^|[\s_-])(?:{_WEAK})(?:$|[\s_-])")
_NOTE_NAME = regex.compile(
    r"(?:^|[\s_-])(?:notes?|tip|hint|warning|caution|danger|important|admonition|callout|footnotes?)(?:$|[\s_-])"
)
_MEANT_EMPTY = frozenset({"br", "hr", "wbr", "td", "th", "tr", "body", "main", "article"})
_CELLS = frozenset({"li", "td", "th", "dt", "dd"})
# What such parts say, in short texts.
_STOCK_PHRASE = regex.compile(
    r"^(?:您|你)?(?:当前|所在|现在)?(?:的)?(?:所在)?位置[:：]|^当前位置|^(?:分享到|打印本页|关闭窗口|返回顶部|回到顶部|返回首页|返回列表)"
    r"|^(?:上一篇|下一篇|上一页|下一页|上一章|下一章)(?:[:：]|$)|ICP备|公网安备|网站标识码|^版权所有|^(?:扫一扫|扫码)(?:关注|分享|下载)"
    r"|^(?:youarehere|sharethis|sharethisarticle|skiptocontent|skiptomaincontent|backtotop|jumptocontent)"
    r"|allrightsreserved|^poweredby",
    regex.IGNORECASE,
)
_STOCK_CHARS = 120
_MAX_DECORATION = 500
_HUMP = regex.compile(r"(?<=[a-z])(?=[A-Z])")


class Sign(IntEnum):
    """How strongly a name or a tag says that something is furniture."""

    CONTENT = -1
    NONE = 0
    WEAK = 1
    STRONG = 2


def sign_of(element: Any) -> Sign:
    """What the element's tag, role, class and id say."""
    tag = element.tag
    if tag in ("html", "body", "main", "article", "h1", "table"):
        return Sign.NONE
    if tag in FURNITURE_TAGS or element.get("role") in _FURNITURE_ROLES:
        return Sign.STRONG
    if tag == "sup" and "reference" in (element.get("class") or ""):
        return Sign.STRONG
    sign = _sign_of_name(element.get("class"), element.get("id"))
    if sign is Sign.NONE and (tag == "aside" or element.get("role") == "complementary"):
        return Sign.STRONG
    return sign


@lru_cache(maxsize=8192)
def _sign_of_name(class_names: str | None, identifier: str | None) -> Sign:
    names = " ".join(filter(None, (class_names, identifier)))
    if not names:
        return Sign.NONE
    names = _HUMP.sub("-", names).lower()
    if _NOTE_NAME.search(names):
        return Sign.CONTENT
    if _STRONG_NAME.search(names):
        return Sign.STRONG
    return Sign.WEAK if _WEAK_NAME.search(names) else Sign.NONE


def is_link_list(element: Any, page: PageText) -> bool:
    """Several links that make up most of the text: a menu, whatever it is called."""
    chars = page.chars(element)
    linked = page.link_chars(element)
    if linked <= 0.6 * chars:
        return False
    links = page.links(element)
    return links >= 3 and (chars < 40 * links or linked > 0.85 * chars)


def is_furniture(element: Any, page: PageText) -> bool:
    """Whether an element in which no content was recognised is furniture as a whole."""
    sign = sign_of(element)
    if sign is Sign.STRONG or element.tag == "form":
        return True
    linked = page.link_chars(element)
    chars = page.chars(element)
    if sign is Sign.WEAK and (linked > 0.3 * chars or page.weight(element) < 60):
        return True
    if speaks_as_furniture(element, page):
        return True
    if linked <= 0.6 * chars or element.tag in _CELLS:
        return False
    return (is_link_list(element, page) or linked > 0.8 * chars) and not _is_announced(element, page)


def speaks_as_furniture(element: Any, page: PageText) -> bool:
    """Whether a short text is one of those that stand around content on any page."""
    first, last = page.span(element)
    if first == last or page.chars(element) > _STOCK_CHARS:
        return False
    return _STOCK_PHRASE.search(page.text(element)) is not None


def is_surely_furniture(element: Any, page: PageText) -> bool:
    """Whether an element is furniture even if it was taken for content."""
    sign = sign_of(element)
    if sign is Sign.STRONG or (sign is Sign.WEAK and page.link_chars(element) > 0.5 * page.chars(element)):
        return next(element.iter("h1"), None) is None
    return speaks_as_furniture(element, page)


def _is_announced(element: Any, page: PageText) -> bool:
    """Whether the text before the element ends in a colon: the links are what that text speaks of."""
    first, _ = page.span(element)
    return first > 0 and page.packed(first - 1).endswith((":", "："))


def drop_furniture(root: Any) -> None:
    """Remove what its tag alone names as furniture, and decoration. Changes `root`."""
    for element in list(root.iter("nav", "footer", "menu", "dialog", "header")):
        if element.tag != "header" or _is_page_header(element):
            drop(element)
    # Icons and second renderings; but an open dialog marks the whole page behind it in the same way.
    for element in root.xpath("//*[@aria-hidden='true']"):
        if sum(map(len, element.itertext())) <= _MAX_DECORATION:
            drop(element)


def is_thread(source: str) -> bool:
    """Whether the page says that it is a discussion (schema.org): then comments are its content."""
    return any(kind in source for kind in ("DiscussionForumPosting", "QAPage"))


def show_comments(root: Any) -> None:
    """Take away the names by which comments are told from content. Changes `root`."""
    for element in root.xpath("//*[contains(@class, 'omment') or contains(@id, 'omment')]"):
        element.attrib.pop("class", None)
        element.attrib.pop("id", None)


def drop_menus(page: PageText) -> None:
    """Remove empty elements and menus, so that less is left to look at. Changes the tree."""
    menus: list[Any] = []
    open_elements = [page.root]
    while open_elements:
        for child in list(open_elements.pop()):
            if child not in page:
                continue
            first, last = page.span(child)
            if first == last:
                if child.tag not in _MEANT_EMPTY and not (child.tail or "").strip():
                    drop(child)
            elif page.links(child) >= 3 and _is_menu(child, page):
                menus.append(child)
            elif page.has_blocks(child):
                open_elements.append(child)
    page.forget(menus)
    for menu in menus:
        empty(menu)


def _is_menu(element: Any, page: PageText) -> bool:
    if page.link_chars(element) <= 0.5 * page.chars(element) or element.tag in _CELLS or element.tag == "p":
        return False
    if sign_of(element) is Sign.STRONG:
        return True
    if not is_link_list(element, page) or _is_announced(element, page):
        return False
    return next(element.iter("main", "h1"), None) is None


def _is_page_header(header: Any) -> bool:
    if next(header.iter("h1"), None) is not None:
        return False
    return not any(a.tag in ("article", "main", "section") for a in header.iterancestors())
