from __future__ import annotations

from typing import Any

from api.cli.demo import judge

QUESTION = {"answerable": True, "expect_document": ["a.txt"], "expect_text": ["41 days"]}


def _answer(
    status: str = "answered", verdict: str = "supported", name: str = "a.txt", text: str = "It runs 41 days."
) -> dict[str, Any]:
    claim = {"text": text, "verdict": verdict, "citations": [{"document_name": name}]}
    return {"status": status, "claims": [claim]}


def test_supported_citation_of_the_right_document_passes() -> None:
    assert judge(QUESTION, _answer()) == []


def test_citation_elsewhere_or_unsupported_fails() -> None:
    assert judge(QUESTION, _answer(name="b.txt")) == ["no supported citation of a.txt"]
    assert judge(QUESTION, _answer(verdict="partial")) == ["no supported citation of a.txt"]


def test_answer_without_the_words_it_must_have_fails() -> None:
    assert judge(QUESTION, _answer(text="It runs for long.")) == ["the answer does not say 41 days"]


def test_question_across_documents_needs_each_of_them() -> None:
    across = {**QUESTION, "expect_document": ["a.txt", "b.txt"]}
    assert judge(across, _answer()) == ["no supported citation of b.txt"]


def test_unanswerable_question_must_be_refused() -> None:
    unanswerable = {"answerable": False, "expect_document": [], "expect_text": []}
    assert judge(unanswerable, _answer()) == ["status answered, but no document holds it"]
    assert judge(unanswerable, {"status": "refused", "claims": []}) == []


def test_refused_answerable_question_fails() -> None:
    assert judge(QUESTION, {"status": "refused", "claims": []}) == ["status refused: no reason given"]
