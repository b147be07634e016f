"""Sources that disagree: find the other sentence, date both, and decide what is shown. Pure.

Two sentences of different documents conflict when they speak of the same thing (most of their words, and no
name or code that only one has) and give different numbers of one kind, different months, or opposite
directions, or are the same but for a name. Nothing is merged: both are shown, or the one that the policy's
rule prefers, with the rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from core.types import Claim, Evidence, Lang, Span, Verdict
from generation.answer import cite
from generation.dates import source_date
from generation.facts import Fact, facts_of
from generation.relations import content_overlap
from generation.untrusted import instructs
from generation.values import Notice
from generation.verify import about
from generation.wording import HAN_CHAR, content_terms, direction_of, names_of, negated, opposed
from ingest.sentences import sentences
from retrieval.dedupe import common_start, name_between

_SAME_THING = 0.5  # share of the shorter sentence's words that the other has too
_LEAST_SHARED = 3
_NEARLY_THE_SAME = 0.6  # overlap of sentences that differ in a name
_SHARED_NAMES = 2
_HAN_SUBJECT = 6  # characters of Chinese that name a subject, when two sentences begin with them alike
# Words of titles that say what a document is, not whom it is about.
_KINDS = frozenset(
    [
        "letter",
        "email",
        "mail",
        "memo",
        "minutes",
        "note",
        "notes",
        "notice",
        "report",
        "review",
        "postmortem",
        "retrospective",
        "summary",
        "draft",
        "version",
        "update",
        "news",
        "announcement",
        "release",
        "manual",
        "guide",
        "handbook",
        "policy",
        "faq",
        "overview",
        "introduction",
        "history",
        "appendix",
        "article",
        "page",
        "document",
        "record",
        "log",
        "meeting",
        "message",
        "reply",
        "plan",
        "annual",
        "monthly",
        "weekly",
    ]
)
_HAN = re.compile(f"[{HAN_CHAR}]")
_CODE = re.compile(r"(?<![\w.])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9][\w-]+")


@dataclass(frozen=True, slots=True)
class Conflict:
    """A claim's sentence and another document's that says something else of the same thing.

    Attributes:
        what: `number`, `month`, `direction`, `name` or `negation`.
        marker: of the claim's source; other: of the other one.
        span: of the other sentence, in its version's offsets.
    """

    what: str
    marker: int
    other: int
    span: Span
    text: str


def find_conflict(claim: Claim, evidence: Sequence[Evidence]) -> Conflict | None:
    """The sentence that disagrees most plainly with a shown claim, or None."""
    if not claim.text or claim.verdict is Verdict.UNSUPPORTED or not claim.citations:
        return None
    cited = claim.citations[0]
    own = next((e for e in evidence if e.marker == cited.marker), None)
    if own is None:
        return None
    said = cited.quote_text or claim.text
    documents = {c.document_id for c in claim.citations}
    best: tuple[float, Conflict] | None = None
    for e in evidence:
        if e.passage.document_id in documents or not _same_subject(about(own), about(e)):
            continue
        start = e.passage.span.start
        for span in sentences(e.passage.text):
            text = e.passage.text[span.start : span.end]
            nearness = _same_thing(said, text)
            what = _difference(said, text) if nearness else ""
            if what and not instructs(text) and (best is None or nearness > best[0]):
                place = Span(start + span.start, start + span.end)
                best = nearness, Conflict(what, own.marker, e.marker, place, text)
    return best[1] if best else None


def _same_thing(one: str, other: str) -> float:
    """How much two sentences speak of the same thing; 0 when they do not."""
    a, b = content_terms(one), content_terms(other)
    shared = len(a & b)
    share = shared / max(1, min(len(a), len(b)))
    if shared < _LEAST_SHARED or share < _SAME_THING:
        return 0.0
    return share if _same_subject(one, other) or _name_exchanged(one, other) else 0.0


def _name_exchanged(one: str, other: str) -> bool:
    """Whether two sentences are the same but for a name, and share enough names to have one subject.

    `The final was played in Tampa` against `… in Glendale`, of one stadium and one team. Codes are subjects:
    two pumps that differ in their model number are two pumps.
    """
    if set(_CODE.findall(one)) != set(_CODE.findall(other)) or content_overlap(one, other) < _NEARLY_THE_SAME:
        return False
    a, b = set(names_of(one)), set(names_of(other))
    if len(a & b) >= _SHARED_NAMES and a - b and b - a:
        return True
    return name_between(one, other) and _same_opening(one, other)


def _same_opening(one: str, other: str) -> bool:
    """Whether two sentences say of one subject what they say before they differ: a name, or some Chinese."""
    before = one[: common_start(one, other)]
    return bool(names_of(before)) or len(_HAN.findall(before)) >= _HAN_SUBJECT


def _same_subject(one: str, other: str) -> bool:
    """Whether neither text has a name or code that the other replaces by another."""
    a = {n.casefold() for n in (*names_of(one), *_CODE.findall(one))} - _KINDS
    b = {n.casefold() for n in (*names_of(other), *_CODE.findall(other))} - _KINDS
    return not (a - b and b - a)


def _difference(one: str, other: str) -> str:
    ours, theirs = facts_of(one), facts_of(other)
    for what in ("number", "month"):
        for dimension in {f.dimension for f in ours if f.kind == what}:
            a, b = _of(ours, what, dimension), _of(theirs, what, dimension)
            if a and b and not any(x.agrees_with(y) for x in a for y in b):
                return what
    if opposed(direction_of(one), direction_of(other)):
        return "direction"
    if _name_exchanged(one, other):
        return "name"
    return "negation" if negated(one) != negated(other) and not ours and not theirs else ""


def _of(facts: Sequence[Fact], kind: str, dimension: str) -> list[Fact]:
    return [f for f in facts if f.kind == kind and f.dimension == dimension]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is shown for a claim that another source contradicts, and what is said about it."""

    claims: tuple[Claim, ...]
    notice: Notice


