"""`geo eval router`: what each depth of evidence costs and loses, and what the router makes of it.

Every question is asked at every depth, by the real stages. Quality: whether a gold answer stands in what the
depth gives: for `extract` the sentences that would be shown, else the passages of evidence, beyond which no
model can go. Cost: the mean of the share of the rerank's time and the share of the prompt's tokens, of the
full depth's. The router is held against the best random mix of depths of the same cost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.measured import machine, versions
from core.settings import get_settings
from core.types import Evidence
from generation.answer import extract
from generation.prompt import passage_text
from generation.tally import contains_gold
from retrieval.budget import token_counter
from retrieval.cascade import Plan
from retrieval.depth import Depth, Signals, decide
from retrieval.evidence_choice import choose_evidence
from retrieval.filters import Filters
from retrieval.followup import Rewritten
from retrieval.measure import LIBRARIES, SEED, read_corpus, read_jsonl, read_qrels, report_progress
from retrieval.measure_slices import bootstrap
from retrieval.profile import ProfileInForce, built_in
from retrieval.query_outcome import Prepared
from retrieval.query_repository import StoredQuery
from retrieval.scratch import ScratchStack, scratch_stack

Column = npt.NDArray[np.float64]
PRICES = (1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 8.0, 16.0, 64.0)
LIMIT = {"saved": 0.5, "quality": 0.98}


@dataclass(frozen=True, slots=True)
class AtDepth:
    """One question at one depth: whether the answer is there, what the rerank took, what the prompt would."""

    found: bool
    rerank_ms: float
    read: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Routed:
    """One question at every depth; `signals` is None where the router would not be asked."""

    id: str
    signals: Signals | None
    depths: Mapping[Depth, AtDepth]


def eval_router(
    corpus: Path,
    queries: Path,
    qrels: Path,
    answers: Path,
    *,
    limit: int | None = None,
    keep: Path | None = None,
    rows_to: Path | None = None,
) -> dict[str, Any]:
    """Ask every judged question with a gold answer at every depth, and report the curve of the router.

    Args:
        corpus: `_id, title, text` lines.
        queries: `_id, text` lines.
        qrels: judgements.
        answers: `_id, answers` lines; `selected_sentences` count as answers, a list inside `answers` is one
            answer in several parts, all of which are needed.
        limit: ask only the first so many.
        keep: a folder that the ingested corpus stays in and is taken from the next time.
        rows_to: write each question's signals and outcomes there, as JSON lines.
    """
    documents, judged = read_corpus(corpus), read_qrels(qrels)
    gold = {str(a["_id"]): gold_of(a) for a in read_jsonl(answers)}
    asked = [
        (str(q["_id"]), str(q["text"]))
        for q in read_jsonl(queries, "_id", "text")
        if str(q["_id"]) in judged and gold.get(str(q["_id"]))
    ][:limit]
    with scratch_stack(keep) as stack:
        known = {*stack.corpus_ids.values(), *stack.same}
        stack.ingest([d for d in documents if d.id not in known], report_progress("ingest"))
        show = report_progress("ask")
        rows: list[Routed] = []
        for n, (query_id, text) in enumerate(asked, 1):
            rows.append(_at_every_depth(stack, query_id, text, gold[query_id]))
            show(n, len(asked))
    if rows_to is not None:
        _write(rows_to, rows)
    return {
        **curve(rows, threshold=get_settings().retrieval.refusal_threshold),
        "price": get_settings().retrieval.depth_price,
        "machine": machine(),
        "versions": versions(*LIBRARIES),
        "seed": SEED,
        "sizes": {"documents": len(documents), "questions": len(asked)},
        "encoder": get_settings().packs.encoder,
        "peer": "the best random mix of depths of the same cost",
        "limit": LIMIT,
    }


def gold_of(line: Mapping[str, Any]) -> list[list[str]]:
    """Alternatives, each a list of parts that are all needed."""
    alternatives = [[str(a)] if isinstance(a, str) else [str(part) for part in a] for a in line["answers"]]
    chosen = [[str(s)] for group in line.get("selected_sentences", ()) for s in group]
    return [parts for parts in (*alternatives, *chosen) if parts]


def _at_every_depth(stack: ScratchStack, query_id: str, text: str, gold: Sequence[Sequence[str]]) -> Routed:
    settings = get_settings().retrieval
    least = settings.max_evidence
    plans = {
        depth: Plan(settings.rerank_budget_ms / 1000, forced=depth)
        for depth in Depth
        if depth is not Depth.FULL
    }
    plans[Depth.FULL] = Plan(
        settings.rerank_budget_ms / 1000, settle=5 if settings.early_exit else 0, least=least
    )
    count = token_counter(None)
    signals: Signals | None = None
    found: dict[Depth, AtDepth] = {}
    for depth in reversed(Depth):  # the full depth first: it makes what is missing
        prepared, ranking = _ranked(stack, query_id, text, plans[depth])
        evidence = choose_evidence(prepared, ranking).evidence
        signals = ranking.reading.signals or signals
        found[depth] = AtDepth(
            _has(_given(text, evidence, depth), gold),
            ranking.timings_ms["rerank"],
            len(ranking.reading.scored),
            0 if depth is Depth.EXTRACT else count("\n\n".join(passage_text(e) for e in evidence)),
        )
    return Routed(query_id, signals, found)


def _ranked(stack: ScratchStack, query_id: str, text: str, plan: Plan) -> Any:
    from retrieval.ranking import rank, token_cache
    from retrieval.tiers import get_reader

    settings = get_settings().retrieval
    scope = stack.scope.narrowed((stack.collection_id,))
    policy = {"mode": "quote"}
    query = StoredQuery(
        query_id,
        scope.tenant_id,
        (stack.collection_id,),
        text,
        (),
        "answer",
        {},
        {},
        policy,
        "running",
        False,
    )
    profile = ProfileInForce(built_in(settings))
    token_cache(get_reader().snapshot().model).clear()  # every depth reads what it needs
    wanted = settings.max_evidence
    ranking = rank(stack.db, get_reader(), scope, text=text, filters=Filters(), wanted=wanted, plan=plan)
    return Prepared(query, scope, Rewritten(text), None, profile), ranking


def _given(question: str, evidence: Sequence[Evidence], depth: Depth) -> str:
    if depth is not Depth.EXTRACT:
        return "\n".join(e.passage.text for e in evidence)
    sentences = get_settings().generation.max_sentences
    return " ".join(claim.text for claim in extract(question, evidence, max_sentences=sentences))


def _has(text: str, gold: Sequence[Sequence[str]]) -> bool:
    return any(all(contains_gold(text, [part]) for part in parts) for parts in gold)


def _write(path: Path, rows: Sequence[Routed]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            line = {
                "id": row.id,
                "signals": None if row.signals is None else asdict(row.signals),
                "depths": {depth.value: asdict(at) for depth, at in row.depths.items()},
            }
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


# -- the curve -----------------------------------------------------------------------------------


def curve(rows: Sequence[Routed], *, threshold: float) -> dict[str, Any]:
    """Each depth for all questions, and the router at each price beside the best random mix. Pure."""
    depths = list(Depth)
    if not rows:
        return {"n": 0, "depths": {}, "curve": []}
    quality = np.array([[float(row.depths[d].found) for d in depths] for row in rows])
    full = depths.index(Depth.FULL)
    rerank = np.array([[row.depths[d].rerank_ms for d in depths] for row in rows])
    tokens = np.array([[float(row.depths[d].tokens) for d in depths] for row in rows])
    rerank, tokens = rerank / rerank[:, full].mean(), tokens / max(1.0, tokens[:, full].mean())
    cost = (rerank + tokens) / 2
    whole = max(1e-9, quality[:, full].mean())
    points: list[dict[str, Any]] = []
    for price in PRICES:
        picked = [_picked(row, price, threshold) for row in rows]
        at = np.array([depths.index(depth) for depth in picked])
        every = np.arange(len(rows))
        own, spent = quality[every, at], cost[every, at]
        by_chance = _random_quality(cost.mean(axis=0), quality.mean(axis=0), float(spent.mean()))
        apart = bootstrap(list((own - by_chance).tolist()), seed=SEED)
        points.append(
            {
                "price": price,
                "quality": _r(own.mean() / whole),
                "saved": _r(1 - spent.mean()),
                "rerank_saved": _r(1 - rerank[every, at].mean()),
                "tokens_saved": _r(1 - tokens[every, at].mean()),
                "random_quality": _r(by_chance / whole),
                "over_random": {**apart, "difference": _r(apart["difference"] / whole)},
                "depths": {d.value: _r(float((at == n).mean())) for n, d in enumerate(depths)},
            }
        )
    return {
        "n": len(rows),
        "depths": {
            d.value: {
                "quality": _r(quality[:, n].mean()),
                "rerank": _r(rerank[:, n].mean()),
                "tokens": _r(tokens[:, n].mean()),
                "read": _r(float(np.mean([row.depths[d].read for row in rows]))),
            }
            for n, d in enumerate(depths)
        },
        "curve": points,
    }


def _picked(row: Routed, price: float, threshold: float) -> Depth:
    return Depth.FULL if row.signals is None else decide(row.signals, price=price, threshold=threshold)


def _random_quality(costs: Column, qualities: Column, spent: float) -> float:
    """The best expected quality of a random mix of two depths with this cost."""
    best = max((q for c, q in zip(costs, qualities, strict=True) if c <= spent), default=float(qualities[0]))
    for a, qa in zip(costs, qualities, strict=True):
        for b, qb in zip(costs, qualities, strict=True):
            if a < spent < b:
                best = max(best, qa + (qb - qa) * (spent - a) / (b - a))
    return float(best)


def _r(value: float) -> float:
    return round(float(value), 4)
