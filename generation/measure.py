"""`geo eval answers`: what the real stages show for judged questions, on a scratch installation."""

from __future__ import annotations

import statistics
import time
import unicodedata
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.measured import machine, versions
from core.settings import get_settings
from core.types import AnswerStatus, CitationMode, Scope, Verdict
from core.worker import Task
from generation import repository, service
from generation.answer import still_supported
from generation.values import AnswerView
from ingest.service import patch_document
from retrieval.measure import LIBRARIES, SEED, read_corpus, read_jsonl, read_qrels, report_progress
from retrieval.scratch import ScratchStack, scratch_stack

_AT_ONCE = 16  # `free` questions in one batch
_REACH = "within-reach"


@dataclass(slots=True)
class AnswerTally:
    """Counts over answers; `figures` turns them into the shares that are printed."""

    n: int = 0
    with_gold: int = 0
    with_gold_document: int = 0
    refused: int = 0
    incomplete: int = 0
    sentences: list[int] = field(default_factory=list[int])
    citations: int = 0
    right_citations: int = 0
    invalid_markers: int = 0
    unsupported_shown: int = 0
    partial_shown: int = 0
    quotes: int = 0
    modes: dict[str, int] = field(default_factory=dict[str, int])
    laps_ms: list[float] = field(default_factory=list[float])

    def add(
        self,
        answer: AnswerView,
        *,
        gold: Sequence[str],
        relevant: Mapping[str, float],
        corpus_ids: Mapping[str, str],
        broken: int,
    ) -> None:
        """Count one answer.

        Args:
            answer: as the doors show it.
            gold: accepted answer strings.
            relevant: judged documents.
            corpus_ids: document id → id in the corpus.
            broken: its claims that are shown as supported and fail the check when it is made again.
        """
        self.n += 1
        self.sentences.append(len(answer.claims))
        self.refused += answer.status is AnswerStatus.REFUSED
        self.incomplete += answer.status is AnswerStatus.INCOMPLETE
        self.with_gold += contains_gold(answer.text if answer.claims else "", gold)
        cited = [c for claim in answer.claims for c in claim.citations]
        right = [c for c in cited if corpus_ids.get(c.document_id) in relevant]
        self.citations += len(cited)
        self.right_citations += len(right)
        self.with_gold_document += bool(right)
        self.quotes += sum(c.quote is not None for c in cited)
        markers = {s.marker: s.passage_id for s in answer.sources}
        self.invalid_markers += sum(markers.get(c.marker) != c.passage_id for c in cited)
        self.unsupported_shown += broken + sum(c.verdict is Verdict.UNSUPPORTED for c in answer.claims)
        self.partial_shown += sum(c.verdict is Verdict.PARTIAL for c in answer.claims)
        used = answer.mode_used.value if answer.mode_used else "none"
        self.modes[used] = self.modes.get(used, 0) + 1

    def figures(self) -> dict[str, Any]:
        """Shares of all questions, except `citation_precision` (of all citations)."""
        n = max(1, self.n)
        return {
            "n": self.n,
            "contains_gold": round(self.with_gold / n, 4),
            "sentences_shown": round(statistics.fmean(self.sentences), 3) if self.sentences else 0.0,
            "cited_gold_document": round(self.with_gold_document / n, 4),
            "citation_precision": round(self.right_citations / max(1, self.citations), 4),
            "invalid_markers": self.invalid_markers,
            "unsupported_shown": self.unsupported_shown,
            "partial_shown": self.partial_shown,
            "refused": round(self.refused / n, 4),
            "incomplete": round(self.incomplete / n, 4),
            "modes_used": self.modes,
            "p50_ms": round(statistics.median(self.laps_ms), 1) if self.laps_ms else None,
        }


def contains_gold(text: str, gold: Sequence[str]) -> bool:
    """Whether one of the gold strings stands in the text (width, case and white space folded)."""
    folded = _folded(text)
    return any(_folded(answer) in folded for answer in gold if _folded(answer))


