from __future__ import annotations

from datetime import date

import pytest

from core.types import Lang, Verdict
from generation.answer import extract
from generation.conflicts import find_conflict, resolve
from generation.dates import source_date
from generation.policy import SourceRules
from generation.sources import DocumentFacts, permitted, with_source_rules
from ingest.values import Trust
from tests.generation.evidence import evidence

LETTER = evidence(1, "客户在九月十二日来信，要求更换两台阀门。", heading=("来信 2024-09-12",), lang=Lang.ZH)
REVIEW = evidence(2, "客户于十月首次提出更换三台阀门的要求。", heading=("内部复盘 2024-12-02",), lang=Lang.ZH)


def claim_of(one, *others):
    (claim,) = extract("客户何时要求更换几台阀门？", (one,), max_sentences=1)
    return claim, find_conflict(claim, (one, *others))


@pytest.mark.parametrize(
    ("rule", "markers", "rest"),
    [("both", [1, 2], None), ("newer", [2], 2), ("trusted", [1], 1)],
)
def test_disagreeing_sources_are_dated_and_the_rule_is_said(rule: str, markers: list[int], rest: int) -> None:
    claim, conflict = claim_of(LETTER, REVIEW)
    assert conflict is not None
    resolution = resolve(
        claim, conflict, (LETTER, REVIEW), rule=rule, lang=Lang.ZH, trust={"doc_1": 2, "doc_2": 1}
    )
    assert [c.citations[0].marker for c in resolution.claims] == markers
    assert all(c.verdict is Verdict.SUPPORTED for c in resolution.claims)
    assert "[1]（2024-09-12）" in resolution.notice.text
    assert "[2]（2024-12-02）" in resolution.notice.text
    assert resolution.notice.detail["shown"] == rest
    assert (f"只显示[{rest}]" in resolution.notice.text) is (rest is not None)


def test_a_rule_that_cannot_tell_shows_both() -> None:
    undated = evidence(2, "客户于十月首次提出更换三台阀门的要求。")
    claim, conflict = claim_of(LETTER, undated)
    assert conflict is not None
    resolution = resolve(claim, conflict, (LETTER, undated), rule="newer", lang=Lang.EN)
    assert len(resolution.claims) == 2
    assert resolution.notice.text == "Sources disagree (number): [1] of 2024-09-12 and [2]."


@pytest.mark.parametrize(
    "other",
    [
        evidence(2, "客户在九月十二日要求更换两台阀门。"),  # agrees
        evidence(2, "仓库里存有三百台阀门。"),  # of something else
        evidence(2, "客户于十月要求更换三台阀门。", document="doc_1"),  # of the same document
    ],
)
def test_what_agrees_or_speaks_of_other_things_is_no_conflict(other) -> None:
    assert claim_of(LETTER, other)[1] is None


def test_two_products_with_their_own_numbers_do_not_conflict() -> None:
    one = evidence(1, "The pump K7 runs at 5 bar in hall four.")
    other = evidence(2, "The pump K9 runs at 7 bar in hall four.")
    assert claim_of(one, other)[1] is None
    headed = evidence(1, "The pump runs at 5 bar in hall four.", heading=("Kestrel K7",))
    another = evidence(2, "The pump runs at 7 bar in hall four.", heading=("Kestrel K9",))
    assert claim_of(headed, another)[1] is None
    assert claim_of(one, evidence(2, "The pump K7 runs at 7 bar in hall four."))[1] is not None


def test_a_name_that_was_exchanged_is_a_conflict() -> None:
    one = evidence(1, "The final was played at Raymond James Stadium in Tampa, the home of the Buccaneers.")
    other = evidence(
        2, "The final was played at Raymond James Stadium in Glendale, the home of the Buccaneers."
    )
    conflict = claim_of(one, other)[1]
    assert conflict is not None
    assert conflict.what == "name"
    elsewhere = evidence(2, "The final was played at Wembley Stadium in London, the home of England.")
    assert claim_of(one, elsewhere)[1] is None


def test_a_source_is_dated_by_what_it_says_of_itself() -> None:
    assert source_date(LETTER) == date(2024, 9, 12)
    assert source_date(evidence(1, "2023年5月\n正文")) == date(2023, 5, 1)
    assert source_date(evidence(1, "No date.")) is None
    assert source_date(LETTER, {"doc_1": date(2020, 1, 1)}) == date(2020, 1, 1)


def test_a_policy_says_which_sources_may_be_cited() -> None:
    facts = {
        "doc_1": DocumentFacts(Trust.HIGH, ("law",), None, date(2026, 1, 1)),
        "doc_2": DocumentFacts(Trust.LOW, (), None, date(2026, 1, 1)),
    }
    today = date(2024, 12, 10)

    def kept(**rules: object) -> list[int]:
        chosen = permitted((LETTER, REVIEW), facts, SourceRules.model_validate(rules), today=today)
        return [e.marker for e in chosen]

    assert kept() == [1, 2]
    assert kept(trust=["high"]) == [1]
    assert kept(tags=["law"]) == [1]
    assert kept(tags=[]) == []
    assert kept(lang=["en"]) == []
    assert kept(max_age_days=30) == [2]
    assert permitted((LETTER,), {}, SourceRules(tags=("law",))) == ()


def test_retrieval_looks_only_where_the_policy_allows() -> None:
    rules = SourceRules(trust=(Trust.HIGH,), tags=("law",), lang=(Lang.ZH,))
    assert with_source_rules({}, rules) == {"trust": ["high"], "tags": ["law"], "lang": ["zh"]}
    allowed = with_source_rules(None, rules)
    assert with_source_rules({"tags": ["a"]}, rules) == {"all": [{"tags": ["a"]}, allowed]}
    assert with_source_rules(None, SourceRules()) == {}
