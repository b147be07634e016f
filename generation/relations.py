"""Small words that change what a sentence claims: how many, how sure, who does what to whom. Pure.

Each function compares a claim with the sentences that should carry it and returns what the claim changes, or
the empty string. They look for a contradiction between two explicit statements; silence is none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from generation.wording import content_terms, names_of

# -- how many ----------------------------------------------------------------------------------

_QUANTITY = (
    (5, r"\b(?:all|every|everyone|each|always|entire|entirely|invariably|both)\b"
        r"|全部|所有|每(?:个|位|次|名|台|家)|一律|总是|均"),
    (4, r"\b(?:most|majority|mostly|usually|nearly all|almost all)\b|大多数?|多数|大部分|绝大"),
    (3, r"\b(?:many|numerous|often|frequently)\b|许多|很多|不少|经常|常常"),
    (2, r"\b(?:some|several|sometimes|occasionally|part of|partly)\b|一些|有些|某些|部分|有时"),
    (1, r"\b(?:few|rarely|seldom|a handful|minority)\b|少数|极少|很少|个别|罕见"),
)  # fmt: skip
_QUANTITIES = tuple((rank, re.compile(pattern)) for rank, pattern in _QUANTITY)
_SOLE = re.compile(r"\b(?:only|solely|exclusively|sole|alone)\b|仅|唯一|只有|独家")
_NOT_ONLY = re.compile(r"\b(?:not|if) only\b|\bonly if\b|不仅|仅仅是因为|不只")


@lru_cache(maxsize=4096)
def _rank(text: str) -> int:
    """The largest quantity word of a text, 5 (all) to 1 (few); 0 without one."""
    lowered = text.lower()
    return next((rank for rank, pattern in _QUANTITIES if pattern.search(lowered)), 0)


def quantity_changed(claim: str, source: str) -> str:
    """Whether the claim says all or most where the source says fewer, or few where it says many."""
    ours, theirs = _rank(claim), _rank(source)
    if not ours or not theirs:
        return ""
    stronger = ours > theirs and ours >= 4
    weaker = ours == 1 and theirs >= 3
    return f"{ours}>{theirs}" if stronger else f"{ours}<{theirs}" if weaker else ""


def sole_added(claim: str, source: str) -> bool:
    """Whether the claim says that something is the only one and the source does not."""
    ours = _SOLE.search(_NOT_ONLY.sub(" ", claim.lower()))
    return ours is not None and _SOLE.search(source.lower()) is None


_AT_LEAST = (
    r"(?:at least|no (?:less|fewer) than|not less than|more than|over|above|exceed(?:s|ed|ing)?|minimum of|"
    r"至少|不少于|不低于|(?<!不)超过|(?<!不)多于|(?<!不)高于|最少)"
)
_AT_MOST = (
    r"(?:at most|up to|no more than|not more than|less than|fewer than|under|below|maximum of|within|"
    r"至多|不超过|不多于|最多|不高于|(?<!不)少于|(?<!不)低于|不足|不到)"
)
_NUMBER = r"\s*(?:有|为|是|达)?(?:about |around |approximately |约|大约)?[$¥€]?(\d+(?:[.,]\d+)*)"
_BOUNDS = tuple(
    (side, re.compile(pattern))
    for side, pattern in (
        ("min", _AT_LEAST + _NUMBER),
        ("max", _AT_MOST + _NUMBER),
        ("min", r"(\d+(?:[.,]\d+)*)[^\W\d_]{0,3}(?:以上|\s*or (?:more|above|over))"),
        ("max", r"(\d+(?:[.,]\d+)*)[^\W\d_]{0,3}(?:以下|以内|\s*or (?:less|fewer|below))"),
    )
)


@lru_cache(maxsize=4096)
def _bounds(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for side, pattern in _BOUNDS:
        for match in pattern.finditer(text.lower()):
            found.setdefault(match[1].replace(",", ""), side)
    return found


def bound_changed(claim: str, source: str) -> str:
    """A number that the claim bounds from one side and the source from the other."""
    theirs = _bounds(source)
    return next((n for n, side in _bounds(claim).items() if theirs.get(n, side) != side), "")


# -- how sure ----------------------------------------------------------------------------------

_HEDGE = re.compile(
    r"\b(?:might|possibly|perhaps|reportedly|allegedly|supposedly|rumou?red|unconfirmed|proposed|hypothesi[sz]ed?"
    r"|(?:is|are|was|were|been) (?:\w+ly |often )?(?:expected|planned|believed|thought|said|assumed"
    r"|considered|likely) to|plans? to|planned to"
    r"|unclear (?:whether|if)|may (?:be|have|not|cause|lead|help|reduce|increase|affect|also))\b"
    r"|可能|(?:普遍|通常|一般|被)认为|据信|或许|也许|据称|据传|传闻|疑似|预计|计划于?|拟于?|有望|尚未证实|推测"
)


def hedge_dropped(claim: str, source: str) -> str:
    """The source's word of doubt (might, reportedly, 可能) when the claim states the matter as a fact."""
    theirs = _HEDGE.search(source.lower())
    return theirs[0] if theirs and not _HEDGE.search(claim.lower()) else ""


# -- what is left out --------------------------------------------------------------------------

