"""How far a rerank reads: early exit, the router's depth, the time budget."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Hit, Lang, Route
from ingest.encode import TokenVectors
from retrieval.cascade import Plan, Reading, read_head
from retrieval.depth import COST, PROBE, Depth, Signals, decide, losses
from retrieval.early_exit import REACH, settled
from retrieval.fuse import Fused, standardized
from retrieval.relevance import Question, terms
from retrieval.rerank import TokenCache
from retrieval.token_codec import pack_tokens

DIM = 64
UNSURE = Signals(0.2, 0.05, 0.0, False, False, False, True, 2.0)
SURE = Signals(0.99, 6.0, 0.95, True, True, True, False, 0.7)


def question() -> Question:
    axis = np.eye(DIM, dtype=np.float32)[:1]
    return Question("when was the pump serviced", Lang.EN, axis, axis[0], terms("when was the pump serviced"))


def head(similar: Sequence[float], fused: Sequence[float]) -> list[tuple[Fused, str, Lang]]:
    """Passages named by their similarity to the question, in fused order."""
    return [
        (Fused(n, score, (Hit(n, Route.DENSE, n, score),)), f"pump {n} {cosine}.", Lang.EN)
        for n, (cosine, score) in enumerate(zip(similar, fused, strict=True), 1)
    ]


class Tokens:
    """Token vectors whose cosine with the question stands in the text; counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[bytes]:
        self.asked.extend(texts)
        return [self._packed(text) for text in texts]

    @staticmethod
    def _packed(text: str) -> bytes:
        cosine = float(text.split()[2].rstrip("."))
        row = np.zeros((1, DIM), np.float32)
        row[0, 0], row[0, 1] = cosine, np.sqrt(max(0.0, 1 - cosine**2))
        return pack_tokens(text, TokenVectors(row, np.array([[0, len(text)]], np.int32)))


def nothing(_ids: Sequence[int]) -> Mapping[int, bytes]:
    return {}


def read(rows: list[tuple[Fused, str, Lang]], plan: Plan, tokens: Tokens | None = None) -> Reading:
    return read_head(
        question(), rows, plan, weight=1.0, load=nothing, encode=tokens or Tokens(), cache=TokenCache(1 << 20)
    )


FLAT = head([0.8] * 20, [20.0 - n for n in range(20)])
CLEAR = head([0.95] * 6 + [0.5] * 14, [9.0] * 6 + [1.0 - n / 20 for n in range(14)])


def test_without_a_plan_to_stop_the_whole_head_is_read() -> None:
    found = read(CLEAR, Plan(60))
    assert [one.passage_id for one in found.scored] == list(range(1, 21))
    assert (found.depth, found.settled, found.signals) == (Depth.FULL, False, None)


def test_a_settled_order_ends_the_rerank() -> None:
    tokens = Tokens()
    found = read(CLEAR, Plan(60, settle=5, least=8), tokens)
    assert found.settled
    assert [one.passage_id for one in found.scored] == list(range(1, 9))
    assert len(tokens.asked) == 8


def test_as_many_are_read_as_are_shown() -> None:
    assert len(read(CLEAR, Plan(60, settle=20)).scored) == 20
    assert not read(CLEAR, Plan(60, settle=20)).settled


def test_a_spent_budget_ends_the_rerank_and_is_no_settled_order() -> None:
    found = read(FLAT, Plan(0.0, settle=5))
    assert len(found.scored) == 4, "one batch at most"
    assert not found.settled


@given(
    st.lists(st.floats(0.3, 0.99), min_size=2, max_size=24),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
)
def test_what_is_settled_holds_for_every_unread_passage_within_reach(
    maxsims: list[float], wanted: int, source: random.Random
) -> None:
    """The bound is exact for the deviation that it assumes: nobody inside `REACH` overtakes."""
    fused = sorted((source.uniform(-3, 3) for _ in maxsims), reverse=True)
    exact = [0.0] * len(fused)
    read_ = max(1, len(fused) // 2)
    if read_ == len(fused) or not settled(fused, maxsims[:read_], exact, weight=1.0, wanted=wanted):
        return
    by_fusion = standardized(fused)
    seen = sorted(
        (f + m for f, m in zip(by_fusion, standardized(maxsims[:read_]), strict=False)), reverse=True
    )
    assert all(f + REACH <= seen[wanted - 1] + 1e-9 for f in by_fusion[read_:])


def test_nothing_is_settled_before_the_wanted_places_are_read() -> None:
    assert not settled([3, 2, 1, 0], [0.9, 0.8], [0] * 4, weight=1.0, wanted=3)
    assert settled([3, 2], [0.9, 0.8], [0, 0], weight=1.0, wanted=5), "everything was read"


def test_an_exact_part_of_an_unread_passage_is_reckoned_with() -> None:
    fused, maxsims = [9.0, 8.9, 8.8, 8.7, 0.1, 0.0], [0.9, 0.9, 0.9, 0.9]
    assert settled(fused, maxsims, [0.0] * 6, weight=1.0, wanted=2)
    assert not settled(fused, maxsims, [0.0] * 5 + [16.0], weight=1.0, wanted=2)


# -- the router --------------------------------------------------------------------------------


def test_a_deeper_answer_loses_no_more() -> None:
    for signals in (UNSURE, SURE):
        chances = losses(signals)
        assert list(chances) == list(Depth)
        assert list(chances.values()) == sorted(chances.values(), reverse=True)
        assert chances[Depth.FULL] == 0.0


def test_what_is_unsure_goes_the_whole_way_and_what_is_sure_does_not() -> None:
    assert decide(UNSURE, price=64) is Depth.FULL
    assert decide(SURE, price=8) in (Depth.EXTRACT, Depth.ONE)


@pytest.mark.parametrize("signals", [UNSURE, SURE])
def test_a_higher_price_never_makes_the_answer_shallower(signals: Signals) -> None:
    costs = [COST[decide(signals, price=price)] for price in (0.1, 1, 4, 8, 16, 64, 1000)]
    assert costs == sorted(costs)


def test_the_router_reads_the_probe_alone_where_one_passage_is_enough() -> None:
    rows = head([0.97] + [0.5] * 19, [9.0] + [1.0 - n / 20 for n in range(19)])
    tokens = Tokens()
    found = read(rows, Plan(60, price=2.0), tokens)
    assert found.depth is not Depth.FULL
    assert len(tokens.asked) == len(found.scored) == PROBE
    assert found.signals is not None
    assert found.signals.dense_first
    assert not found.signals.lexical_first


def test_where_nothing_answers_everything_is_read() -> None:
    found = read(head([0.3] * 20, [float(20 - n) for n in range(20)]), Plan(60, price=2.0, threshold=0.12))
    assert found.depth is Depth.FULL
    assert len(found.scored) == 20


def test_a_depth_may_be_asked_for_by_name() -> None:
    assert read(FLAT, Plan(60, forced=Depth.FEW)).depth is Depth.FEW
    assert len(read(FLAT, Plan(60, forced=Depth.FEW)).scored) == PROBE


def test_an_empty_head_is_no_error() -> None:
    assert read([], Plan(60, price=2.0, settle=5)).depth is Depth.FULL
    assert read(head([0.9], [1.0]), Plan(60, price=2.0, settle=5)).scored[0].passage_id == 1
