from __future__ import annotations

import pytest

from core.types import Verdict
from generation.answer import (
    candidates,
    extract,
    settled,
    still_supported,
    well_formed,
    without_preamble,
)
from tests.generation.evidence import evidence

TOWER = evidence(
    1,
    "The tower is 330 metres tall. It stands in Paris.",
    sentences=(("The tower is 330 metres tall.", 0.9), ("It stands in Paris.", 0.3)),
    start=50,
)
COPY = evidence(2, "The tower is 330 metres tall.", sentences=(("The tower is 330 metres tall.", 0.8),))
YEAR = evidence(3, "Workers finished it in 1889.", sentences=(("Workers finished it in 1889.", 0.5),))


def test_extract_shows_the_best_sentences_word_for_word() -> None:
    claims = extract("q", (TOWER, YEAR), max_sentences=2)
    assert [c.text for c in claims] == ["The tower is 330 metres tall.", "Workers finished it in 1889."]
    quote = claims[0].citations[0].quote
    assert quote is not None
    assert (quote.start, quote.end) == (50, 79)
    assert all(still_supported(c, (TOWER, YEAR)) for c in claims)


def test_a_sentence_said_by_two_documents_is_shown_once() -> None:
    claims = extract("q", (TOWER, COPY, YEAR), max_sentences=2)
    assert [c.citations[0].marker for c in claims] == [1, 3]


def test_the_best_sentence_stands_first_wherever_it_is_in_its_passage() -> None:
    text = "The pump stands in hall four. Fault code E27 means high pressure."
    scored = (("The pump stands in hall four.", 0.4), ("Fault code E27 means high pressure.", 0.9))
    claims = extract("q", (evidence(1, text, sentences=scored),), max_sentences=2)
    assert [c.text for c in claims] == [
        "Fault code E27 means high pressure.",
        "The pump stands in hall four.",
    ]


def test_passages_without_sentence_scores_are_scored_by_shared_words() -> None:
    plain = evidence(1, "Cats sleep. Pumps move water.", sentences=())
    assert candidates("What do pumps move?", (plain,))[0].text == "Pumps move water."


def test_a_span_that_does_not_fit_its_passage_is_never_quoted() -> None:
    from dataclasses import replace

    from core.types import SentenceScore, Span

    broken = replace(TOWER, sentences=(SentenceScore(Span(40, 60), 1.0),))
    assert extract("q", (broken,), max_sentences=2) == ()


def test_disagreeing_sources_are_both_shown() -> None:
    letter = evidence(1, "客户在九月十二日来信，要求更换两台阀门。")
    review = evidence(2, "客户于十月首次提出更换三台阀门的要求。")
    claims = extract("客户何时要求更换几台阀门？", (letter, review), max_sentences=2)
    assert {c.citations[0].marker for c in claims} == {1, 2}
    joined = "".join(c.text for c in claims)
    assert "九月" in joined
    assert "十月" in joined


def settle(text: str, *markers: int, shown: tuple[str, ...] = (), show_partial: bool = True):
    return settled(text, markers, (TOWER, YEAR), show_partial=show_partial, shown=shown)


def test_a_borne_out_sentence_stays_with_the_sentence_that_carries_it() -> None:
    claim = settle("The tower is 330 metres tall.", 1)
    assert claim.verdict is Verdict.SUPPORTED
    assert claim.citations[0].quote_text == "The tower is 330 metres tall."
    assert still_supported(claim, (TOWER, YEAR))


def test_a_wrong_marker_is_put_right() -> None:
    claim = settle("The tower is 330 metres tall.", 3)
    assert claim.citations[0].marker == 1
    assert claim.reason.startswith("reattributed")


def test_a_wrong_number_is_replaced_by_the_source() -> None:
    claim = settle("The tower is 324 metres tall.", 1)
    assert claim.text == "The tower is 330 metres tall."
    assert claim.reason.startswith("replaced_by_source;number:324")
    assert still_supported(claim, (TOWER, YEAR))


