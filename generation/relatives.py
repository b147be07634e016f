"""Whom a relative clause speaks of: the thing right before it, not the sentence's subject. Pure; zh and en.

`The Doctor travels with Clara, who is the main character` says nothing of the Doctor's part. 后者 is the last
thing named before it, 前者 the first.
"""

from __future__ import annotations

import re

from generation.subject import ends_noun, subject_of
from generation.wording import HAN_CHAR, content_terms

_RELATIVE = re.compile(r"(?P<before>[^.;:]*?),?\s+(?:who|which)\s+(?P<said>[^,;.]+)")
_TOKEN = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*|\d[\d.,]*|[,;:()—]")
_JOINS = frozenset(("of", "for", "in", "at", "on", "and", "from"))  # what follows may belong to the same noun
_COPULAS = frozenset(("is", "are", "was", "were", "became", "remains"))
_ARTICLES = frozenset(("a", "an", "the"))
_LATTER = re.compile(f"(?P<before>[{HAN_CHAR}A-Za-z0-9]+)[，；]\\s*(?P<word>后者|前者)(?P<said>[^，；。]+)")
_AND = re.compile("[和与跟同、]")
_MOSTLY = 0.8  # of what the claim says of its subject, in the relative clause
_LEAST = 2  # such words


def taken_from_relative(claim: str, sentence: str) -> str:
    """The thing that a relative clause speaks of, where the claim says it of another; else the empty string.

    Args:
        claim: one sentence.
        sentence: the source's sentence nearest to it.
    """
    whole = content_terms(claim)
    named, shared = content_terms(subject_of(claim)) & whole, whole & content_terms(sentence)
    for meant, said in (*_english(sentence), *_chinese(sentence)):
        clause, thing = content_terms(said), content_terms(meant)
        outside = content_terms(sentence.replace(said, " "))
        subject = named & outside - clause
        told = shared - subject - thing
        within = len(told & clause - outside) >= max(_LEAST, _MOSTLY * len(told))
        if within and thing and subject and not thing <= whole and not subject & thing:
            return meant.strip()
    return ""


def _english(sentence: str) -> list[tuple[str, str]]:
    """Each relative clause with the noun before it, back to a verb or the comma of its apposition."""
    found: list[tuple[str, str]] = []
    for match in _RELATIVE.finditer(sentence):
        words = _TOKEN.findall(match["before"])
        first = len(words)
        while first and (not ends_noun(words, first - 1) or words[first - 1].lower() in _JOINS):
            first -= 1
        if words[:first] and words[first - 1].lower() in _COPULAS:
            continue  # `Farel was a preacher, who …`: both are the same
        if first < len(words) and words[first].lower() in _ARTICLES and words[:first][-1:] == [","]:
            first -= 1  # `Farel, a student of Lefevre, who …`: both
            while first and not ends_noun(words, first - 1):
                first -= 1
        found.append((" ".join(words[first:]), match["said"]))
    return found


def _chinese(sentence: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for match in _LATTER.finditer(sentence):
        parts = _AND.split(match["before"])
        if len(parts) > 1:
            found.append((parts[-1] if match["word"] == "后者" else parts[0], match["said"]))
    return found
