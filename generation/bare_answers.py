"""Generated sentences that only look borne out: words about the source, and answers of a word or two. Pure.

A few words stand somewhere in most passages. Whether they are the answer shows only with the question:
`Folk metal band.` stands in a passage about two groups, and says nothing of the one that was asked about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.types import Evidence
from generation.facts import facts_of
from generation.verify import Judgement
from generation.wording import content_terms

_FEW = 3  # content words; a claim of more has a context of its own
_WITH_QUESTION = 0.5  # of the words of question and claim, in the sentences that carry the claim
_OPEN_QUESTION = re.compile(
    r"\b(?:what|who|whom|whose|which|when|where|why|how)\b|[谁哪何几]|什么|多少|怎|为什么", re.IGNORECASE
)
_QUESTION = re.compile(r"[?？]\s*$|^(?:Question|Q|问题?)\s*[:：]", re.IGNORECASE)
_ABOUT_SOURCE = re.compile(
    r"^(?:The|This|These|Those)\s(?:(?:above|given|following|quoted|provided)\s)?"
    r"(?P<noun>passage|text|excerpt|quote|source|fact)s?\b"
    r"|^This is (?:a|an|the)(?: [\w-]+)? (?P<kind>fact|example|quote|passage|statement|answer)\b"
    r"|^(?:该|本|这个|这段|上述|以上)(?P<zh>段落|文字|文本|引文|来源)",
    re.IGNORECASE,
)


def about_the_source(text: str, cited: Sequence[Evidence]) -> bool:
    """Whether a sentence speaks of the passage and not of what the passage says.

    A passage that has the word itself (`The source of the river lies high`) may be repeated.
    """
    found = _ABOUT_SOURCE.match(text)
    if found is None:
        return False
    noun = next(group for group in found.groups() if group).casefold()
    return not any(noun in e.passage.text.casefold() for e in cited)


def asks(text: str) -> bool:
    """Whether a generated sentence is a question: it claims nothing."""
    return _QUESTION.search(text) is not None


def echoes(text: str, question: str) -> bool:
    """Whether a sentence says back an open question and nothing more.

    `Did it rain?` may be answered by `It rained.`; `How much did it rain?` may not.
    """
    asked = content_terms(question)
    if not asked or not _OPEN_QUESTION.search(question) or facts_of(text):
        return False
    return content_terms(text) <= asked


def beside_the_question(text: str, question: str, judged: Sequence[tuple[Evidence, Judgement]]) -> bool:
    """Whether a claim of a few words is borne out only where the question's words are missing.

    Args:
        text: the claim.
        question: empty where there is none, as for a summary.
        judged: what carries it.
    """
    own, asked = content_terms(text), content_terms(question)
    if not asked or len(own) > _FEW:
        return False
    wanted = own | asked
    held = frozenset[str]()
    for e, judgement in judged:
        span = judgement.span
        carried = e.passage.text if span is None else e.passage.text[span.start : span.end]
        held |= content_terms(" ".join((carried, *e.passage.heading_path)))
    return len(wanted & held) < _WITH_QUESTION * len(wanted)