def test_a_sentence_from_nowhere_is_removed() -> None:
    claim = settle("Penguins swim far.", 1)
    assert (claim.text, claim.citations, claim.verdict) == ("", (), Verdict.UNSUPPORTED)


def test_a_marker_that_no_evidence_has_cites_nothing() -> None:
    claim = settle("Penguins swim far.", 9)
    assert claim.text == ""
    assert claim.reason == "marker_out_of_range"


def test_a_repetition_is_removed() -> None:
    assert settle("The tower is 330 metres tall.", 1, shown=("The tower is 330 metres tall.",)).text == ""


def test_a_partial_claim_is_hidden_when_the_policy_says_so() -> None:
    text = "The tower stands in Paris beside a wide river."
    assert settle(text, 1).verdict in (Verdict.PARTIAL, Verdict.SUPPORTED)
    hidden = settle(text, 1, show_partial=False)
    assert hidden.text != text


def test_a_stand_in_is_the_sentence_with_the_claims_code() -> None:
    text = (
        "Fault code E12 means that the tank is empty and the pump has stopped. "
        "Fault code E27 means that the back pressure is higher than 10 bar."
    )
    claim = settled(
        "Fault code E27 means that the pump pressure is 99 bar.", [1], [evidence(1, text)], show_partial=True
    )
    assert claim.text == "Fault code E27 means that the back pressure is higher than 10 bar."


def test_a_name_in_the_heading_is_not_missing_from_the_passage() -> None:
    text = "The diaphragm kit must be replaced every 2,000 operating hours."
    said = "The Kestrel diaphragm kit must be replaced every 2,000 operating hours."
    headed = evidence(1, text, heading=("Kestrel K7 manual",))
    assert settled(said, [1], [headed], show_partial=True).text == said
    assert settled(said, [1], [evidence(1, text)], show_partial=True).text == text


@pytest.mark.parametrize(
    "text",
    ["is 330 metres tall.", 'yes" or "no").', "The tower (330 metres is tall.", "“Paris.", "Paris.",
     "The tower stands in the.", "The tower is taller than"],
)  # fmt: skip
def test_a_piece_of_a_sentence_is_replaced_by_its_source_or_removed(text: str) -> None:
    claim = settle(text, 1)
    assert claim.text in ("", "The tower is 330 metres tall.", "It stands in Paris.")
    assert "no_sentence" in claim.reason


def test_a_name_of_one_letter_may_end_a_sentence() -> None:
    assert well_formed("Carrots hold vitamin A.")
    assert not well_formed("他参观了巴黎和。")
    assert well_formed("他参观了巴黎和里昂。")
    assert not well_formed("The tail is described as plush and plush.")
    assert not well_formed("The story is about how he gained powers and how he gained powers.")
    assert not well_formed("The aim was to bring people together and to bring people together.")
    assert not well_formed("尾巴柔软和柔软。")
    assert well_formed("It rained again and again, and more and more water came.")
    assert well_formed("They gave credit and credit ratings.")
    assert well_formed("Students learn to read and to write, and teachers learn to read.")
    assert well_formed("The tail is plush and the coat is plush.")


def test_numbers_with_hardly_a_word_are_only_partly_borne_out() -> None:
    act = evidence(1, "It follows the Act of 1975 and the British Act of 1981.")
    assert settled("The act is 1975 and 1981.", [1], [act], show_partial=True).verdict is Verdict.PARTIAL


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("The answer is: pumps run at night.", "Pumps run at night."),
        ("The answer to this question is that pumps run.", "Pumps run."),
        ("The answer is Manning.", "Manning."),
        ("答案是：水泵夜间运行。", "水泵夜间运行。"),
        ("The answer machine is old.", "The answer machine is old."),
    ],
)
def test_words_about_the_answer_itself_are_no_part_of_a_claim(said: str, meant: str) -> None:
    assert without_preamble(said) == meant
