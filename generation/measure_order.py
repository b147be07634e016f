"""What the shared order of passages does to answers: the same questions in both orders, on real texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.settings import get_settings
from core.types import CitationMode
from generation.measure import ask_all, engine_for
from retrieval.measure import read_corpus, read_jsonl, read_qrels, report_progress
from retrieval.scratch import scratch_stack

Note = Callable[[str], None]
_VARIABLE = "GEO_GENERATION__EVIDENCE_ORDER"


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Files of an evaluation set, as `geo eval answers` reads them, and how many questions to ask."""

    corpus: Path
    queries: Path
    qrels: Path
    answers: Path
    limit: int


def quality_by_order(judged: JudgedSet, *, mode: CitationMode, note: Note) -> dict[str, Any]:
    """Ask every question with its passages in one order, then in the other.

    Returns:
        Figures of `geo eval answers` by order, and `quality_delta`: shared minus relevance of the share of
        answers that contain the gold one, in points.
    """
    documents, qrels = read_corpus(judged.corpus), read_qrels(judged.qrels)
    gold = {str(a["_id"]): [str(x) for x in a["answers"]] for a in read_jsonl(judged.answers)}
    asked = [
        (str(q["_id"]), str(q["text"]))
        for q in read_jsonl(judged.queries, "_id", "text")
        if str(q["_id"]) in qrels and str(q["_id"]) in gold
    ]
    step = max(1, len(asked) // judged.limit)
    asked = asked[::step][: judged.limit]  # spread over the set, whose neighbours share a paragraph
    with scratch_stack() as stack, engine_for(mode):
        stack.ingest(documents, report_progress("ingest"))
        figures: dict[str, dict[str, Any]] = {}
        for order in ("shared", "relevance"):
            note(f"answers with passages in the order `{order}`")
            with _ordered(order):
                tally, _ = ask_all(stack, asked, qrels, gold, mode, None)
            figures[order] = tally.figures()
    delta = figures["shared"]["contains_gold"] - figures["relevance"]["contains_gold"]
    return {"quality_delta": round(100 * delta, 2), "quality": {"mode": mode.value, **figures}}


@contextmanager
def _ordered(order: str) -> Generator[None]:
    """The setting of the worker's process."""
    before: Mapping[str, str] | None = {_VARIABLE: os.environ[_VARIABLE]} if _VARIABLE in os.environ else None
    os.environ[_VARIABLE] = order
    get_settings.cache_clear()
    try:
        yield
    finally:
        os.environ.pop(_VARIABLE)
        os.environ.update(before or {})
        get_settings.cache_clear()
