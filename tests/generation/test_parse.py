from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.parse import MARKER_CHARS, ClaimParser, Event, ParsedClaim, TextDelta


def parse(*pieces: str, truncated: bool = False) -> list[Event]:
    parser = ClaimParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close(truncated=truncated)


def claims(events: list[Event]) -> list[ParsedClaim]:
    return [e for e in events if isinstance(e, ParsedClaim)]


def joined_deltas(events: list[Event]) -> dict[int, str]:
    text: dict[int, str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            text[event.claim] = text.get(event.claim, "") + event.text
    return text


def test_sentences_end_at_their_markers() -> None:
    found = claims(parse("The tower is 3.5 m tall. [2] It opened in 1889.[1][3] End [1]."))
    assert [(c.text, c.markers) for c in found] == [
        ("The tower is 3.5 m tall.", (2,)),
        ("It opened in 1889.", (1, 3)),
        ("End.", (1,)),
    ]


def test_chinese_sentences_need_no_space() -> None:
    found = claims(parse("塔高三百三十米。[2]它建于1889年[1]。“他说。”[1]没有标记。最后[3]。"))
    assert [(c.text, c.markers) for c in found] == [
        ("塔高三百三十米。", (2,)),
        ("它建于1889年。", (1,)),
        ("“他说。”", (1,)),
        ("没有标记。", ()),
        ("最后。", (3,)),
    ]


def test_a_list_of_numbers_in_one_bracket_is_one_marker_each() -> None:
    assert claims(parse("True. [1, 2，3]"))[0].markers == (1, 2, 3)


def test_brackets_that_are_no_markers_stay_text() -> None:
    assert claims(parse("See [figure 2] and [1a] here. [1]"))[0].text == "See [figure 2] and [1a] here."


def test_abbreviations_do_not_end_a_sentence() -> None:
    assert [c.text for c in claims(parse("Dr. Smith met J. Doe. He left. [1]"))] == [
        "Dr. Smith met J. Doe.",
        "He left.",
    ]


def test_a_marker_without_a_sentence_is_dropped() -> None:
    assert claims(parse("[1] The tower. [2]")) == [ParsedClaim(0, "The tower.", (2,), True)]


@pytest.mark.parametrize("dangling", ["[", "[1", "[12,", "[1, "])
def test_a_dangling_marker_is_removed(dangling: str) -> None:
    found = claims(parse("Pumps run. [1] Valves close. " + dangling, truncated=True))
    assert [c.text for c in found] == ["Pumps run.", "Valves close."]


def test_a_cut_off_sentence_is_incomplete() -> None:
    found = claims(parse("Pumps run. [1] Valves are 33", truncated=True))
    assert [(c.text, c.complete) for c in found] == [("Pumps run.", True), ("Valves are 33", False)]


def test_an_unclosed_bracket_of_any_length_is_let_go() -> None:
    parser = ClaimParser()
    held = 0
    for char in "Pumps [" + "1" * 5000:
        parser.feed(char)
        held = max(held, len(parser._held))
    assert held <= MARKER_CHARS
    assert claims(parser.close())[0].text.endswith("1" * 100)


TEXT = "水泵在三月更换[12]。阀门关闭。[1][2] Dr. Who said 3.5 [x] so. [3, 4] End.”[5] tail [9"


def test_one_or_two_cuts_anywhere_change_nothing() -> None:
    whole = parse(TEXT)
    for i, j in itertools.combinations(range(len(TEXT) + 1), 2):
        cut = parse(TEXT[:i], TEXT[i:j], TEXT[j:])
        assert claims(cut) == claims(whole)
        assert joined_deltas(cut) == joined_deltas(whole)


alphabet = st.sampled_from([*'ab1 2.[],。！水泵\n”"', "[1]", "[12]", ". ", "。"])


@given(st.lists(alphabet, max_size=40), st.data())
def test_the_stream_equals_the_final_text_at_every_cutting(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]
    whole, cut = parse(text), parse(*pieces)
    assert claims(cut) == claims(whole)
    deltas = joined_deltas(cut)
    assert {c.ordinal: c.text for c in claims(cut)} == deltas
    assert [c.ordinal for c in claims(cut)] == list(range(len(deltas)))
