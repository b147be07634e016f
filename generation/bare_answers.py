"""Generated sentences that only look borne out: words about the source, and answers of a word or two. Pure.

A few words stand somewhere in most passages. Whether they are the answer shows only with the question:
`Folk metal band.` stands in a passage about two groups, and says nothing of the one that was asked about.
A name of the same topic is no answer either: what is asked has to stand where the name does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.types import Evidence, Span
from generation.contradiction import term_weights
from generation.facts import facts_of
from generation.subject import has_verb
from generation.verify import Judgement, about
from generation.wording import HAN_CHAR, content_terms, names_of
from ingest.sentences import sentences

_FEW, _FEW_HAN = 3, 8  # content words, Chinese characters; a claim of more has a context of its own
_WITHOUT_VERB = 6  # content words of a claim that has no verb
_WITH_QUESTION = 0.5  # of the words of question and claim, in the sentences that carry the claim
_AS_NEAR = 0.75  # of what the sentence nearest to the question has of it, weighed by rarity
_HAN = re.compile(f"[{HAN_CHAR}]")
_OPEN_QUESTION = re.compile(
    r"\b(?:what|who|whom|whose|which|when|where|why|how)\b|[谁哪何几]|什么|多少|怎|为什么", re.IGNORECASE
)
_QUESTION = re.compile(r"[?？]\s*$|^(?:Question|Q|问题?)\s*[:：]", re.IGNORECASE)
_ABOUT_SOURCE = re.compile(
    r"^(?:The|This|These|Those)\s(?:(?:above|given|following|quoted|provided)\s)?"
    r"(?P<noun>passage|text|excerpt|quote|source|fact)s?\b"
    r"|^(?:This|That|It) is (?:a|an|the|one|another)(?: [\w-]+)? "
    r"(?P<kind>fact|example|quote|passage|statement|answer|sentence|line|paragraph|summary|claim)\b"
    r"|^.*\b(?:in|of|from|by|to|as) (?:the|this|that|these) (?:[\w-]+ )?"
    r"(?P<place>passage|text|excerpt|paragraph|sentence)s?\b"
    r"|^(?:该|本|这个|这段|上述|以上)(?P<zh>段落|文字|文本|引文|来源)"
    r"|^.*?(?:在|是|从|据|摘自|出自|见)(?P<zh_place>文中|上文|原文|段落|本段|引文|句子)",
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


def beside_the_question(
    text: str,
    question: str,
    judged: Sequence[tuple[Evidence, Judgement]],
    evidence: Sequence[Evidence],
) -> bool:
    """Whether a claim of a few words is borne out only where the question's words are missing.

    `John Elway.` stands in a sentence on a Super Bowl, and so do most words of `Who won Super Bowl XLIX?`;
    XLIX stands in another sentence, and so does the answer.

    Args:
        text: the claim.
        question: empty where there is none, as for a summary.
        judged: what carries it.
        evidence: all that the answer was written from.
    """
    asked = _asked(question)
    if not asked or not fragment(text):
        return False
    carrying = [_said(e, judgement.span) for e, judgement in judged]
    held = frozenset[str]().union(*map(_asked, carrying))
    wanted = content_terms(text) | content_terms(question)
    if len(wanted & held) < _WITH_QUESTION * len(wanted):
        return True
    others = [_said(e, span) for e in evidence for span in sentences(e.passage.text)]
    if (exact := _exact(question) - held) and any(exact & _asked(other) for other in others):
        return True  # the year or number that was asked for stands beside something else
    weights = term_weights(asked, others, _asked)
    nearest = max((sum(weights[t] for t in asked & _asked(other)) for other in others), default=0.0)
    return sum(weights[t] for t in asked & held) < _AS_NEAR * nearest


def fragment(text: str) -> bool:
    """Whether a claim is a few words, or some more without a verb: it says nothing without its question."""
    own = content_terms(text)
    if han := len(_HAN.findall(text)):
        return han <= _FEW_HAN
    return len(own) <= _FEW or (len(own) <= _WITHOUT_VERB and not has_verb(text))


def _said(e: Evidence, span: Span | None) -> str:
    """Sentences of a passage with what stands above it."""
    return f"{about(e)}\n{e.passage.text if span is None else e.passage.text[span.start : span.end]}"


def _exact(question: str) -> frozenset[str]:
    """Terms of a question that have no other words: numbers, months, names in capitals."""
    capitals = " ".join(name for name in names_of(question) if name.isupper())
    return (_asked(question) - content_terms(question)) | content_terms(capitals)


def _asked(text: str) -> frozenset[str]:
    """Terms of a text, its numbers and months among them."""
    return content_terms(text) | {f"{f.kind}:{f.value.normalize()}" for f in facts_of(text)}
