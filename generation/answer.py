"""From evidence to claims: verbatim extracts, and the mending of generated sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.types import Citation, Claim, Evidence, SentenceScore, Span, Verdict
from generation.bare_answers import about_the_source, asks, beside_the_question, echoes
from generation.entail import Entails, with_entailment
from generation.untrusted import instructs
from generation.verify import Judgement, judge_all, judge_together, quote_is_exact
from generation.wording import content_terms
from ingest.sentences import sentences

_REPAIR_COVER = 0.5  # of a refused claim's words in a source sentence that may stand in for it
_PREAMBLE = re.compile(
    r"^\s*(?:The (?:correct )?answer(?: to (?:this|the) question)? is(?: that)?"
    r"|(?:According to )?(?:the )?passage(?: \d+)?(?=[:,])"
    r"|答案是|答案为|答：|回答[：:]|根据(?:上述|以上)?段落)[：:,，]?\s*",
    re.IGNORECASE,
)
_CODE = re.compile(r"[^\W_]*\d(?:[\w,.-]*\w)?")
# What a sentence cannot end with: it was cut off there.
_OPEN_END = re.compile(r"(?:\b(?:the|a|an|of|and|or|than|because|with)|[和与及或])[.。!?！？]*$")
# `plush and plush`: a small model that goes round in circles.
_DOUBLED = re.compile(
    r"(?<![\w-])(?!(?:more|less|again|over|on|round|through|years?|days?|\w+er)\b)"
    r"(?P<en>[a-z]{3,}(?:\s+[\w'’-]+){0,16}?)\s+(?:and|or)\s+(?:to\s+)?(?P=en)(?=\s*(?:[,.;:!?)]|$))"
    r"|(?P<zh>[\u4e00-\u9fff]{2,})[和与或及](?P=zh)(?=[，。；：！？）]|$)"
)
_LEAST_WORDS = 2  # of a generated sentence in a language with spaces
_SAME_WORDS = 0.8  # overlap from which two sentences say the same
_ELSEWHERE_COVER = 0.9  # of a claim's words in a passage that it does not cite, so that it is tied to it


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of the evidence that may be shown. `span` is in the document version's offsets."""

    evidence: Evidence
    span: Span
    text: str
    score: float


def candidates(question: str, evidence: Sequence[Evidence]) -> list[Candidate]:
    """All sentences of the evidence, the best first; ties by marker and place.

    Scores are the reranker's; a passage that it had no time for is scored by shared words.
    """
    found: list[Candidate] = []
    for e in evidence:
        start = e.passage.span.start
        for sentence in e.sentences or _scored_by_words(question, e):
            text = e.passage.text[sentence.span.start - start : sentence.span.end - start]
            if quote_is_exact(e, sentence.span, text) and _can_be_shown(text):
                found.append(Candidate(e, sentence.span, text, sentence.score))
    return sorted(found, key=lambda c: (-c.score, c.evidence.marker, c.span.start))


def _can_be_shown(sentence: str) -> bool:
    """Whether a source sentence may stand in an answer: it says something and gives no orders."""
    return any(c.isalnum() for c in sentence) and not instructs(sentence)


def _scored_by_words(question: str, e: Evidence) -> list[SentenceScore]:
    asked, start = content_terms(question), e.passage.span.start
    scored: list[SentenceScore] = []
    for span in sentences(e.passage.text):
        shared = asked & content_terms(e.passage.text[span.start : span.end])
        score = e.score * len(shared) / max(1, len(asked))
        scored.append(SentenceScore(Span(start + span.start, start + span.end), score))
    return scored


def extract(
    question: str,
    evidence: Sequence[Evidence],
    *,
    max_sentences: int,
    shown: Sequence[str] = (),
    readings: Sequence[Sequence[int]] = (),
) -> tuple[Claim, ...]:
    """The best sentences of the evidence, verbatim, each with its exact quote.

    A sentence that repeats one already chosen (or in `shown`) is passed over, so that other documents get
    their say. The best stands first: it is the answer, the next ones are its surroundings.

    `readings`: where a name of the question may mean several entities, the markers of each one's evidence;
    then the best sentence of each is shown, and no other, so that nobody is taken for the other.
    """
    if readings:
        return _of_each(question, evidence, readings)
    chosen: list[Candidate] = []
    seen = [content_terms(text) for text in shown]
    for candidate in candidates(question, evidence):
        if len(chosen) == max_sentences:
            break
        terms = content_terms(candidate.text)
        if any(_same(terms, other) for other in seen):
            continue
        chosen.append(candidate)
        seen.append(terms)
    return tuple(_quoted(c, "exact_quote") for c in chosen)


