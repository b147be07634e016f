import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Span
from retrieval.measure_chunks import WindowPeer, cover, eval_chunks, read_questions

SPANS = st.builds(lambda a, n: Span(a, a + n), st.integers(0, 60), st.integers(1, 20))
PIECES = st.lists(st.tuples(st.sampled_from(["a", "b"]), SPANS), max_size=5)


def test_shares_are_of_characters_of_the_gold_document() -> None:
    found = cover([Span(0, 10)], "a", [("a", Span(5, 15)), ("b", Span(0, 10))])
    assert found.recall == pytest.approx(0.5)
    assert found.precision == pytest.approx(5 / 20)
    assert found.iou == pytest.approx(5 / 25)


def test_a_character_shown_twice_counts_once_for_recall_and_twice_against_precision() -> None:
    found = cover([Span(0, 10)], "a", [("a", Span(0, 10)), ("a", Span(0, 10))])
    assert (found.recall, found.precision, found.iou) == (1.0, 0.5, 1.0)


@given(st.lists(SPANS, min_size=1, max_size=4), PIECES, SPANS)
def test_showing_more_never_lowers_recall(
    gold: list[Span], pieces: list[tuple[str, Span]], more: Span
) -> None:
    before, after = cover(gold, "a", pieces), cover(gold, "a", [*pieces, ("a", more)])
    assert before.recall <= after.recall <= 1
    assert 0 <= after.iou <= after.recall


def test_the_peer_finds_the_window_with_the_words() -> None:
    peer = WindowPeer({"a": "pump " * 20 + "seal ring " * 20, "b": "valve " * 60}, size=100)
    assert peer.best("valve", 1)[0][0] == "b"
    name, span = peer.best("seal ring", 1)[0]
    assert (name, span.start) == ("a", 100)
    assert peer.best("unknown") == []


def write_set(folder: Path) -> None:
    (folder / "corpora").mkdir()
    other = "\n\n".join(
        f"Paragraph {n} speaks of the weather on day {n} and nothing else." for n in range(30)
    )
    text = f"# Pumps\n\n{other}\n\nThe *seal* of the K7 pump lasts nine months.\r\n\n{other}\n"
    (folder / "corpora" / "pumps.md").write_bytes(text.encode())
    start = text.index("The *seal*")
    end = text.index("months.") + len("months.")
    gold = [{"content": text[start:end], "start_index": start, "end_index": end}]
    row = json.dumps(gold).replace('"', '""')
    (folder / "questions_df.csv").write_text(
        "question,references,corpus_id\n"
        f'How long does the seal of the K7 last?,"{row}",pumps\n'
        f'Is this document here?,"{row}",missing\n'
    )


def test_questions_are_read_with_their_spans(tmp_path: Path) -> None:
    write_set(tmp_path)
    questions = read_questions(tmp_path / "questions_df.csv")
    assert [q.document for q in questions] == ["pumps", "missing"]
    assert len(questions[0].spans[0]) == len("The *seal* of the K7 pump lasts nine months.")


def test_real_stages_find_the_gold_sentence_at_its_place_in_the_source(tmp_path: Path) -> None:
    write_set(tmp_path)
    figures = eval_chunks(tmp_path)
    assert figures["n"] == 1
    assert figures["recall@5"] == pytest.approx(1.0)
    assert 0 < figures["precision"] < 1
    assert figures["peer"]["recall@5"] == pytest.approx(1.0)
    assert {"machine", "versions", "seed", "sizes", "passages", "limit"} <= figures.keys()
