"""What a page says of itself: title, author, dates, description, language."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import regex

_MAX_JSON_CHARS = 500_000
_MAX_JSON_NODES = 5_000
_MAX_VALUE = 500
# In order of preference; names as pages write them, in lower case.
_META = {
    "author": (
        "author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "sailthru.author",
    ),
    "published": (
        "article:published_time", "datepublished", "pubdate", "publishdate", "publish-date", "dc.date.issued",
        "dcterms.issued", "dc.date", "dcterms.date", "dcterms.created", "citation_publication_date",
        "sailthru.date", "parsely-pub-date", "og:pubdate", "date",
    ),
    "modified": (
        "article:modified_time", "datemodified", "og:updated_time", "dcterms.modified", "dc.date.modified",
        "last-modified", "lastmod",
    ),
    "description": (
        "description", "og:description", "dc.description", "dcterms.description", "twitter:description",
    ),
}  # fmt: skip
_JSON = {"published": "datePublished", "modified": "dateModified", "description": "description"}
_DATES = frozenset({"published", "modified"})
_DATE = regex.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d{2})\s*[-/.年]\s*(?P<month>\d{1,2})\s*[-/.月]\s*(?P<day>\d{1,2})(?!\d)(?:\s*日)?"
    r"(?:\s*[T\s]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?(?:\.\d+)?"
    r"\s*(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"
)
_LABELLED_DATE = regex.compile(
    r"(?:发布(?:时间|日期|于)|发表(?:时间|于)|成文日期|发文日期|印发日期|published(?: on)?|posted on)"
    r"\s*[:：]?\s*(?=(?:19|20)\d{2})",
    regex.IGNORECASE,
)
_LABELLED_AUTHOR = regex.compile(
    r"(?:^|[\s|　])(?:作者|撰文|记者)\s*[:：]\s*([\p{L}·•\.\- ]{2,20}?)(?=$|[\s|　,，;；])"
)
_LANGUAGE = regex.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_HEAD_CHARS = 600  # after the headline, where a byline stands
_NEAR_CHARS = 60  # where a date without a label is that of the page


def document_title(title: str, headline: str, site: str) -> str:
    """The title without the name of the site: the headline where the title repeats it."""
    if not title:
        return headline
    if len(headline) >= 2 and headline in title:
        return headline
    for mark in (" - ", " | ", "_", " – ", " — ", "｜", "-"):
        rest, parts, last = title.rpartition(mark)
        if parts and site and last.strip() == site:
            return rest.strip()
    return title


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What a page says of itself.

    Attributes:
        title: as its author gave it, often with the name of the site.
        site: the site's name.
        properties: author, dates in ISO 8601, description, language.
    """

    title: str
    site: str
    properties: dict[str, str]


def facts_of(root: Any) -> PageFacts:
    """Read the page's head, its microdata and its JSON-LD; `root` still has its scripts."""
    metas = _metas(root)
    found = root.find(".//title")
    title = " ".join("".join(found.itertext()).split()) if found is not None else ""
    return PageFacts(
        title or metas.get("og:title", ""), metas.get("og:site_name", ""), _properties(root, metas)
    )