def _of_each(
    question: str, evidence: Sequence[Evidence], readings: Sequence[Sequence[int]]
) -> tuple[Claim, ...]:
    ranked = candidates(question, evidence)
    chosen: list[Candidate] = []
    for markers in readings:
        best = next((c for c in ranked if c.evidence.marker in markers and c not in chosen), None)
        if best is not None:
            chosen.append(best)
    chosen.sort(key=lambda c: (-c.score, c.evidence.marker, c.span.start))
    return tuple(_quoted(c, "exact_quote;one_of_several_of_the_name") for c in chosen)


def _same(a: frozenset[str], b: frozenset[str]) -> bool:
    return bool(a and b) and len(a & b) / min(len(a), len(b)) >= _SAME_WORDS


def _quoted(candidate: Candidate, reason: str) -> Claim:
    citation = cite(candidate.evidence, candidate.span, candidate.text)
    return Claim(candidate.text, (citation,), Verdict.SUPPORTED, reason)


def cite(e: Evidence, quote: Span | None, text: str = "") -> Citation:
    """A citation of one evidence passage; `quote` in the document version's offsets."""
    return Citation(e.marker, e.passage.id, e.passage.document_id, e.passage.version, quote, text)


def settled(
    text: str,
    markers: Sequence[int],
    evidence: Sequence[Evidence],
    *,
    show_partial: bool,
    shown: Sequence[str] = (),
    entails: Entails | None = None,
    question: str = "",
) -> Claim:
    """The final form of a generated sentence.

    Kept as written when a cited passage supports it; else tied to another passage that does; else replaced
    by the source sentence nearest to it; else removed (empty text).

    Args:
        text: the sentence without markers.
        markers: numbers it cites; those that no evidence has are dropped.
        evidence: what stood in the prompt.
        show_partial: whether a claim that is only partly borne out may stay (marked as such).
        shown: texts of earlier claims; a repetition is removed.
        entails: an entailment model's word, where one is configured.
        question: that it answers; a claim of a few words has to stand where the question's words do.
    """
    if instructs(text):
        return _removed("instruction_echoed", Verdict.UNSUPPORTED)
    if not well_formed(text):
        return _stand_in(text, evidence, shown, "no_sentence")
    if any(_same(content_terms(text), content_terms(before)) for before in shown):
        return _removed("repeated", Verdict.SUPPORTED)
    by_marker = {e.marker: e for e in evidence}
    cited = [by_marker[m] for m in markers if m in by_marker]
    if asks(text) or echoes(text, question):
        return _stand_in(text, evidence, shown, "question")
    if about_the_source(text, cited or evidence):
        return _stand_in(text, evidence, shown, "about_the_source")
    own = with_entailment(text, judge_all(text, cited), entails)
    if own and own[0][1].verdict is Verdict.SUPPORTED:
        if beside_the_question(text, question, own, evidence):
            return _stand_in(text, evidence, shown, "beside_the_question")
        return _kept(text, own, own[0][1].reason)
    joined = judge_together(text, cited)
    if joined and joined[0][1].verdict is Verdict.SUPPORTED:
        return _kept(text, joined, joined[0][1].reason)
    others = with_entailment(text, judge_all(text, [e for e in evidence if e not in cited]), entails)
    if _tied_elsewhere(others) and not beside_the_question(text, question, others[:1], evidence):
        return _kept(text, others[:1], "reattributed;" + others[0][1].reason)
    if show_partial and own and own[0][1].verdict is Verdict.PARTIAL:
        return _kept(text, own, own[0][1].reason)
    why = own[0][1].reason if own else "marker_out_of_range" if markers else "no_marker"
    if own and own[0][1].verdict is Verdict.PARTIAL:
        source, judgement = own[0]
        return _stand_in(text, evidence, shown, why, _nearest_sentence(text, [source], judgement.span))
    return _stand_in(text, evidence, shown, why)


def _tied_elsewhere(others: Sequence[tuple[Evidence, Judgement]]) -> bool:
    """Whether a passage that the claim does not cite bears it out, nearly word for word."""
    return (
        bool(others) and others[0][1].verdict is Verdict.SUPPORTED and others[0][1].score >= _ELSEWHERE_COVER
    )


