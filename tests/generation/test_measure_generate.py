from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import httpx
import pytest

from generation.measure_generate import GenerateSizes, asked_at_once, cases, exponential_lengths
from generation.measure_generate_door import Lap
from generation.measure_generate_peer import grammar_of, messages_of
from generation.measure_generate_worker import FixedLength
from generation.prompt import Message
from generation.requests import GenerationRequest
from tests.generation.fakes import FakeEngine

CLIENT = cast(httpx.Client, SimpleNamespace())


def test_lengths_are_exponential_bounded_and_repeat_themselves() -> None:
    lengths = exponential_lengths(2000, 40)
    assert lengths == exponential_lengths(2000, 40)
    assert 8 <= min(lengths) <= max(lengths) <= 256
    assert sum(lengths) / len(lengths) == pytest.approx(41, abs=3)


def test_a_question_fixes_the_length_of_its_answer() -> None:
    engine = FakeEngine("one two three four")
    fixed = FixedLength(engine)
    (case,) = cases(GenerateSizes(), [17], seed=1)
    request = GenerationRequest("a", messages_of(case), 99, time.monotonic() + 5)
    list(fixed.generate(request))
    assert (engine.requests[0].max_tokens, engine.requests[0].min_tokens) == (17, 17)
    list(fixed.generate(replace(request, messages=(Message("user", "no length"),))))
    assert (engine.requests[1].max_tokens, engine.requests[1].min_tokens) == (99, 0)
    fixed.close()
    assert engine.closed


def test_no_case_shares_a_passage_with_another() -> None:
    made = [*cases(GenerateSizes(), [10] * 64, seed=1), *cases(GenerateSizes(), [10] * 64, seed=2)]
    texts = [text for case in made for text in case.passages]
    assert len(set(texts)) == len(texts)
    assert "marker" in grammar_of(made[0])


@pytest.mark.parametrize(("wave", "waits"), [(None, False), (16, True)])
def test_only_a_wave_waits_for_the_longest_of_the_one_before(wave: int | None, waits: bool) -> None:
    first_ended, began_before_that = threading.Event(), list[int]()

    def ask(_client: httpx.Client, number: int) -> Lap:
        if number == 0:
            time.sleep(0.2)
            first_ended.set()
        elif number >= 16 and not first_ended.is_set():
            began_before_that.append(number)
        return Lap(0.0, 0.0, 5)

    load = asked_at_once(lambda: CLIENT, ask, 32, wave=wave)
    assert bool(began_before_that) is not waits
    assert sum(lap.tokens for lap in load.laps) == 160
    assert load.tokens_per_s == pytest.approx(160 / load.seconds)