_EXCEPT = re.compile(
    r"\b(?:except(?:ing)?(?: for)?|excluding|other than|apart from|aside from|with the exception of|but not"
    r"|unlike|rather than|instead of|as opposed to)\s+(?P<en>[^,;.()]{2,80})"
    r"|除了?(?P<zh>[^，；。]{1,20}?)(?:之外|以外|外)|(?:而非|而不是|不包括|不含)(?P<zh2>[^，；。]{1,20})"
)
_ALSO = re.compile(r"\balso\b|\btoo\b|也|还|又")  # besides X, also Y: X is included


@lru_cache(maxsize=4096)
def _excepted(text: str) -> frozenset[str]:
    """Terms that a sentence has only in what it makes an exception of."""
    lowered = text.lower()
    match = _EXCEPT.search(lowered)
    if match is None or _ALSO.search(lowered):
        return frozenset()
    start, end = match.span(match.lastgroup or 0)
    return content_terms(text[start:end]) - content_terms(text[:start] + " " + text[end:])


def exception_dropped(claim: str, source: str) -> str:
    """What the source makes an exception of and the claim says it of: `all but Dover` told of Dover."""
    apart = _excepted(source)
    said = apart & content_terms(claim)
    if not said or 2 * len(said) < len(apart) or _EXCEPT.search(claim.lower()):
        return ""
    return min(said)


# -- who does what -----------------------------------------------------------------------------

CAUSE_FIRST = re.compile(
    r"\b(?:causes?|caused(?! by)|causing|leads? to|led to|leading to|results? in|resulted in|resulting in"
    r"|triggers?|triggered(?! by)|brings? about|brought about|gives? rise to|therefore|thus|hence"
    r"|consequently)\b"
    r"|导致|引起|引发|造成|致使|使得|因此|所以|从而|促使"
)
EFFECT_FIRST = re.compile(
    r"\b(?:(?:is|are|was|were|been|being) (?:caused|triggered|brought about) by|results? from|resulted from"
    r"|because of|because|due to|owing to|as a result of|stems? from|attributed to|thanks to)\b"
    r"|归因于|源于|缘于|是由于|是因为|起因于"
)


@lru_cache(maxsize=4096)
def _cause_and_effect(text: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """Terms of the cause and of the effect, where one connective joins them inside the text."""
    lowered = text.lower()
    passive, active = EFFECT_FIRST.search(lowered), CAUSE_FIRST.search(lowered)
    found = passive or active
    if found is None:
        return None
    before = content_terms(text[: found.start()])
    after = content_terms(text[found.end() :])
    return (after, before) if passive else (before, after)


def cause_reversed(claim: str, source: str) -> bool:
    """Whether the claim makes the source's effect the cause."""
    ours, theirs = _cause_and_effect(claim), _cause_and_effect(source)
    if ours is None or theirs is None:
        return False
    straight = len(ours[0] & theirs[0] - theirs[1]) + len(ours[1] & theirs[1] - theirs[0])
    crossed = len(ours[0] & theirs[1] - theirs[0]) + len(ours[1] & theirs[0] - theirs[1])
    return crossed >= 2 and crossed > 2 * straight


_PASSIVE = re.compile(r"\b(?:by|from)\b|被|由|受")


def roles_swapped(claim: str, sentence: str) -> str:
    """Two names that stand on either side of the same verb, the other way round in the source.

    `Acme bought Bolt` against `Bolt bought Acme`; a passive on one side only is no swap.
    """
    opening = re.match(r"[A-Z][\w’'-]*", claim)
    first = [opening[0]] if opening else []
    names = list(dict.fromkeys([*first, *names_of(claim)]))
    for one, other in pairwise(names):
        between_ours = _between(claim, one, other)
        between_theirs = _between(sentence, other, one)
        if between_ours is None or between_theirs is None or _between(sentence, one, other) is not None:
            continue
        same_verb = content_terms(between_ours) & content_terms(between_theirs)
        if same_verb and bool(_PASSIVE.search(between_ours)) == bool(_PASSIVE.search(between_theirs)):
            return f"{one}/{other}"
    return ""


_DONE_BY = re.compile(r"\b(?:is|are|was|were|been|being) (\w+(?:ed|en|n|t)) by (?:(?:the|a|an) )?(\w+)")


def content_overlap(claim: str, sentence: str) -> float:
    """Share of the content terms of two sentences that both have (Jaccard)."""
    ours, theirs = content_terms(claim), content_terms(sentence)
    return len(ours & theirs) / max(1, len(ours | theirs))


def voice_changed(claim: str, window: str) -> str:
    """A verb done by whom it was done to in the source: `defeated by the Mongols`, `defeated the Mongols`."""
    said, source = claim.casefold(), window.casefold()
    for verb, doer in _DONE_BY.findall(said):
        active = re.search(rf"\b{verb} (?:(?:the|a|an) )?{doer}\b", source)
        if active and not re.search(rf"\b{verb} by (?:(?:the|a|an) )?{doer}\b", source):
            return verb
    return ""


def _between(text: str, first: str, second: str) -> str | None:
    """What stands between the first places of two names in this order, within one clause; else None."""
    start = text.find(first)
    end = text.find(second, start + len(first)) if start >= 0 else -1
    if start < 0 or end < 0:
        return None
    middle = text[start + len(first) : end]
    return middle if middle.strip() and not re.search(r"[,;，；。.]|\band\b|和|与", middle) else None
