"""Ranking measures against hand-worked values and a plain loop."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidInput
from ingest.normalize import build
from ingest.parse import parse_bytes
from retrieval.measure import (
    Tally,
    ndcg,
    read_corpus,
    read_jsonl,
    read_qrels,
    reciprocal_rank,
    turns_before,
)


def test_the_measures_of_a_hand_worked_ranking() -> None:
    tally = Tally()
    tally.add(["b", "a", "c"], {"a": 1.0})
    tally.add(["a", "b"], {"a": 1.0})
    assert tally.means() == {
        "recall@1": 0.5,
        "recall@5": 1.0,
        "recall@10": 1.0,
        "mrr@10": 0.75,
        "ndcg@10": round((1 / math.log2(3) + 1) / 2, 4),
    }


def test_a_question_that_found_nothing_counts_as_zero() -> None:
    tally = Tally()
    tally.add([], {"a": 1.0})
    assert set(tally.means().values()) == {0.0}
    assert tally.n == 1


@given(
    st.lists(st.sampled_from("abcdefghijklmnop"), unique=True),
    st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.sampled_from([1.0, 2.0]), min_size=1),
)
def test_measures_stay_in_bounds_and_are_best_for_the_ideal_order(
    ranking: list[str], relevant: dict[str, float]
) -> None:
    assert 0 <= ndcg(ranking, relevant) <= 1 + 1e-12
    assert 0 <= reciprocal_rank(ranking, relevant) <= 1
    ideal = sorted(relevant, key=lambda d: -relevant[d])
    assert ndcg(ideal, relevant) == pytest.approx(1.0)


def test_files_are_read_as_they_are_published(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "T", "text": "x"}\n\n{"_id": 2, "text": "y"}\n'
    )
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n")
    assert [(d.id, d.title, d.text) for d in read_corpus(tmp_path / "corpus.jsonl")] == [
        ("d1", "T", "# T\n\nx\n"),
        ("2", "", "y"),
    ]
    assert read_qrels(tmp_path / "qrels.tsv") == {"q1": {"d1": 1.0}}


def test_a_titled_document_is_a_page_under_its_heading_and_none_of_its_characters_is_a_mark(
    tmp_path: Path,
) -> None:
    text = "1. *p* < 0.05 [2]\n    # not a heading\n| a | b |\nhttp://x_y_z.org & C++ ~~so~~ $x^2$ <b>"
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d", "title": "Super_Bowl_50", "text": text}))
    (document,) = read_corpus(tmp_path / "corpus.jsonl")
    built = build(parse_bytes(document.text.encode(), f"x{document.suffix}"))
    assert built.title == "Super Bowl 50"
    assert "".join(built.text.split()) == "".join(("Super Bowl 50" + text).split())
    assert {block.heading_path for block in built.blocks[1:]} == {("Super Bowl 50",)}


def test_a_title_in_another_language_than_its_text_names_the_document_only(tmp_path: Path) -> None:
    line = {"_id": "d", "title": "Super_Bowl_50", "text": "第五十届超级碗在圣克拉拉举行。"}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(line))
    (document,) = read_corpus(tmp_path / "corpus.jsonl")
    assert (document.title, document.text, document.suffix) == (line["title"], line["text"], ".txt")


@pytest.mark.parametrize(
    ("line", "told"),
    [("{", "no JSON"), ("[1]", "no JSON object"), ('{"_id": "q1"}', "no text"), ("\udcff", "no JSON")],
)
def test_a_line_that_is_no_question_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes(
        b'{"_id": "q0", "text": "How deep?"}\n\n' + line.encode("utf-8", "surrogateescape") + b"\n"
    )
    with pytest.raises(InvalidInput, match=rf"line 3 (has|is) {told}"):
        read_jsonl(path, "_id", "text")


def test_a_gain_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text("query-id\tcorpus-id\tscore\nq1\td1\tgood\n")
    with pytest.raises(InvalidInput, match=r"line 2: 'good' is no number"):
        read_qrels(path)


def test_turns_of_a_set_are_read_in_either_form() -> None:
    turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "A；B"}]
    assert turns_before([{"question": "Who?", "answers": ["A", "B"]}]) == turns
    assert turns_before(turns) == turns
