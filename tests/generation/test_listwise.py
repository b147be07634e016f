"""Passages ordered by the model: the grammar, the test that it has to pass, and every way back."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Generator

import pytest

from core.db import Database
from core.settings import get_settings
from core.types import Lang
from generation.engine import LocalEngine
from generation.grammar_check import checked
from generation.listwise import MOST, order_grammar, order_messages, places_of, read_order
from generation.listwise_check import NEEDED, ListwiseGate, MadeList, made_lists
from generation.requests import Chunk, EngineDead, GenerationRequest
from generation.runtime import EngineRuntime
from tests.generation.fakes import FakeEngine
from tests.generation.test_tasks import GOOD, Stage

ANSWERING = ("1931", "every three months", "Marta", "twelve")


def test_every_grammar_parses_and_names_no_number_twice() -> None:
    for size in (2, 3, 6, MOST):
        grammar = checked(order_grammar(size, places_of(size)))
        for line in grammar.splitlines():
            head, body = line.split(" ::= ")
            used = set(re.findall(r"\d+", head))
            assert not used & set(re.findall(r"\[(\d+)\]", body))
    with pytest.raises(ValueError, match="places"):
        order_grammar(MOST + 1, 2)


@pytest.mark.parametrize(
    ("written", "order"),
    [("[3] > [1]", [3, 1, 2]), ("", [1, 2, 3]), ("[3] > [3] > [9] > [0]", [3, 1, 2]), ("[2", [1, 2, 3])],
)
def test_what_is_read_is_a_permutation(written: str, order: list[int]) -> None:
    assert read_order(written, 3) == order


@pytest.mark.parametrize("lang", [Lang.EN, Lang.ZH])
def test_the_answer_stands_in_each_place_of_the_test_twice(lang: Lang) -> None:
    lists = made_lists(lang)
    assert Counter(made.answer for made in lists) == dict.fromkeys(range(6), 2)
    assert all(len(set(made.texts)) == 6 for made in lists)


def test_orders_inside_passages_do_not_open_a_turn() -> None:
    messages = order_messages("Q?", ["one\n[2] two"], Lang.EN)
    assert [m.role for m in messages] == ["system", "user"]
    assert messages[1].content.count("\n[") == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [EngineDead("gone"), RuntimeError("unforeseen")])
def test_a_test_that_broke_off_is_run_again_by_the_next_question(error: Exception) -> None:
    gate, errors = ListwiseGate(), [error]

    def first_of(made: MadeList) -> int:
        if errors:
            raise errors.pop()
        return made.answer

    assert gate.right(Lang.EN, first_of, within_s=10) is None
    assert gate.right(Lang.EN, first_of, within_s=10) == 12


class ReadingEngine(FakeEngine):
    """Finds the answering sentence of the test and puts passages in the order `wanted`."""

    wanted = "[2] > [1]"
    able = True
    stalls = False

    def generate(self, request: GenerationRequest) -> Generator[Chunk]:
        if "order" not in request.id:
            yield from super().generate(request)
            return
        self.requests.append(request)
        if not request.id.startswith("listwise-test"):
            if self.stalls:
                self.stalled.set()
            script, self.script = self.script, self.wanted
            try:
                yield from super().generate(request)
            finally:
                self.script = script
                self.stalled.clear()
            return
        blocks = re.findall(r"^\[(\d)\] (.*)$", request.messages[1].content, re.MULTILINE)
        found = next(n for n, text in blocks if any(word in text for word in ANSWERING))
        yield Chunk(f"[{found if self.able else 1}]", "stop")


@pytest.fixture
def stage(sqlite_database: Database) -> Stage:
    made = Stage(sqlite_database)
    made.engine = ReadingEngine(GOOD)
    made.runtime = EngineRuntime(lambda: made.engine, die=made.exits.append)
    made.runtime._bring_up()
    return made


def told(stage: Stage, query_id: str) -> dict[str, object]:
    return stage.answer(query_id).trace["generation"].get("listwise", {})


def prompt_of(stage: Stage) -> str:
    return next(m.content for m in stage.engine.requests[-1].messages if m.role == "user")


def test_the_prompt_stands_as_the_model_ordered_it(stage: Stage) -> None:
    stage.engine.script = "The museum had 8.9 million visitors in 2023. [1] The tower is 330 metres tall. [2]"
    query_id = stage.ask(mode="free", listwise=True)
    (tower, _), (museum, _) = stage.library.passages
    assert told(stage, query_id)["order"] == [museum, tower]
    assert prompt_of(stage).index("museum had") < prompt_of(stage).index("tower is")
    answer = stage.answer(query_id)
    assert [c.citations[0].marker for c in answer.claims] == [2, 1]  # markers go by relevance
    assert answer.trace["generation"]["record"]["listwise"] is True


def test_nothing_is_ordered_unless_the_policy_says_so(stage: Stage) -> None:
    assert told(stage, stage.ask(mode="free")) == {}
    assert told(stage, stage.ask(mode="extract", listwise=True)) == {}
    assert not any("order" in r.id for r in stage.engine.requests)


def test_a_model_that_names_the_first_place_always_is_refused_and_asked_once(stage: Stage) -> None:
    assert isinstance(stage.engine, ReadingEngine)
    stage.engine.able = False
    for _ in range(2):
        found = told(stage, stage.ask(mode="free", listwise=True))
        assert {k: found[k] for k in ("state", "right", "needed")} == {
            "state": "unable", "right": 2, "needed": NEEDED,
        }  # fmt: skip
    assert sum("order" in r.id for r in stage.engine.requests) == 12
    assert prompt_of(stage).index("tower is") < prompt_of(stage).index("museum had")


def test_a_model_that_stalls_costs_the_budget_and_the_answer_is_written(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(stage.engine, ReadingEngine)
    stage.ask(mode="free", listwise=True)  # the test is behind it
    monkeypatch.setenv("GEO_GENERATION__LISTWISE_BUDGET_S", "0.3")
    get_settings.cache_clear()
    stage.engine.stalls = True
    begun = time.monotonic()
    query_id = stage.ask(mode="free", listwise=True)
    assert time.monotonic() - begun < 3
    assert told(stage, query_id)["state"] == "late"
    assert stage.answer(query_id).status == "answered"


@pytest.mark.engine
@pytest.mark.timeout(600)
def test_the_default_model_does_not_pass(engine: LocalEngine, sqlite_database: Database) -> None:
    stage = Stage(sqlite_database)
    stage.runtime = EngineRuntime(lambda: engine, die=stage.exits.append)
    stage.runtime._bring_up()
    found: dict[str, object] = {"state": "not_tested"}
    until = time.monotonic() + 120  # a loaded machine tests for longer than one answer waits
    while found["state"] == "not_tested" and time.monotonic() < until:
        found = told(stage, stage.ask(mode="free", listwise=True, max_answer_tokens=8))
    assert found["state"] == "unable"
