"""`geo eval retrieval`: ranking quality of the real code on a scratch installation."""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from core.errors import InvalidInput
from core.figures import auroc
from core.measured import machine, versions
from core.settings import get_settings
from core.types import Route
from retrieval.language import across, question_language
from retrieval.measure_slices import Asked, against_best_route, by_kind
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack

if TYPE_CHECKING:
    from retrieval.ranking import Ranking

Qrels = Mapping[str, Mapping[str, float]]
Measure = Callable[[Sequence[str], Mapping[str, float]], float]
CUTOFF = 10
LIBRARIES = ("torch", "openvino", "sentence-transformers", "faiss-cpu", "tantivy", "numpy", "jieba", "rjieba")
SEED = 0  # nothing here is random; stated because every measurement states its seed


@dataclass(slots=True)
class Tally:
    """Running sums of the ranking measures; each is a mean over the questions."""

    n: int = 0
    sums: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("recall@1", "recall@5", "recall@10", "mrr@10", "ndcg@10"), 0.0)
    )

    def add(self, ranking: Sequence[str], relevant: Mapping[str, float]) -> dict[str, float]:
        """Count one question and return its measures. `ranking`: documents, best first, each once."""
        self.n += 1
        own: dict[str, float] = {}
        for k in (1, 5, 10):
            found = sum(1 for document in ranking[:k] if document in relevant)
            own[f"recall@{k}"] = found / min(k, len(relevant))
        own |= {"mrr@10": reciprocal_rank(ranking, relevant), "ndcg@10": ndcg(ranking, relevant)}
        for name, value in own.items():
            self.sums[name] += value
        return own

    def means(self) -> dict[str, float]:
        """The measures, rounded to four digits."""
        return {name: round(total / max(1, self.n), 4) for name, total in self.sums.items()}


def reciprocal_rank(ranking: Sequence[str], relevant: Mapping[str, float], *, k: int = CUTOFF) -> float:
    """1 / rank of the first relevant document within `k`, else 0."""
    return next((1 / r for r, d in enumerate(ranking[:k], 1) if d in relevant), 0.0)


def ndcg(ranking: Sequence[str], relevant: Mapping[str, float], *, k: int = CUTOFF) -> float:
    """Normalized discounted cumulative gain with linear gains, as trec_eval computes it."""
    gain = sum(relevant.get(d, 0.0) / math.log2(r + 1) for r, d in enumerate(ranking[:k], 1))
    best = sum(g / math.log2(r + 1) for r, g in enumerate(sorted(relevant.values(), reverse=True)[:k], 1))
    return gain / best if best else 0.0


def read_jsonl(path: Path, *needed: str) -> list[dict[str, Any]]:
    """Objects of a JSON lines file; blank lines are skipped.

    Args:
        path: the file, UTF-8.
        needed: names that every object has.

    Raises:
        InvalidInput: a line is no such object; the detail names file and line.
    """
    found: list[dict[str, Any]] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                found.append(_object(line, needed, f"{path}, line {number}"))
    return found


def _object(line: bytes, needed: Sequence[str], where: str) -> dict[str, Any]:
    try:
        read: Any = json.loads(line.decode("utf-8-sig"))
    except ValueError as error:
        raise InvalidInput(f"{where} is no JSON ({error}).") from error
    if not isinstance(read, dict):
        raise InvalidInput(f"{where} is no JSON object.")
    row = cast("dict[str, Any]", read)
    if missing := [name for name in needed if name not in row]:
        raise InvalidInput(f"{where} has no {', '.join(missing)}.")
    return row


_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&$^=:\"'])")


def read_corpus(path: Path) -> list[CorpusDocument]:
    """Documents of `_id, title, text` lines; one with a title is a page with that title as its heading.

    A title in another language than its text is a label of the set, no heading: it names the document only.
    """
    return [
        _document(str(d["_id"]), str(d.get("title", "")), str(d["text"]))
        for d in read_jsonl(path, "_id", "text")
    ]


def _document(identity: str, title: str, text: str) -> CorpusDocument:
    heading = " ".join(title.replace("_", " ").split())
    if not heading or not text.strip() or across(question_language(heading), question_language(text)):
        return CorpusDocument(identity, title, text)
    lines = (_escaped(line.strip()) for line in text.split("\n"))
    page = f"# {_escaped(heading)}\n\n" + "\n".join(lines) + "\n"
    return CorpusDocument(identity, title, page, ".md")