def without_preamble(text: str) -> str:
    """A generated sentence without words about itself: `The answer is: Pumps run.` says that pumps run."""
    rest = _PREAMBLE.sub("", text, count=1)
    return rest[:1].upper() + rest[1:] if rest != text and rest else text


def well_formed(text: str) -> bool:
    """Whether a generated text is a sentence: it begins and ends as one, and no bracket stays open."""
    first = text.lstrip("\"“‘'(（「『《¿¡")[:1]
    if not first or first.islower() or (first.isascii() and len(text.split()) < _LEAST_WORDS):
        return False
    if _OPEN_END.search(text.rstrip()) or _DOUBLED.search(text):
        return False
    pairs = (("(", ")"), ("（", "）"), ("“", "”"), ("「", "」"), ("《", "》"))
    return text.count('"') % 2 == 0 and all(text.count(a) == text.count(b) for a, b in pairs)


def _stand_in(
    text: str, evidence: Sequence[Evidence], shown: Sequence[str], why: str, known: Candidate | None = None
) -> Claim:
    """The source sentence nearest to a refused claim (`known`, where that is clear), or its removal."""
    stand_in = known or _nearest_sentence(text, evidence)
    if stand_in is not None:
        if any(_same(content_terms(stand_in.text), content_terms(before)) for before in shown):
            return _removed("repeated;" + why, Verdict.UNSUPPORTED)
        return _quoted(stand_in, "replaced_by_source;" + why)
    return _removed(why, Verdict.UNSUPPORTED)


def _kept(text: str, judged: Sequence[tuple[Evidence, Judgement]], reason: str) -> Claim:
    best = judged[0][1].verdict
    citations = tuple(
        cite(e, quote, quoted)
        for e, judgement in judged
        if judgement.verdict is best
        for quote, quoted in [_quote_of(e, judgement.span)]
    )
    return Claim(text, citations, best, reason)


def _quote_of(e: Evidence, span: Span | None) -> tuple[Span | None, str]:
    if span is None:
        return None, ""
    start = e.passage.span.start
    return Span(start + span.start, start + span.end), e.passage.text[span.start : span.end]


def _removed(reason: str, verdict: Verdict) -> Claim:
    return Claim("", (), verdict, reason)


def _nearest_sentence(
    text: str, evidence: Sequence[Evidence], within: Span | None = None
) -> Candidate | None:
    """The source sentence that shares most with a refused claim; its codes and numbers count most.

    `E27` and `E12` stand in sentences that are otherwise alike, and only one of them was meant.

    Args:
        text: the claim.
        evidence: where to look.
        within: of a passage, what the claim is partly borne out by; few shared words are enough there.
    """
    terms, codes = content_terms(text), _codes(text)
    best: Candidate | None = None
    for e in evidence:
        start = e.passage.span.start
        for span in sentences(e.passage.text):
            if within is not None and not within.start <= span.start <= span.end <= within.end:
                continue
            sentence = e.passage.text[span.start : span.end]
            cover = len(terms & content_terms(sentence)) / max(1, len(terms))
            score = cover + len(codes & _codes(sentence)) / max(1, len(codes))
            better = best is None or score > best.score
            if (within or cover >= _REPAIR_COVER) and better and _can_be_shown(sentence):
                best = Candidate(e, Span(start + span.start, start + span.end), sentence, score)
    return best


def _codes(text: str) -> frozenset[str]:
    """Words with a digit in them: codes, part numbers, years, amounts."""
    return frozenset(_CODE.findall(text.casefold()))


def still_supported(claim: Claim, evidence: Sequence[Evidence], entails: Entails | None = None) -> bool:
    """Check a finished claim again from nothing: markers exist, quotes are exact, the words are borne out."""
    by_marker = {e.marker: e for e in evidence}
    for citation in claim.citations:
        e = by_marker.get(citation.marker)
        if e is None or e.passage.id != citation.passage_id:
            return False
        if citation.quote is not None and not quote_is_exact(e, citation.quote, citation.quote_text):
            return False
    if any(c.quote_text == claim.text for c in claim.citations):
        return True
    cited = [by_marker[c.marker] for c in claim.citations]
    joined = judge_together(claim.text, cited)
    if joined and joined[0][1].verdict is Verdict.SUPPORTED:
        return True
    judged = with_entailment(claim.text, judge_all(claim.text, cited), entails)
    return bool(judged) and judged[0][1].verdict is Verdict.SUPPORTED
