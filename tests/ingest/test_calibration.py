from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.calibration import LEAD_MOST, Evidence, hundredths, probability

LIKELY = Evidence(own=2.7, lead=1.5, overlap=0.2, cosine=1.5)


def test_what_speaks_for_a_reading_raises_its_probability() -> None:
    for better in (
        replace(LIKELY, own=3.5),
        replace(LIKELY, lead=3.0),
        replace(LIKELY, overlap=0.5),
        replace(LIKELY, cosine=3.0),
    ):
        assert probability(better) > probability(LIKELY)
    assert probability(replace(LIKELY, differs=True)) < probability(LIKELY)


def test_a_name_of_several_without_a_word_of_context_is_no_link() -> None:
    alike = Evidence(own=2.7, lead=0.3, rivals=1)
    assert probability(alike) < 0.5
    assert probability(replace(alike, rivals=2)) < probability(alike)
    assert probability(Evidence(own=2.0, lead=LEAD_MOST)) > 0.9, "the only one of the name"


def test_a_text_no_nearer_than_that_of_a_stranger_is_no_link() -> None:
    assert probability(replace(LIKELY, cosine=-1.5, overlap=0.0)) < 0.5 < probability(LIKELY)


def test_nearness_is_told_in_bounded_hundredths() -> None:
    assert hundredths(0.02) == pytest.approx(0)
    assert hundredths(0.035) == pytest.approx(1.5)
    assert (hundredths(0.9), hundredths(-0.9)) == (4, -4)


@given(
    st.builds(
        Evidence,
        own=st.floats(-50, 50),
        lead=st.floats(0, 50),
        overlap=st.floats(0, 1),
        cosine=st.none() | st.floats(-4, 4),
        rivals=st.integers(0, 50),
        differs=st.booleans(),
    )
)
def test_it_is_a_probability(evidence: Evidence) -> None:
    assert 0 < probability(evidence) < 1