def _escaped(text: str) -> str:
    """The text in Markdown: no character of it is a mark."""
    return _MARKS.sub(r"\\\1", text)


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Judgements `query-id, corpus-id, score` above 0, by question.

    Raises:
        InvalidInput: a score is no number; the detail names file and line.
    """
    judged: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            query, document, score, *_ = [*line.rstrip("\n").split("\t"), "", ""]
            if not query or not score or query == "query-id":
                continue
            try:
                gain = float(score)
            except ValueError as error:
                raise InvalidInput(
                    f"{path}, line {number}: {score!r} is no number; a line is question, document, gain, "
                    "separated by tabs."
                ) from error
            if gain > 0:
                judged.setdefault(query, {})[document] = gain
    return judged


def report_progress(label: str) -> Any:
    """A callback that writes `label: done/total` to stderr, about once a second."""
    last = [0.0]

    def show(done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now - last[0] >= 1:
            last[0] = now
            sys.stderr.write(f"\r{label}: {done}/{total}" + ("\n" if done == total else ""))
            sys.stderr.flush()

    return show


def eval_retrieval(
    corpus: Path, queries: Path, qrels: Path, *, limit: int | None = None, keep: Path | None = None
) -> dict[str, Any]:
    """Ingest the corpus, ask every judged question, and rank documents by their best passage.

    Args:
        corpus: `_id, title, text` lines.
        queries: `_id, text` lines; those marked `answerable: false` are asked for their relevance alone.
            One with a `history` is a turn of a conversation: it is made whole as the product does it.
        qrels: judgements.
        limit: ask only the first so many judged questions.
        keep: a folder that the ingested corpus stays in and is taken from the next time.

    Returns:
        The measures of the final ranking, of each route alone and by kind of question, the difference to the
        best route with its interval, latencies, and what they were taken on.
    """
    documents, judged = read_corpus(corpus), read_qrels(qrels)
    lines = read_jsonl(queries, "_id", "text")
    judged_lines = [q for q in lines if str(q["_id"]) in judged][:limit]
    unanswerable = [str(q["text"]) for q in lines if q.get("answerable") is False][:limit]
    with scratch_stack(keep) as stack:
        begun = time.perf_counter()
        known = {*stack.corpus_ids.values(), *stack.same}
        stack.ingest([d for d in documents if d.id not in known], report_progress("ingest"))
        ingest_s = time.perf_counter() - begun
        asked = [(str(q["_id"]), _whole(stack, q)) for q in judged_lines]
        figures = _ask_all(stack, asked, judged, unanswerable)
    return {
        **figures,
        "ingest_s": round(ingest_s, 1),
        "machine": machine(),
        "versions": versions(*LIBRARIES),
        "seed": SEED,
        "sizes": {
            "documents": len(documents),
            "questions": len(asked),
            "with_turns_before": sum(1 for q in judged_lines if q.get("history")),
        },
        "encoder": get_settings().packs.encoder,
        "peer": None,
        "limit": limit,
    }


def turns_before(history: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Turns as `{role, content}`, oldest first; sets may give them as `{question, answers}` instead."""
    turns: list[dict[str, str]] = []
    for turn in history:
        if "question" in turn:
            answers = "；".join(map(str, turn.get("answers", ())))
            turns.append({"role": "user", "content": str(turn["question"])})
            turns.append({"role": "assistant", "content": answers})
        else:
            turns.append({"role": str(turn["role"]), "content": str(turn["content"])})
    return turns


def _whole(stack: ScratchStack, line: Mapping[str, Any]) -> str:
    """The question of a line as it is searched for."""
    from retrieval.whole_question import whole_question

    turns = turns_before(line.get("history") or ())
    return whole_question(stack.db, stack.scope.tenant_id, str(line["text"]), turns).text


def _ask_all(
    stack: ScratchStack, asked: Sequence[tuple[str, str]], judged: Qrels, unanswerable: Sequence[str]
) -> dict[str, Any]:
    from retrieval.filters import Filters
    from retrieval.ranking import rank
    from retrieval.tiers import get_reader

    final, by_route = Tally(), {route: Tally() for route in Route}
    laps: list[float] = []
    relevance: list[float] = []
    unheard: dict[str, int] = {}
    told: list[Asked] = []
    show = report_progress("ask")
    scope = stack.scope.narrowed((stack.collection_id,))

    def ask(text: str) -> Ranking:
        return rank(stack.db, get_reader(), scope, text=text, filters=Filters(), wanted=2 * CUTOFF)

    for n, (query_id, text) in enumerate(asked, 1):
        begun = time.perf_counter()
        ranking = ask(text)
        laps.append((time.perf_counter() - begun) * 1000)
        relevance.append(max((r.relevance for r in ranking.ranked), default=0.0))
        document_of = {
            r.stored.passage.id: stack.corpus_ids[r.stored.passage.document_id] for r in ranking.ranked
        }
        relevant = {stack.same.get(document, document): gain for document, gain in judged[query_id].items()}
        own = final.add(_documents([r.stored.passage.id for r in ranking.ranked], document_of), relevant)
        routes: dict[str, Mapping[str, float]] = {}
        for route, tally in by_route.items():
            hits = ranking.recalled.hits.get(route, ())
            routes[route.value] = tally.add(_documents([h.passage_id for h in hits], document_of), relevant)
            if (report := ranking.recalled.reports.get(route)) is not None and report.state != "ok":
                unheard[route.value] = unheard.get(route.value, 0) + 1
        told.append(Asked(text, own, routes))
        show(n, len(asked))
    others = [max((r.relevance for r in ask(text).ranked), default=0.0) for text in unanswerable]
    apart = auroc(relevance, others)
    laps.sort()
    return {
        "n": final.n,
        **final.means(),
        "routes": {route.value: tally.means() for route, tally in by_route.items()},
        "against_best_route": against_best_route(told, seed=SEED),
        "slices": by_kind(told),
        "unanswerable": {"n": len(others), "auroc": None if apart is None else round(apart, 4)},
        "p50_ms": round(statistics.median(laps), 2) if laps else None,
        "p95_ms": round(laps[int(0.95 * (len(laps) - 1))], 2) if laps else None,
        "routes_failed": unheard,
    }


def document_ranking(ranking: Ranking, corpus_ids: Mapping[str, str]) -> list[str]:
    """Ids in the corpus of the documents, in the order of their best passages."""
    return list(dict.fromkeys(corpus_ids[r.stored.passage.document_id] for r in ranking.ranked))


def _documents(passage_ids: Sequence[int], document_of: Mapping[int, str]) -> list[str]:
    """Documents in the order of their best passages."""
    return list(dict.fromkeys(document_of[i] for i in passage_ids if i in document_of))
