"""The rerank of one question's head: as far as it has to read, inside its time budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.types import Lang, Route
from ingest.sentences import sentences
from retrieval.centres import Centres
from retrieval.depth import PROBE, Depth, Signals, asks_number, asks_widely, decide, margin_of
from retrieval.early_exit import STEP, settled
from retrieval.fuse import Fused, standardized
from retrieval.relevance import Question
from retrieval.rerank import EncodeTokens, LoadTokens, Scored, TokenCache, score_head


@dataclass(frozen=True, slots=True)
class Plan:
    """How far the rerank of a question goes.

    Attributes:
        budget_s: no batch begins after it.
        settle: places whose order must be settled before it may stop early; 0: it reads the whole head.
        least: passages that it reads at least.
        price: of a lost answer, where the router decides the depth; 0: the full depth.
        threshold: relevance below which the best of the probe answers nothing, so that all is read.
        forced: a depth that was asked for by name.
    """

    budget_s: float
    settle: int = 0
    least: int = 0
    price: float = 0.0
    threshold: float = 0.0
    forced: Depth | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, in fused order.

    Attributes:
        made: packed token vectors that had to be made.
        depth: of the answer.
        signals: what the router went by; None when it was not asked.
        settled: whether it stopped before the head's end because the order was settled.
    """

    scored: Sequence[Scored]
    made: Mapping[int, bytes]
    depth: Depth = Depth.FULL
    signals: Signals | None = None
    settled: bool = False


def read_head(
    asked: Question,
    head: Sequence[tuple[Fused, str, Lang]],
    plan: Plan,
    *,
    weight: float,
    load: LoadTokens,
    encode: EncodeTokens,
    cache: TokenCache,
    centres: Centres | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Reading:
    """Score the head in fused order until the plan lets it stop.

    Args:
        asked: the prepared question.
        head: (fused passage, its text as it was encoded, its language), in fused order.
        plan: how far to go.
        weight: of MaxSim beside the fused score.
        load: stored token vectors, packed.
        encode: packed token vectors of texts.
        cache: looked up first.
        centres: given when the head is mostly in another language; its plan neither settles nor decides.
        clock: monotonic seconds.
    """
    start = clock()
    scored: list[Scored] = []
    made: dict[int, bytes] = {}

    def read(to: int) -> bool:
        """Score up to place `to`; whether the budget let it."""
        part = [(f.passage_id, text, lang) for f, text, lang in head[len(scored) : to]]
        left = plan.budget_s - (clock() - start)
        if not part or (scored and left <= 0):
            return not part
        found = score_head(
            asked,
            part,
            load=load,
            encode=encode,
            cache=cache,
            budget_s=left,
            centres=centres,
            clock=clock,
        )
        scored.extend(found.scored)
        made.update(found.made)
        return len(found.scored) == len(part)

    signals: Signals | None = None
    if (plan.price or plan.forced) and read(PROBE) and scored:
        signals = signals_of(asked, head, scored, weight)
        depth = plan.forced or decide(signals, price=plan.price, threshold=plan.threshold)
        if depth is not Depth.FULL:
            return Reading(scored, made, depth, signals)
    going = read(max(plan.least, plan.settle, STEP) if plan.settle else len(head))
    while going and len(scored) < len(head):
        if _settled(head, scored, weight, plan.settle):
            return Reading(scored, made, Depth.FULL, signals, settled=True)
        going = read(len(scored) + STEP)
    return Reading(scored, made, Depth.FULL, signals)


def _settled(
    head: Sequence[tuple[Fused, str, Lang]], scored: Sequence[Scored], weight: float, wanted: int
) -> bool:
    return settled(
        [f.score - f.exact for f, _, _ in head],
        [one.maxsim for one in scored],
        [f.exact for f, _, _ in head],
        weight=weight,
        wanted=wanted,
    )


def signals_of(
    asked: Question, head: Sequence[tuple[Fused, str, Lang]], scored: Sequence[Scored], weight: float
) -> Signals:
    """What the router goes by, after the first passages of the head are scored."""
    by_fusion = standardized([f.score - f.exact for f, _, _ in head])
    by_tokens = standardized([one.maxsim for one in scored])
    final = [a + weight * b + f.exact for a, b, (f, _, _) in zip(by_fusion, by_tokens, head, strict=False)]
    at = max(range(len(final)), key=lambda n: (final[n], -n))
    best, text, _ = head[at]
    ranks = {hit.route: hit.rank for hit in best.hits}
    others = [one.relevance for n, one in enumerate(scored) if n != at]
    count = len(sentences(text))
    return Signals(
        relevance=scored[at].relevance,
        margin=margin_of(final),
        relevance_margin=scored[at].relevance - max(others, default=0.0),
        dense_first=ranks.get(Route.DENSE) == 1,
        lexical_first=ranks.get(Route.LEXICAL) == 1,
        number=asks_number(asked.text),
        wide=asks_widely(asked.text),
        sentences=math.log1p(count),
    )