def resolve(
    claim: Claim,
    conflict: Conflict,
    evidence: Sequence[Evidence],
    *,
    rule: str,
    lang: Lang,
    dates: Mapping[str, date] | None = None,
    trust: Mapping[str, int] | None = None,
) -> Resolution:
    """Apply the policy's rule.

    Args:
        claim: as settled.
        conflict: see `find_conflict`.
        evidence: what may be cited.
        rule: `both`, `newer` or `trusted`; where the rule cannot tell, both are shown.
        lang: of the notice.
        dates: of documents that have one in their metadata.
        trust: rank of each document, higher is better.
    """
    by_marker = {e.marker: e for e in evidence}
    own, other = by_marker[conflict.marker], by_marker[conflict.other]
    second = Claim(
        conflict.text,
        (cite(other, conflict.span, conflict.text),),
        Verdict.SUPPORTED,
        f"conflicting_source;{conflict.what}",
    )
    days = {own.marker: source_date(own, dates), other.marker: source_date(other, dates)}
    winner = _winner(rule, own, other, days, trust or {})
    shown = (claim, second) if winner is None else (claim,) if winner == own.marker else (second,)
    return Resolution(shown, _notice(conflict, days, rule if winner else "both", winner, lang))


def _winner(
    rule: str, own: Evidence, other: Evidence, days: Mapping[int, date | None], trust: Mapping[str, int]
) -> int | None:
    if rule == "newer":
        a, b = days[own.marker], days[other.marker]
        return None if a is None or b is None or a == b else own.marker if a > b else other.marker
    if rule == "trusted":
        a, b = trust.get(own.passage.document_id, 0), trust.get(other.passage.document_id, 0)
        return None if a == b else own.marker if a > b else other.marker
    return None


_WORDS = {
    Lang.EN: (
        "Sources disagree ({what}): {each}.",
        " Shown is {one}, by the rule “{rule}”.",
        " and ",
        "{m} of {d}",
    ),
    Lang.ZH: ("来源说法不一（{what}）：{each}。", "按“{rule}”规则只显示{one}。", "与", "{m}（{d}）"),
}
_WHAT_ZH = {"number": "数字", "name": "名称", "month": "日期", "direction": "方向", "negation": "是与否"}
_RULE_ZH = {"newer": "较新者优先", "trusted": "可信者优先"}


def _notice(
    conflict: Conflict, days: Mapping[int, date | None], rule: str, winner: int | None, lang: Lang
) -> Notice:
    tongue = Lang.ZH if lang is Lang.ZH else Lang.EN
    sentence, choice, joint, dated = _WORDS[tongue]
    each = joint.join(
        dated.replace("{m}", f"[{marker}]").replace("{d}", day.isoformat()) if day else f"[{marker}]"
        for marker, day in days.items()
    )
    what = _WHAT_ZH[conflict.what] if tongue is Lang.ZH else conflict.what
    text = sentence.replace("{what}", what).replace("{each}", each)
    if winner is not None:
        said = _RULE_ZH.get(rule, rule) if tongue is Lang.ZH else rule
        text += choice.replace("{one}", f"[{winner}]").replace("{rule}", said)
    return Notice(
        "conflicting_sources",
        text,
        sorted(days),
        {
            "what": conflict.what,
            "rule": rule,
            "dates": {str(m): day.isoformat() if day else None for m, day in days.items()},
            "shown": winner,
        },
    )
