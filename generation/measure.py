"""`geo eval answers`: what the real stages show for judged questions, on a scratch installation."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.figures import auroc
from core.measured import machine, versions
from core.settings import get_settings
from core.types import CitationMode, Scope, Verdict
from core.worker import Task
from generation import repository, service
from generation.answer import still_supported
from generation.entail import configured_entailment
from generation.tally import AnswerTally
from generation.values import AnswerView
from ingest.service import patch_document
from retrieval.measure import LIBRARIES, SEED, read_corpus, read_jsonl, read_qrels, report_progress
from retrieval.scratch import ScratchStack, scratch_stack

_AT_ONCE = 16  # `free` questions in one batch
_REACH = "within-reach"


def eval_answers(
    corpus: Path,
    queries: Path,
    qrels: Path,
    answers: Path,
    *,
    limit: int | None = None,
    mode: str = "",
    claims_to: Path | None = None,
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
        mode: `extract`, `quote` or `free`; empty means the server's default.
        claims_to: write every shown claim with its quote there, for people to check.
    """
    documents, judged = read_corpus(corpus), read_qrels(qrels)
    gold = {str(a["_id"]): [str(x) for x in a["answers"]] for a in read_jsonl(answers)}
    asked = [
        (str(q["_id"]), str(q["text"]))
        for q in read_jsonl(queries, "_id", "text")
        if str(q["_id"]) in judged and str(q["_id"]) in gold
    ][:limit]
    chosen = CitationMode(mode) if mode else get_settings().generation.mode
    with scratch_stack() as stack, engine_for(chosen):
        stack.ingest(documents, report_progress("ingest"))
        tally, answerable = ask_all(stack, asked, judged, gold, chosen, claims_to)
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
def engine_for(mode: CitationMode) -> Generator[None]:
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


def ask_all(
    stack: ScratchStack,
    asked: Sequence[tuple[str, str]],
    judged: Mapping[str, Mapping[str, float]],
    gold: Mapping[str, Sequence[str]],
    mode: CitationMode,
    claims_to: Path | None,
) -> tuple[AnswerTally, list[float]]:
    """Ask each question; the counts over the answers, and the relevance of each one's best evidence.

    Args:
        stack: with the corpus in it.
        asked: id and text of the questions.
        judged: relevant documents by question.
        gold: accepted answers by question.
        mode: of the answers; those that are decoded are asked 16 at a time.
        claims_to: see `eval_answers`.
    """
    tally, best = AnswerTally(), list[float]()
    at_once = 1 if mode is CitationMode.EXTRACT else _AT_ONCE
    show = report_progress("ask")
    for first in range(0, len(asked), at_once):
        batch = asked[first : first + at_once]
        begun = time.perf_counter()
        ids = [_submit(stack, text, mode) for _, text in batch]
        stack.run_jobs([Task.RERANK])
        run_answers(stack)
        tally.laps_ms.extend([(time.perf_counter() - begun) * 1000] * len(batch))
        for (question_id, _), query_id in zip(batch, ids, strict=True):
            answer, broken = read_answer(stack, query_id)
            best.append(float(answer.trace.get("best_relevance", 0.0)))
            tally.add(
                answer,
                gold=gold[question_id],
                relevant=judged[question_id],
                corpus_ids=stack.corpus_ids,
                broken=broken,
            )
            if claims_to is not None:
                _write_claims(claims_to, answer)
        show(min(first + at_once, len(asked)), len(asked))
    return tally, best


def _write_claims(path: Path, answer: AnswerView) -> None:
    with path.open("a") as out:
        for claim in answer.claims:
            row = {
                "question": answer.question,
                "claim": claim.text,
                "verdict": claim.verdict.value,
                "reason": claim.reason,
                "quotes": [c.quote.text for c in claim.citations if c.quote],
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


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


def run_answers(stack: ScratchStack) -> None:
    """All waiting answer jobs at once, each in a thread, as in the worker."""
    from generation.tasks import answer

    waiting = stack.waiting([Task.ANSWER])
    with ThreadPoolExecutor(max_workers=max(1, len(waiting))) as pool:
        list(pool.map(answer, waiting))


def read_answer(stack: ScratchStack, query_id: str) -> tuple[AnswerView, int]:
    """An answer as the doors show it, and how many supported claims fail the check when it is made again."""
    scope = Scope(stack.scope.tenant_id, None, "evaluation")
    with stack.db.read() as session:
        answer = repository.answer_view(session, scope, query_id)
        evidence = repository.load_evidence(session, scope, query_id)
        stored = repository.stored_claims(session, query_id)
    broken = sum(
        claim.verdict is Verdict.SUPPORTED and not still_supported(claim, evidence, configured_entailment())
        for claim in stored
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
