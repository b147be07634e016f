"""Words that limit what a sentence says, and that a claim leaves out: where it holds, and how seldom. Pure.

`In Europe, the war has no name of its own` does not say that it has none. A date or place of something that
happened may be left out (`In 1900, Acme bought Bolt`): it happened all the same.
"""

from __future__ import annotations

import re

from generation.facts import facts_of
from generation.wording import HAN_CHAR, content_terms, names_of

_MOSTLY = 0.8  # of a claim's words in the sentence, from which it is that sentence with something left out
_AFTER = re.compile(r"[^，。；]{0,30}[a-z]*", re.IGNORECASE)  # whole words behind the limiting one
_HALF = 0.5  # the same where the claim has the words that are limited, whatever it makes of the rest
_SELDOM = re.compile(
    r"\b(?:sometimes|occasionally|rarely|seldom|in (?:some|certain|a few|rare) (?:cases|countries|areas))\b"
    r"|有时|偶尔|偶然|极少|在(?:少数|某些|个别|一些)"
)
_LEADING = re.compile(r"\s*(?P<where>(?:In|Under|Among|Within|At|For)\s[^,;]{2,60}),\s")
_LEADING_HAN = re.compile(f"\\s*(?P<where>在[{HAN_CHAR}\\w]{{2,16}}?)(?:，|中|里)")
_MOST = re.compile(
    r"\b(?:most|mostly|largely|mainly|partly|partially)\b|大多数?|多数|大部分|主要(?=由|在|是)"
)
_RANKED = re.compile(
    r"\b(?:the|its|his|her|their|at|our|second|third) most\b"
    r"|\bmost (?:(?:of )?all|\w+(?:ed|ful|ous|ive|al|ant|ent|ar|ible|able))\b"
)
_ANY = re.compile(
    r"\b(?:most|mostly|largely|mainly|partly|partially|many|some|several|few|majority|often|usually"
    r"|generally)\b|多数?|部分|许多|一些|主要|常|往往|通常|一般"
)
_CONDITION = re.compile(
    r"\b(?P<word>as long as|so long as|unless|provided that|on condition that|only if|except when)\s"
    r"(?P<said>[^,;.]+)",
    re.IGNORECASE,
)
_CONDITION_HAN = re.compile("(?P<word>只要|除非|如果|倘若|前提是|只有)(?P<said>[^，。；]+)")
_HOLDS = re.compile(
    r"\b(?:is|are|has|have|does|do|can|may|must|usually|often|generally|typically|always|never)\b"
    r"|通常|一般|往往|总是|从不|经常|均|都"
)
_HAPPENED = re.compile(r"\b(?:was|were|had|did)\b")
_AMOUNT = re.compile(r"\b(?:most|many|some|few|several|certain)\b|大多|多数|许多|某些|少数|部分|一些")


def limit_dropped(claim: str, sentence: str) -> str:
    """What the sentence is limited to and the claim is not; else the empty string.

    Args:
        claim: one sentence.
        sentence: the source's sentence nearest to it.
    """
    ours, theirs = content_terms(claim), content_terms(sentence)
    if len(ours & theirs) < _HALF * len(ours):
        return ""
    seldom = _SELDOM.search(sentence.lower())
    if seldom and not _SELDOM.search(claim.lower()) and _beside(seldom, sentence, ours):
        return seldom[0]
    unranked = _RANKED.sub(lambda m: " " * len(m[0]), sentence.lower())
    most = _MOST.search(unranked)
    if most and not _ANY.search(claim.lower()) and _beside(most, sentence, ours):
        return most[0]
    if len(ours & theirs) < _MOSTLY * len(ours):
        return ""
    if condition := _condition_dropped(claim, sentence, ours):
        return condition
    leading = _LEADING.match(sentence) or _LEADING_HAN.match(sentence)
    if leading is None or facts_of(leading["where"]):
        return ""
    where, rest = leading["where"], sentence[leading.end() :]
    limits = bool(names_of(where) or _AMOUNT.search(where.lower()) or not where.isascii())
    holds = _HOLDS.search(rest) is not None and _HAPPENED.search(rest) is None
    return where if limits and holds and not content_terms(where) & ours else ""


def _condition_dropped(claim: str, sentence: str, terms: frozenset[str]) -> str:
    """The condition of a sentence of which a claim has nothing: `as long as …`, 只要…就."""
    found = _CONDITION.search(sentence) or _CONDITION_HAN.search(sentence)
    if found is None or _CONDITION.search(claim) or _CONDITION_HAN.search(claim):
        return ""
    rest = sentence[: found.start()] + " " + sentence[found.end() :]
    said = content_terms(found["said"]) - content_terms(rest)
    return found["word"] if said and not said & terms else ""


def _beside(found: re.Match[str], sentence: str, terms: frozenset[str]) -> bool:
    """Whether the claim has the words after the limiting one: it limits those."""
    behind = _AFTER.match(sentence, found.end())
    after = content_terms(behind[0] if behind else "")
    return len(after & terms) * 2 >= len(after) > 0
