"""`geo eval rgb`: questions whose documents answer, do not answer, or answer wrongly (the RGB sets)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from core.errors import InvalidInput
from core.measured import machine, versions
from core.settings import get_settings
from core.types import AnswerStatus, CitationMode
from core.worker import Task
from generation.measure import engine_for, read_answer, run_answers
from generation.tally import contains_gold
from generation.values import AnswerView
from ingest.service import patch_document
from retrieval.measure import LIBRARIES, SEED, read_jsonl, report_progress
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack

_SNIPPETS = 5  # of each kind, joined to one document
_KINDS = ("positive", "negative", "positive_wrong")
_SETTINGS: dict[str, tuple[str, ...]] = {
    "answerable": ("positive", "negative"),
    "unanswerable": ("negative",),
    "counterfactual": ("positive_wrong", "negative"),
    "contradictory": ("positive", "positive_wrong"),
}


@dataclass(frozen=True, slots=True)
class RgbRow:
    """One question with its snippets by kind."""

    id: str
    question: str
    gold: tuple[str, ...]
    fake: tuple[str, ...]
    snippets: Mapping[str, tuple[str, ...]]


def read_rgb(path: Path, limit: int | None = None) -> list[RgbRow]:
    """Read rows of `query, answer, positive, negative` and, where given, `positive_wrong, fakeanswer`.

    Raises:
        InvalidInput: a row lacks its question or snippets.
    """
    rows: list[RgbRow] = []
    for number, row in enumerate(read_jsonl(path)):
        if "query" not in row or "positive" not in row:
            raise InvalidInput(f"{path.name}, row {number + 1}: no query or no positive snippets.")
        rows.append(
            RgbRow(
                id=str(row.get("id", number)),
                question=str(row["query"]),
                gold=_flat(row["answer"]),
                fake=_flat(row.get("fakeanswer", [])),
                snippets={kind: _flat(row.get(kind, []))[:_SNIPPETS] for kind in _KINDS},
            )
        )
    return rows[:limit]


def _flat(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(text for item in cast("Iterable[Any]", value) for text in _flat(item))


def eval_rgb(path: Path, *, mode: str = "", limit: int | None = None) -> dict[str, Any]:
    """Ask every question with each choice of its documents.

    Args:
        path: see `read_rgb`.
        mode: `extract`, `quote` or `free`; empty means the server's default.
        limit: only the first so many questions.

    Returns:
        Per setting the shares of questions: `right` (a gold answer is shown), `wrong` (the fake one is),
        `refused`, `noticed` (the answer says that sources disagree), `both` (both answers are shown).
    """
    rows = read_rgb(path, limit)
    chosen = CitationMode(mode) if mode else get_settings().generation.mode
    with scratch_stack() as stack, engine_for(chosen):
        _ingest(stack, rows)
        figures = {
            name: _ask(stack, rows, name, kinds, chosen)
            for name, kinds in _SETTINGS.items()
            if all(any(row.snippets[kind] for row in rows) for kind in kinds)
        }
    return {
        "n": len(rows),
        "mode": chosen.value,
        **figures,
        "machine": machine(),
        "versions": versions(*LIBRARIES),
        "seed": SEED,
        "sizes": {"questions": len(rows), "snippets_of_a_kind": _SNIPPETS},
        "models": {"encoder": get_settings().packs.encoder, "generator": get_settings().packs.generator},
        "peer": None,
        "limit": limit,
    }


def _ingest(stack: ScratchStack, rows: Sequence[RgbRow]) -> None:
    documents = [
        CorpusDocument(f"{row.id}/{kind}", f"{kind} {row.id}", "\n\n".join(row.snippets[kind]))
        for row in rows
        for kind in _KINDS
        if row.snippets[kind]
    ]
    # A document has no name that tells its kind: the name is part of what is judged.
    unnamed = [CorpusDocument(d.id, f"page {n}", d.text) for n, d in enumerate(documents)]
    stack.ingest(unnamed, report_progress("ingest"))
    with stack.db.write() as session:
        for document_id, name in stack.corpus_ids.items():
            patch_document(session, stack.scope, document_id=document_id, tags=[name])


def _ask(
    stack: ScratchStack, rows: Sequence[RgbRow], name: str, kinds: Sequence[str], mode: CitationMode
) -> dict[str, Any]:
    from generation import service

    show = report_progress(name)
    answers: list[tuple[RgbRow, AnswerView]] = []
    at_once = 1 if mode is CitationMode.EXTRACT else 16
    for first in range(0, len(rows), at_once):
        batch = rows[first : first + at_once]
        ids: list[str] = []
        for row in batch:
            with stack.db.write() as session:
                ids.append(
                    service.submit(
                        session,
                        stack.scope,
                        question=row.question,
                        collection_ids=[stack.collection_id],
                        policy={"mode": mode.value},
                        filters={"tags": [f"{row.id}/{kind}" for kind in kinds]},
                    )
                )
        stack.run_jobs([Task.RERANK])
        run_answers(stack)
        answers += [(row, read_answer(stack, i)[0]) for row, i in zip(batch, ids, strict=True)]
        show(len(answers), len(rows))
    return _shares(answers)


def _shares(answers: Sequence[tuple[RgbRow, AnswerView]]) -> dict[str, Any]:
    n = max(1, len(answers))
    text = [(row, answer, answer.text if answer.claims else "") for row, answer in answers]
    right = [contains_gold(said, row.gold) for row, _, said in text]
    wrong = [contains_gold(said, row.fake) for row, _, said in text]
    refused = sum(answer.status is AnswerStatus.REFUSED for _, answer, _ in text)
    noticed = sum(any(x.code == "conflicting_sources" for x in answer.notices) for _, answer, _ in text)
    return {
        "right": round(sum(right) / n, 4),
        "wrong": round(sum(wrong) / n, 4),
        "both": round(sum(a and b for a, b in zip(right, wrong, strict=True)) / n, 4),
        "refused": round(refused / n, 4),
        "noticed": round(noticed / n, 4),
    }
