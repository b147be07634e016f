"""Short forms of names inside one document: the surname after the full name, `IBM` after its expansion. Pure.

A document says a name in full and goes on with a part of it. Such a part is tied to the full name when only
one full name of the document can be meant; otherwise it stands for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import regex

from core.types import Passage, Span
from ingest.catalogue import alias_key
from ingest.name_forms import ZH_TITLES, name_form, tokens_of
from ingest.values import Mention

_HAN_NAME = regex.compile(r"\p{Han}{2,4}")
_HAN = regex.compile(r"\p{Han}")
_COMPOUND_SURNAMES = frozenset(
    ("欧阳", "司马", "上官", "诸葛", "东方", "皇甫", "尉迟", "公孙", "慕容", "司徒", "令狐")
)
_ZH_SHORT_TITLES = (*ZH_TITLES, "总", "工", "某", "董")
# `Full Name (FN)`, `全称（以下简称“简称”）`
_DEFINED = regex.compile(
    r"[(（]\s*(?:以下)?(?:合?称|简称|hereinafter|hereafter|the|referred to as|known as|[,，:：\s])*"
    r"[\"“'‘「『《]?(?P<alias>[\p{L}\p{N}&.\-·]{2,20}(?:\s[\p{L}\p{N}&.\-]{2,20}){0,2})[\"”'’」』》]?\s*[)）]",
    regex.IGNORECASE,
)
_PERSON, _ORG = "PERSON", "ORG"


@dataclass(frozen=True, slots=True)
class _Full:
    """A full name of the document."""

    surface: str
    type: str


def with_short_forms(passages: Sequence[Passage], mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions of one document with short forms tied to full names, and those that were missed added.

    Args:
        passages: of the whole document, in order.
        mentions: found so far, in order of the text.

    Returns:
        Mentions in order of the text. `stands_for` of a short form names the full name.
    """
    forms = _forms(mentions, _defined_aliases(passages, mentions))
    if not forms:
        return list(mentions)
    by_key = {alias_key(short): full for short, full in forms.items()}
    tied = [_tied(m, by_key) for m in mentions]
    return sorted([*tied, *_missed(passages, tied, forms)], key=lambda m: (m.passage_id, m.span))


def _forms(mentions: Iterable[Mention], defined: dict[str, _Full]) -> dict[str, _Full]:
    """Spelling of each short form → the one full name it can mean."""
    fulls = {m.surface: _Full(m.surface, m.type) for m in mentions}
    owners: dict[str, set[str]] = {}
    for full in fulls.values():
        for short in _short_forms(full):
            owners.setdefault(short, set()).add(name_form(full.surface).key)
    forms: dict[str, _Full] = {}
    for full in sorted(fulls.values(), key=lambda f: (-len(f.surface), f.surface)):
        for short in _short_forms(full):
            if len(owners[short]) == 1:
                forms.setdefault(short, full)
    forms.update(defined)
    return {short: full for short, full in forms.items() if alias_key(short) != alias_key(full.surface)}


def _short_forms(full: _Full) -> list[str]:
    if _HAN.match(full.surface):
        return _han_forms(full)
    words = [w for w in regex.split(r"\s+", full.surface) if w]
    core = [w for w in words if tokens_of(w) and tokens_of(w)[0] in name_form(full.surface).tokens]
    if full.type == _PERSON and len(core) >= 2 and len(core[-1]) >= 3 and core[-1][0].isupper():
        return [core[-1]]
    if full.type == _ORG and core and len(core) < len(words) and sum(map(len, core)) >= 4:
        return [" ".join(core)]
    return []


def _han_forms(full: _Full) -> list[str]:
    if full.type == _PERSON and _HAN_NAME.fullmatch(full.surface):
        surname = full.surface[:2] if full.surface[:2] in _COMPOUND_SURNAMES else full.surface[:1]
        if len(full.surface) > len(surname):
            return [surname + title for title in _ZH_SHORT_TITLES]
    if full.type == _ORG:
        core = name_form(full.surface).core
        if 2 <= len(core) < len(full.surface) and full.surface.startswith(core):
            return [core]
    return []


def _defined_aliases(passages: Sequence[Passage], mentions: Sequence[Mention]) -> dict[str, _Full]:
    """Names that the document itself gives to another, in brackets after it."""
    texts = {p.id: p for p in passages}
    found: dict[str, _Full] = {}
    for mention in mentions:
        passage = texts[mention.passage_id]
        match = _DEFINED.match(passage.text, _skip(passage.text, mention.span.end - passage.span.start))
        if match is None:
            continue
        alias = match.group("alias")
        form = name_form(mention.surface)
        short = alias_key(alias).replace(".", "")
        named = "称" in match.group() or "herein" in match.group().lower()
        if named or short in form.initials or (_HAN.match(alias) and _within(alias, mention.surface)):
            found.setdefault(alias, _Full(mention.surface, mention.type))
    return found


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \"”’'":
        at += 1
    return at


def _within(short: str, full: str) -> bool:
    """Whether the characters of `short` stand in `full` in this order."""
    rest = iter(full)
    return len(short) < len(full) and all(c in rest for c in short)


def _tied(mention: Mention, forms: dict[str, _Full]) -> Mention:
    full = forms.get(alias_key(mention.surface))
    if full is None or mention.stands_for:
        return mention
    return Mention(mention.passage_id, mention.span, mention.surface, mention.type or full.type, full.surface)


def _missed(
    passages: Sequence[Passage], mentions: Sequence[Mention], forms: dict[str, _Full]
) -> Iterable[Mention]:
    """Short forms in the text that nothing has found yet; whole words, spelled with their capital."""
    whole = "\n".join(p.text for p in passages)
    longest_first = sorted((s for s in forms if s in whole), key=lambda s: (-len(s), s))
    if not longest_first:
        return
    taken: dict[int, list[Span]] = {}
    for mention in mentions:
        taken.setdefault(mention.passage_id, []).append(mention.span)
    parts = (
        regex.escape(s) if _HAN.match(s) else rf"(?<![\p{{L}}\p{{N}}]){regex.escape(s)}(?![\p{{L}}\p{{N}}])"
        for s in longest_first
    )
    pattern = regex.compile("|".join(parts), cache_pattern=False)  # of this document alone
    for passage in passages:
        spans = taken.get(passage.id, [])
        for match in pattern.finditer(passage.text):
            span = Span(passage.span.start + match.start(), passage.span.start + match.end())
            if all(span.end <= s.start or s.end <= span.start for s in spans):
                full = forms[match.group()]
                yield Mention(passage.id, span, match.group(), full.type, full.surface)
