"""One of the largest is not the largest."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.verify import judge


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Dover is the largest port in Kent.", "Dover is one of the largest ports in Kent."),
        ("Dover is the largest port in Kent.", "Dover is the second-largest port in Kent."),
        ("Dover is the most populous city of Kent.", "Dover is the 12th most populous city of Kent."),
        ("Dover is the most populous city of Kent.", "Dover is among the most populous cities of Kent."),
        ("东港是该省最大的港口。", "东港是该省最大的港口之一。"),
    ],
)
def test_a_higher_rank_than_the_sources_is_refused(claim: str, source: str) -> None:
    assert judge(source, source).verdict is Verdict.SUPPORTED
    assert judge(claim, source).verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Dover is one of the largest ports in Kent.", "Dover is the largest port in Kent."),
        ("Dover is the largest port.", "Dover, among the oldest, is the largest port in Kent."),
        ("Dover is the 2nd most populous city.", "Dover is the second most populous city in Kent."),
        ("东港是该省最大的港口之一。", "东港是该省最大的港口。"),
        ("东港是最大的港口。", "东港是该省最大的港口，也是最老的之一。"),
    ],
)
def test_the_same_rank_or_a_lower_one_stays(claim: str, source: str) -> None:
    assert not judge(claim, source).reason.startswith("rank")
