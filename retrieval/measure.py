"""`geo eval retrieval`: ranking quality of the real code on a scratch installation."""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from core.measured import machine, versions
from core.settings import get_settings
from core.types import Route
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack

if TYPE_CHECKING:
    from retrieval.recall import Ranking

Qrels = Mapping[str, Mapping[str, float]]
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

    def add(self, ranking: Sequence[str], relevant: Mapping[str, float]) -> None:
        """Count one question. `ranking`: documents, best first, each once."""
        self.n += 1
        for k in (1, 5, 10):
            found = sum(1 for document in ranking[:k] if document in relevant)
            self.sums[f"recall@{k}"] += found / min(k, len(relevant))
        self.sums["mrr@10"] += reciprocal_rank(ranking, relevant)
        self.sums["ndcg@10"] += ndcg(ranking, relevant)

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


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Objects of a JSON lines file; blank lines are skipped."""
    with path.open(encoding="utf-8") as lines:
        return [cast("dict[str, Any]", json.loads(line)) for line in lines if line.strip()]


def read_corpus(path: Path) -> list[CorpusDocument]:
    """Documents of `_id, title, text` lines."""
    return [CorpusDocument(str(d["_id"]), str(d.get("title", "")), str(d["text"])) for d in read_jsonl(path)]


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Judgements `query-id, corpus-id, score` above 0, by question."""
    judged: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            query, document, score, *_ = [*line.rstrip("\n").split("\t"), "", ""]
            if query and score and query != "query-id" and float(score) > 0:
                judged.setdefault(query, {})[document] = float(score)
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


def eval_retrieval(corpus: Path, queries: Path, qrels: Path, *, limit: int | None = None) -> dict[str, Any]:
    """Ingest the corpus, ask every judged question, and rank documents by their best passage.

    Returns:
        The measures of the final ranking, of each route alone, latencies, and what they were taken on.
    """
    documents, judged = read_corpus(corpus), read_qrels(qrels)
    asked = [(str(q["_id"]), str(q["text"])) for q in read_jsonl(queries) if str(q["_id"]) in judged][:limit]
    with scratch_stack() as stack:
        begun = time.perf_counter()
        stack.ingest(documents, report_progress("ingest"))
        ingest_s = time.perf_counter() - begun
        figures = _ask_all(stack, asked, judged)
    return {
        **figures,
        "ingest_s": round(ingest_s, 1),
        "machine": machine(),
        "versions": versions(*LIBRARIES),
        "seed": SEED,
        "sizes": {"documents": len(documents), "questions": len(asked)},
        "encoder": get_settings().packs.encoder,
        "peer": None,
        "limit": limit,
    }


def _ask_all(stack: ScratchStack, asked: Sequence[tuple[str, str]], judged: Qrels) -> dict[str, Any]:
    from retrieval.filters import Filters
    from retrieval.recall import rank
    from retrieval.tiers import get_reader

    final, by_route = Tally(), {route: Tally() for route in Route}
    laps: list[float] = []
    unheard: dict[str, int] = {}
    show = report_progress("ask")
    scope = stack.scope.narrowed((stack.collection_id,))
    for n, (query_id, text) in enumerate(asked, 1):
        begun = time.perf_counter()
        ranking = rank(stack.db, get_reader(), scope, text=text, filters=Filters(), wanted=2 * CUTOFF)
        laps.append((time.perf_counter() - begun) * 1000)
        document_of = {
            r.stored.passage.id: stack.corpus_ids[r.stored.passage.document_id] for r in ranking.ranked
        }
        relevant = {stack.same.get(document, document): gain for document, gain in judged[query_id].items()}
        final.add(_documents([r.stored.passage.id for r in ranking.ranked], document_of), relevant)
        for route, tally in by_route.items():
            hits = ranking.recalled.hits.get(route, ())
            tally.add(_documents([h.passage_id for h in hits], document_of), relevant)
            if (report := ranking.recalled.reports.get(route)) is not None and report.state != "ok":
                unheard[route.value] = unheard.get(route.value, 0) + 1
        show(n, len(asked))
    laps.sort()
    return {
        "n": final.n,
        **final.means(),
        "routes": {route.value: tally.means() for route, tally in by_route.items()},
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