def _folded(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Chance that a positive scores above a negative, ties counted half; None when a side is empty."""
    if not positive or not negative:
        return None
    ranked = sorted([(s, True) for s in positive] + [(s, False) for s in negative])
    rank_sum, at = 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        rank_sum += sum(is_positive for _, is_positive in ranked[at:end]) * (at + 1 + end) / 2
        at = end
    pairs = len(positive) * len(negative)
    return (rank_sum - len(positive) * (len(positive) + 1) / 2) / pairs


def eval_answers(
    corpus: Path,
    queries: Path,
    qrels: Path,
    answers: Path,
    *,
    limit: int | None = None,
    mode: str = "",
) -> dict[str, Any]:
    """Ingest the corpus, ask each judged question, and compare what is shown with the gold answers.

    Each question is also asked with the documents that answer it left out: the relevance of the best
    evidence in the two cases gives `refusal_auroc`, and `refused_unanswerable` tells what the threshold does.

    Args:
        corpus: `_id, title, text` lines.
        queries: `_id, text` lines.
        qrels: tab-separated `query-id, corpus-id, score`.
        answers: `_id, answers, doc` lines.
        limit: ask only the first so many.
        mode: `extract` or `free`; empty means the server's default.
    """
    documents, judged = read_corpus(corpus), read_qrels(qrels)
    gold = {str(a["_id"]): [str(x) for x in a["answers"]] for a in read_jsonl(answers)}
    asked = [
        (str(q["_id"]), str(q["text"]))
        for q in read_jsonl(queries)
        if str(q["_id"]) in judged and str(q["_id"]) in gold
    ][:limit]
    chosen = CitationMode(mode) if mode else get_settings().generation.mode
    with scratch_stack() as stack, _engine(chosen):
        stack.ingest(documents, report_progress("ingest"))
        tally, answerable = _ask(stack, asked, judged, gold, chosen)
        unanswerable = _without_gold(stack, asked, judged, chosen)
    threshold = get_settings().retrieval.refusal_threshold
    score = auroc(answerable, unanswerable)
    return {
        **tally.figures(),
        "refusal_auroc": None if score is None else round(score, 4),
        "refused_unanswerable": round(
            sum(s < threshold for s in unanswerable) / max(1, len(unanswerable)), 4
        ),
        "mode": chosen.value,
        "machine": machine(),
        "versions": versions(*LIBRARIES),
        "seed": SEED,
        "sizes": {"documents": len(documents), "questions": len(asked)},
        "models": {"encoder": get_settings().packs.encoder, "generator": get_settings().packs.generator},
        "peer": None,
        "limit": limit,
    }


@contextmanager
def _engine(mode: CitationMode) -> Generator[None]:
    """The worker's engine runtime, for the modes that need it."""
    from generation.tasks import get_runtime

    get_runtime.cache_clear()
    if mode is not CitationMode.EXTRACT:
        get_runtime().start()
        get_runtime().wait_ready(time.monotonic() + 600)
    try:
        yield
    finally:
        get_runtime().stop()
        get_runtime.cache_clear()


def _ask(
    stack: ScratchStack,
    asked: Sequence[tuple[str, str]],
    judged: Mapping[str, Mapping[str, float]],
    gold: Mapping[str, Sequence[str]],
    mode: CitationMode,
) -> tuple[AnswerTally, list[float]]:
    tally, best = AnswerTally(), list[float]()
    at_once = 1 if mode is CitationMode.EXTRACT else _AT_ONCE
    show = report_progress("ask")
    for first in range(0, len(asked), at_once):
        batch = asked[first : first + at_once]
        begun = time.perf_counter()
        ids = [_submit(stack, text, mode) for _, text in batch]
        stack.run_jobs([Task.RERANK])
        _run_answers(stack)
        tally.laps_ms.extend([(time.perf_counter() - begun) * 1000] * len(batch))
        for (question_id, _), query_id in zip(batch, ids, strict=True):
            answer, broken = _read(stack, query_id)
            best.append(float(answer.trace.get("best_relevance", 0.0)))
            tally.add(
                answer,
                gold=gold[question_id],
                relevant=judged[question_id],
                corpus_ids=stack.corpus_ids,
                broken=broken,
            )
        show(min(first + at_once, len(asked)), len(asked))
    return tally, best


def _submit(
    stack: ScratchStack, text: str, mode: CitationMode, filters: Mapping[str, Any] | None = None
) -> str:
    with stack.db.write() as session:
        return service.submit(
            session,
            stack.scope,
            question=text,
            collection_ids=[stack.collection_id],
            policy={"mode": mode.value},
            filters=filters,
        )


def _run_answers(stack: ScratchStack) -> None:
    """All waiting answer jobs at once, each in a thread, as in the worker."""
    from generation.tasks import answer

    waiting = stack.waiting([Task.ANSWER])
    with ThreadPoolExecutor(max_workers=max(1, len(waiting))) as pool:
        list(pool.map(answer, waiting))


def _read(stack: ScratchStack, query_id: str) -> tuple[AnswerView, int]:
    scope = Scope(stack.scope.tenant_id, None, "evaluation")
    with stack.db.read() as session:
        answer = repository.answer_view(session, scope, query_id)
        evidence = repository.load_evidence(session, scope, query_id)
        stored = repository.stored_claims(session, query_id)
    broken = sum(
        claim.verdict is Verdict.SUPPORTED and not still_supported(claim, evidence) for claim in stored
    )
    return answer, broken


def _without_gold(
    stack: ScratchStack,
    asked: Sequence[tuple[str, str]],
    judged: Mapping[str, Mapping[str, float]],
    mode: CitationMode,
) -> list[float]:
    """Relevance of the best evidence when the documents that answer are out of reach.

    Reach is a tag that every document has, and that those which answer lose while their question is asked.
    """
    own_ids: dict[str, list[str]] = {}
    for own, original in stack.corpus_ids.items():
        own_ids.setdefault(original, []).append(own)
    _tag(stack, stack.corpus_ids, [_REACH])
    best: list[float] = []
    show = report_progress("ask without the answer")
    for n, (question_id, text) in enumerate(asked, 1):
        answering = [own for original in judged[question_id] for own in own_ids.get(original, ())]
        _tag(stack, answering, [])
        query_id = _submit(stack, text, mode, {"tags": [_REACH]})
        stack.run_jobs([Task.RERANK])
        _tag(stack, answering, [_REACH])
        with stack.db.read() as session:
            trace = service.get_answer(session, stack.scope, query_id).trace
        best.append(float(trace.get("best_relevance", 0.0)))
        show(n, len(asked))
    return best


def _tag(stack: ScratchStack, documents: Iterable[str], tags: Sequence[str]) -> None:
    with stack.db.write() as session:
        for document_id in documents:
            patch_document(session, stack.scope, document_id=document_id, tags=list(tags))