def _properties(root: Any, metas: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    linked = _linked_data(root)
    marked = _marked(root)
    for name, keys in _META.items():
        candidates = [metas.get(key, "") for key in keys]
        if name in _JSON:
            candidates.append(linked.get(_JSON[name], ""))
        elif name == "author":
            candidates.append(linked.get("author", ""))
        candidates.extend(marked.get(name, ()))
        _put(found, name, candidates)
    language = (
        root.get("lang")
        or root.get("xml:lang")
        or metas.get("content-language")
        or metas.get("og:locale", "")
    )
    if match := _LANGUAGE.match(language.strip()):
        found["language"] = match.group().replace("_", "-")
    return found


def byline_of(body: Any) -> dict[str, str]:
    """Author and date as the line under the headline gives them (`发布时间：2024-03-05 作者：…`)."""
    headline = next(body.iter("h1", "h2"), None)
    if headline is None:
        return {}
    head = _text_after(headline, body)
    found: dict[str, str] = {}
    label = _LABELLED_DATE.search(head)
    if label is not None:
        _put(found, "published", [head[label.end() : label.end() + 40]])
    else:
        _put(found, "published", [head[:_NEAR_CHARS]])
    if author := _LABELLED_AUTHOR.search(head):
        found["author"] = author.group(1).strip()
    return found


def _text_after(element: Any, root: Any) -> str:
    """The beginning of the text that follows `element`."""
    parts: list[str] = []
    room = _HEAD_CHARS
    while element is not root and room > 0:
        tail = [element.tail or ""]
        for text in chain(
            tail, (t for sibling in element.itersiblings() for t in (*sibling.itertext(), "\n"))
        ):
            parts.append(text)
            room -= len(text)
            if room <= 0:
                break
        element = element.getparent()
    return "".join(parts)[:_HEAD_CHARS]


def iso_date(text: str) -> str | None:
    """The first date in `text` in ISO 8601, with its time when there is one."""
    match = _DATE.search(text)
    if match is None:
        return None
    year, month, day = (int(match.group(g)) for g in ("year", "month", "day"))
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    date = f"{year:04}-{month:02}-{day:02}"
    if match.group("hour") is None or int(match.group("hour")) > 23:
        return date
    zone = (match.group("zone") or "").replace("Z", "+00:00")
    if zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    return (
        f"{date}T{int(match.group('hour')):02}:{match.group('minute')}:{match.group('second') or '00'}{zone}"
    )


def _put(found: dict[str, str], name: str, candidates: list[str]) -> None:
    for candidate in candidates:
        value = " ".join(candidate.split())[:_MAX_VALUE]
        if name in _DATES:
            value = iso_date(value) or ""
        elif name == "author" and value.lower().startswith(("http:", "https:")):
            value = ""  # a profile, not a name
        if value:
            found[name] = value
            return


def _metas(root: Any) -> dict[str, str]:
    metas: dict[str, str] = {}
    for meta in root.iter("meta"):
        name = meta.get("name") or meta.get("property") or meta.get("itemprop") or meta.get("http-equiv")
        content = meta.get("content")
        if name and content and content.strip():
            metas.setdefault(name.strip().lower(), content.strip())
    return metas


def _marked(root: Any) -> dict[str, list[str]]:
    """Values marked in the text itself."""
    found: dict[str, list[str]] = {}
    for element in root.xpath("//*[@itemprop or @rel='author' or self::time]"):
        kinds = (element.get("itemprop") or element.get("rel") or "").split()
        if "author" in kinds:
            names = element.xpath(".//*[@itemprop='name']")
            found.setdefault("author", []).append("".join((names[0] if names else element).itertext()))
        value = element.get("datetime") or element.get("content") or ""
        if "dateModified" in kinds:
            found.setdefault("modified", []).append(value or "".join(element.itertext()))
        elif "datePublished" in kinds or (element.tag == "time" and value):
            found.setdefault("published", []).append(value or "".join(element.itertext()))
    return found


def _linked_data(root: Any) -> dict[str, str]:
    """Dates, author and description of the first JSON-LD node that carries each."""
    found: dict[str, str] = {}
    for script in root.xpath("//script[@type='application/ld+json']"):
        text = script.text or ""
        if not text.strip() or len(text) > _MAX_JSON_CHARS:
            continue
        try:
            tree = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            continue
        for node in _json_nodes(tree):
            for key in ("datePublished", "dateModified", "description"):
                if isinstance(node.get(key), str):
                    found.setdefault(key, node[key])
            if "datePublished" in node and (author := _names(node.get("author"))):
                found.setdefault("author", author)
    return found


def _json_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    for _ in range(_MAX_JSON_NODES):
        if not waiting:
            return
        node = waiting.pop(0)
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            yield node
            waiting.extend(
                node.get(key) for key in ("@graph", "mainEntity", "mainEntityOfPage") if node.get(key)
            )


def _names(author: Any) -> str:
    people = author if isinstance(author, list) else [author]
    names = [p.get("name") if isinstance(p, dict) else p for p in people]
    return ", ".join(n.strip() for n in names if isinstance(n, str) and n.strip())
