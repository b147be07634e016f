from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from generation import measure_prefix
from generation.measure_prefix import PrefixSizes, bench_prefix, passages_of, prompt_of
from tests.generation.fakes import FakeEngine, fake_plan


def test_prompts_differ_in_their_question_alone_when_passages_are_the_same() -> None:
    engine = FakeEngine("x")
    texts = passages_of(engine, 6, 64)  # type: ignore[arg-type] # the part of an engine that is used
    assert len(set(texts)) == 6
    assert all(64 <= engine.count_tokens(f"[1] {text}\n\n") <= 66 for text in texts)
    one, other = (prompt_of(engine, texts, [3, 1], [1, 3], n) for n in (1, 2))  # type: ignore[arg-type]
    assert one[0] == other[0]
    assert one[1].content.split("\n\nQuestion:")[0] == other[1].content.split("\n\nQuestion:")[0]
    assert one[1].content.index(texts[1]) < one[1].content.index(texts[3])


def test_the_figures_have_the_published_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def no_engine(**_: object) -> Generator[FakeEngine]:
        yield FakeEngine("x", planned=fake_plan(4096))

    monkeypatch.setattr(measure_prefix, "measured_engine", no_engine)
    sizes = PrefixSizes(passage_tokens=32, prompts=80, rounds=1)
    figures = bench_prefix(sizes, note=lambda _: None)
    assert {"ttft_ratio", "hit_share", "bound", "bound_share", "quality_delta"} <= set(figures)
    assert {"machine", "versions", "seed", "sizes", "peer", "limit"} <= set(figures)
    assert figures["hit_share"] == 0  # this engine has no cache, and says so
    assert figures["bound"] >= 1
    assert figures["uncached"]["bound"] > 1
    assert [row["zipf"] for row in figures["other_settings"]][:3] == [0.6, 0.8, 1.2]
    assert all(row["hit_share"] <= row["best_hit_share"] + 0.02 for row in figures["other_settings"])
