"""The cross-encoder stage: its two runtimes agree, its budget holds, its order follows from both scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConfigError
from core.settings import get_settings
from ingest.pair_network import PairScorer, export_pairs
from retrieval.cross_encoder import BATCH, configured_reranker, cross_order, cross_scores
from tests.retrieval.reranker_pack import make_reranker_pack

QUESTION = "how often is the pump serviced?"
TEXTS = [
    "the cooling pump is at the east gate.",
    "the cooling pump is serviced every six months.",
    "visitors wear a badge. " * 30,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_reranker_pack(tmp_path_factory.mktemp("packs") / "acme__reranker")


def test_the_exported_network_scores_like_the_checkpoint_and_cuts_long_texts(folder: Path) -> None:
    plain = PairScorer(folder)(QUESTION, TEXTS)
    export_pairs(folder)
    exported = PairScorer(folder, "float32")(QUESTION, TEXTS)
    assert np.allclose(plain, exported, atol=1e-3)
    assert np.argmax(plain) == np.argmax(PairScorer(folder)(QUESTION, TEXTS)) == 1
    assert PairScorer(folder)(QUESTION, []).shape == (0,)


def test_a_checkpoint_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="labels"):
        PairScorer(make_reranker_pack(tmp_path / "three", 3))
    with pytest.raises(ConfigError, match="no readable"):
        PairScorer(tmp_path / "nothing")


def test_a_pack_that_is_missing_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEO_PACKS__FOLDER", str(tmp_path))
    monkeypatch.setenv("GEO_PACKS__RERANKER", "acme/none")
    get_settings.cache_clear()
    configured_reranker.cache_clear()
    assert configured_reranker() is None
    configured_reranker.cache_clear()
    get_settings.cache_clear()


@pytest.mark.parametrize(("budget", "batches"), [(-1.0, 0), (0.0, 0), (0.5, 1), (1.5, 2), (99.0, 3)])
def test_a_spent_budget_is_overrun_by_at_most_one_batch(budget: float, batches: int) -> None:
    now = [0.0]

    def score(_question: str, texts: Sequence[str]) -> np.ndarray:
        now[0] += 1.0
        return np.array([float(text) for text in texts], np.float32)

    head = [(i, str(i)) for i in range(2 * BATCH + 1)]
    found = cross_scores("q", head, score, budget_s=budget, clock=lambda: now[0])
    assert found == {i: float(i) for i in range(min(len(head), batches * BATCH))}
    assert now[0] == batches


@given(
    st.lists(st.floats(-5, 5), max_size=12),
    st.dictionaries(st.integers(0, 11), st.floats(-5, 5), max_size=12),
)
def test_every_passage_keeps_its_place_among_those_not_read(
    before: list[float], read: dict[int, float]
) -> None:
    order = list(enumerate(sorted(before, reverse=True)))
    cross = {i: s for i, s in read.items() if i < len(order)}
    got = cross_order(order, cross, {})
    assert sorted(i for i, _ in got) == [i for i, _ in order]
    if len(cross) < 2:
        assert got == order
        return
    assert {i for i, _ in got[: len(cross)]} == set(cross)
    assert [i for i, _ in got[len(cross) :]] == [i for i, _ in order if i not in cross]
    assert [s for _, s in got] == sorted((s for _, s in got), reverse=True)


def test_what_it_read_outweighs_the_order_before_but_not_a_code() -> None:
    order = [(1, 3.0), (2, 2.0), (3, 1.0)]
    assert cross_order(order, {1: 0.0, 2: 1.0, 3: 9.0}, {})[0][0] == 3
    assert cross_order(order, {1: 0.0, 2: 1.0, 3: 9.0}, {2: 16.0})[0][0] == 2
