"""`geo tune` on a real, small corpus: search, judge on what no trial saw, apply, ask, roll back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import InvalidInput, NotFound
from core.settings import get_settings
from core.types import Role
from core.worker import Task
from retrieval.filters import Filters
from retrieval.measure import ndcg, read_jsonl, read_qrels
from retrieval.profile import BUILT_IN, built_in, parse_profile
from retrieval.profiles import add_profile, apply_profile, roll_back_profile
from retrieval.queries import get_search_result, submit_query
from retrieval.ranking import rank
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack
from retrieval.tiers import get_reader
from retrieval.tune import MIN_QUESTIONS, held_out, ranking, tune
from retrieval.tune_set import Search, look, tune_on_collection

THINGS = ("pump", "valve", "crane", "lift", "boiler", "fan", "gate", "belt")
CHINESE = ("水泵", "阀门", "吊车", "电梯", "锅炉", "风扇", "大门", "皮带")


def quiet(_label: str) -> Any:
    return lambda done, total: None


@pytest.fixture(scope="module")
def stack(encoder_pack: Path) -> Iterator[ScratchStack]:
    with scratch_stack() as made:
        made.ingest(
            [
                CorpusDocument(f"d{n}", thing, f"The {thing} in hall {n} is serviced every {n + 2} months.")
                for n, thing in enumerate(THINGS)
            ]
        )
        yield made


@pytest.fixture(scope="module")
def judged(stack: ScratchStack, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Questions in both languages; judgements name documents by their names."""
    folder = tmp_path_factory.mktemp("judged")
    asked = [(f"en{n}", f"How often is the {t} serviced?", t) for n, t in enumerate(THINGS)]
    pairs = zip(THINGS, CHINESE, strict=True)
    asked += [(f"zh{n}", f"{chinese}多久保养一次？", t) for n, (t, chinese) in enumerate(pairs)]
    lines = (json.dumps({"_id": i, "text": text}, ensure_ascii=False) for i, text, _ in asked)
    (folder / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    rows = (f"{i}\t{thing}.txt\t1" for i, _, thing in asked)
    (folder / "qrels.tsv").write_text("\n".join(rows), encoding="utf-8")
    return folder / "queries.jsonl", folder / "qrels.tsv"


def test_a_trial_ranks_as_a_query_with_that_profile_does(
    stack: ScratchStack, judged: tuple[Path, Path]
) -> None:
    scope = stack.scope.narrowed((stack.collection_id,))
    built = built_in(get_settings().retrieval)
    names = stack.corpus_ids
    for line in read_jsonl(judged[0])[::3]:
        seen = look(stack.db, get_reader(), scope, names, "q", line["text"], {})
        for changes in ({}, {"rerank_k": 1}, {"route_k": 3, "entity": 0.0}):
            profile = built.model_copy(update=changes)
            asked = rank(
                stack.db,
                get_reader(),
                scope,
                text=line["text"],
                filters=Filters(),
                wanted=len(THINGS),
                profile=profile,
            )
            documents = [names[r.stored.passage.document_id] for r in asked.ranked]
            assert ranking(seen, profile) == list(dict.fromkeys(documents)), (line, changes)


def test_a_tune_is_stored_applied_followed_and_taken_back(
    stack: ScratchStack, judged: tuple[Path, Path]
) -> None:
    told: list[tuple[int, int]] = []

    def watched(label: str) -> Any:
        return lambda done, total: told.append((done, total)) if label == "try" else None

    found = tune_on_collection(stack.collection_id, *judged, Search(trials=15), told=watched)
    figures = found["figures"]
    assert told[-1] == (15, 15)
    assert figures["base"] == BUILT_IN
    assert figures["chosen_on"]["n"] + figures["held_out"]["n"] == 2 * len(THINGS)
    assert figures["chosen_on"]["tuned"] >= figures["chosen_on"]["present"] - 0.002
    low, high = figures["held_out"]["ci95"]
    assert low <= figures["held_out"]["difference"] <= high
    parse_profile(found["profile"])
    same = tune_on_collection(stack.collection_id, *judged, Search(trials=15), told=quiet)
    assert same["profile"] == found["profile"]

    operator = replace(stack.scope, may=Role.OPERATOR)
    with stack.db.write() as session:
        stored = add_profile(
            session, operator, body=found["profile"], figures=figures, collection=stack.collection_id
        )
        apply_profile(session, operator, profile_id=stored.id, force=True)
    assert asked_under(stack) == stored.id
    again = tune_on_collection(stack.collection_id, *judged, Search(trials=1), told=quiet)
    assert again["figures"]["base"] == stored.id
    with stack.db.write() as session:
        roll_back_profile(session, operator, collection=stack.collection_id)
    assert asked_under(stack) == BUILT_IN


def asked_under(stack: ScratchStack) -> str:
    with stack.db.write() as session:
        query_id = submit_query(
            session,
            stack.scope,
            question="How often is the crane serviced?",
            collection_ids=[stack.collection_id],
            task="search",
        )
    stack.run_jobs([Task.RERANK])
    with stack.db.read() as session:
        return get_search_result(session, stack.scope, query_id).profile["id"]


def test_what_cannot_be_tuned_is_refused_in_words(stack: ScratchStack, judged: tuple[Path, Path]) -> None:
    with pytest.raises(InvalidInput, match="too few"):
        tune_on_collection(stack.collection_id, *judged, Search(limit=2), told=quiet)
    with pytest.raises(InvalidInput, match="Unknown measure"):
        tune_on_collection(stack.collection_id, *judged, Search("map"), told=quiet)
    with pytest.raises(NotFound, match="0 collections"):
        tune_on_collection("nowhere", *judged, Search(), told=quiet)


def test_no_trial_sees_a_held_out_question(stack: ScratchStack, judged: tuple[Path, Path]) -> None:
    """Held-out judgements turned round change what is reported and nothing that is chosen."""
    scope = stack.scope.narrowed((stack.collection_id,))
    judgements = read_qrels(judged[1])
    built = built_in(get_settings().retrieval)

    def tuned(wrong: bool) -> tuple[Any, dict[str, Any]]:
        seen = [
            look(
                stack.db, get_reader(), scope, stack.corpus_ids, line["_id"], line["text"],
                {"nothing": 1.0} if wrong and held_out(line["_id"])
                else {f"d{THINGS.index(d.removesuffix('.txt'))}": 1.0 for d in judgements[line["_id"]]},
            )
            for line in read_jsonl(judged[0])
        ]  # fmt: skip
        assert len(seen) >= MIN_QUESTIONS
        return tune(seen, built, ndcg, trials=10, seed=1, told=lambda _done, _total: None)

    (right, figures), (wrong, turned) = tuned(wrong=False), tuned(wrong=True)
    assert right == wrong
    assert figures["chosen_on"] == turned["chosen_on"]
    assert turned["held_out"]["tuned"] == 0.0 < figures["held_out"]["tuned"]
