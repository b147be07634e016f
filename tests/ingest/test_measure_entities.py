from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import InvalidInput
from ingest.measure_entities import eval_entities

TEXT = "Maria Novak met Peter Novak in Lyon. Later Novak left Lyons. Zed stayed."


def mention(surface: str, gold: str, start: int | None = None) -> dict[str, object]:
    at = TEXT.index(surface) if start is None else start
    return {
        "article": 1,
        "benchmark": "b",
        "start": at,
        "end": at + len(surface),
        "mention": surface,
        "gold": gold,
    }


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "entities.tsv").write_text(
        "qid\tname\ttypes\nQ1\tMaria Novak\tQ215627\nQ2\tPeter Novak\tQ215627\nQ3\tLyon\tQ27096213\n"
    )
    rows = [mention("Maria Novak", "Q1"), mention("Peter Novak", "Q2"), mention("Lyon", "Q3")]
    (tmp_path / "mentions.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    label = {"span": [TEXT.index("Zed"), TEXT.index("Zed") + 3], "entity_id": "<NIL>"}
    (tmp_path / "b.benchmark.jsonl").write_text(json.dumps({"id": 1, "text": TEXT, "labels": [label]}) + "\n")
    return tmp_path / "entities.tsv", tmp_path / "mentions.jsonl"


def test_given_mentions_are_linked_and_those_without_an_entity_counted_apart(
    files: tuple[Path, Path],
) -> None:
    seen: list[tuple[int, int]] = []
    figures = eval_entities(*files, files[0].parent, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 1)]
    assert figures["sizes"] == {"entities": 3, "texts": 1, "mentions": 4}
    assert {"machine", "versions", "seed", "peer", "limit"} <= set(figures)
    assert (figures["n"], figures["accuracy"], figures["candidate_recall@50"]) == (3, 1.0, 1.0)
    assert (figures["nil_accuracy"], figures["precision"], figures["f1"]) == (1.0, 1.0, 1.0)
    assert list(figures["by_benchmark"]) == ["b"]


def test_mentions_are_found_when_none_are_given(files: tuple[Path, Path]) -> None:
    figures = eval_entities(*files, files[0].parent, gold_mentions=False)
    assert figures["accuracy"] is None
    assert figures["recall"] == 1.0


def test_a_missing_text_and_a_wrong_table_are_told(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--benchmark"):
        eval_entities(*files)
    (tmp_path / "bad.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(InvalidInput, match="--entities"):
        eval_entities(tmp_path / "bad.tsv", files[1], tmp_path)


def test_the_public_sets_stay_above_their_floors(shared_data: Path) -> None:
    folder = shared_data / "data" / "el_elevant"
    figures = eval_entities(folder / "entities.tsv", folder / "mentions.jsonl", folder)
    assert figures["accuracy"] >= 0.75
    assert figures["candidate_recall@50"] >= 0.85
