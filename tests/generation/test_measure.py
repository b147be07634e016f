from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from core.types import AnswerStatus, CitationMode, Verdict
from generation.tally import AnswerTally, contains_gold
from generation.values import AnswerView, CitationView, ClaimView, SourceView


def citation(marker: int, passage: int, document: str) -> CitationView:
    return CitationView(marker, passage, document, "n", 1, None, (), None)


def answer(
    *citations: CitationView, verdict: Verdict = Verdict.SUPPORTED, text: str = "It is 308."
) -> AnswerView:
    claims = (ClaimView(0, text, verdict, "r", citations),) if text else ()
    source = SourceView(1, 11, "doc_a", "n", 1, None, (), "t", 0.9)
    values: dict[str, Any] = dict.fromkeys(("index_generation", "policy_version", "stale_since", "error"))
    return AnswerView(
        id="q", status=AnswerStatus.ANSWERED if text else AnswerStatus.REFUSED, question="?", task="answer",
        priority="interactive", collection_ids=(), mode=CitationMode.EXTRACT, mode_used=CitationMode.EXTRACT,
        mode_reason="", text=text or "Sorry, 308.", claims=claims, sources=(source,), usage={}, timings_ms={},
        policy={}, cancel_requested=False, replay_of=None, created_at=datetime.now(UTC), finished_at=None,
        **values,
    )  # fmt: skip


def tally(*answers: AnswerView, broken: int = 0) -> dict[str, Any]:
    counted = AnswerTally()
    for one in answers:
        counted.add(
            one, gold=["308"], relevant={"p1": 1.0}, corpus_ids={"doc_a": "p1", "doc_b": "p2"}, broken=broken
        )
    return counted.figures()


def test_a_right_answer_with_a_right_citation_counts_fully() -> None:
    figures = tally(answer(citation(1, 11, "doc_a")))
    assert (figures["contains_gold"], figures["cited_gold_document"], figures["citation_precision"]) == (
        1,
        1,
        1,
    )
    assert (figures["invalid_markers"], figures["unsupported_shown"], figures["refused"]) == (0, 0, 0)


def test_markers_that_resolve_elsewhere_and_failed_checks_are_counted() -> None:
    figures = tally(answer(citation(1, 99, "doc_b"), citation(2, 11, "doc_a")), broken=1)
    assert (figures["invalid_markers"], figures["unsupported_shown"]) == (2, 1)
    assert figures["citation_precision"] == 0.5
    assert tally(answer(verdict=Verdict.UNSUPPORTED))["unsupported_shown"] == 1


def test_the_words_of_a_refusal_are_no_answer() -> None:
    figures = tally(answer(text=""))
    assert (figures["refused"], figures["contains_gold"], figures["sentences_shown"]) == (1, 0, 0)


def test_gold_is_found_whatever_the_width_and_case() -> None:
    assert contains_gold("答案是３０８ 分", ["308"])
    assert contains_gold("The Santa\nClara", ["santa clara"])
    assert not contains_gold("38", ["308"])
    assert not contains_gold("anything", [""])
