"""Near-duplicates, the cap per document with refill, and the token budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retrieval.dedupe import Seen, fingerprint, near_duplicates
from retrieval.pack import Candidate, diversify, fit

RULE = "消防通道必须保持畅通，任何人不得堆放杂物，违者按规定处理。"
DISTINCT = [
    "The pump is serviced every six months by the maintenance team.",
    "Winter opening hours end at four in the afternoon.",
    "质保期为二十四个月，自交付之日起计算。",
    "Deliveries arrive at the northern gate before eight.",
    "所有访客须在东门登记并佩戴胸牌。",
    "The archive keeps paper records for a decade.",
]


def candidates(*texts: str, document: str = "") -> list[Candidate]:
    return [Candidate(i, document or f"doc_{i}", text) for i, text in enumerate(texts, 1)]


def same(a: str, b: str) -> bool:
    return near_duplicates(fingerprint(a), fingerprint(b))


def test_width_case_and_script_variants_are_duplicates() -> None:
    assert same("The Valve XY is in Room B of the east wing.", "the valve ＸＹ is in room B of the east wing")
    assert same("後臺的開關位於東門值班室的地下一層走廊。", "后台的开关位于东门值班室的地下一层走廊。")


def test_another_number_or_a_negation_is_no_duplicate() -> None:
    tower = "The tower at the northern end of the harbour is {} metres tall and was built by the city."
    assert not same(tower.format(330), tower.format(320))
    assert not same("阀门必须在每次启动前由值班人员打开。", "阀门不必在每次启动前由值班人员打开。")
    assert not same(
        "Do enter the room while the lamp is red.", "Do not enter the room while the lamp is red."
    )


GAME = (
    "The final was played on a cold evening at the stadium in {}, before a full house, and was watched on "
    "screens large and small by many people all over the country. Nobody was hurt."
)
NOTICE = (
    "公告称，公司财务负责人{}于日前辞去职务，董事会将尽快完成新任财务负责人的选聘工作，期间由总经理代行其职责，"
    "公司对其任职期间所作的贡献表示感谢。会议还审议了其他事项。"
)


def test_another_name_is_no_duplicate() -> None:
    assert not same(GAME.format("Tampa"), GAME.format("Glendale"))
    assert not same(NOTICE.format("李伟明"), NOTICE.format("王芳华"))


def test_another_word_that_names_nobody_is_a_duplicate() -> None:
    assert same(GAME.format("Tampa"), GAME.format("Tampa").replace("many", "lots of"))
    assert same(GAME.format("Tampa"), GAME.format("Tampa").upper())
    assert same(NOTICE.format("李伟明"), NOTICE.format("李伟明").replace("还审议了", "审议了"))


def test_repeats_collapse_into_the_best_ranked_one_and_are_counted() -> None:
    site_7 = RULE + "本厂区消防水池补水阀位于东门值班室地下。"
    ranked = candidates(RULE, RULE, RULE, site_7, RULE)
    selection = diversify(ranked, per_document_cap=4, limit=5)
    assert selection.kept == (1, 4)
    assert selection.collapsed == {1: 3}
    assert [(d.key, d.why, d.of) for d in selection.dropped] == [
        (2, "duplicate", 1), (3, "duplicate", 1), (5, "duplicate", 1),
    ]  # fmt: skip


def test_a_capped_document_makes_room_for_others_and_refills_what_they_leave() -> None:
    ranked = [Candidate(i, "doc_a", text) for i, text in enumerate(DISTINCT[:4], 1)]
    ranked += [Candidate(5, "doc_b", DISTINCT[4])]
    assert diversify(ranked, per_document_cap=2, limit=3).kept == (1, 2, 5)
    refilled = diversify(ranked, per_document_cap=2, limit=4)
    assert refilled.kept == (1, 2, 3, 5)
    assert [(d.key, d.why) for d in refilled.dropped] == [(4, "document_cap")]
    assert diversify(ranked, per_document_cap=2, limit=9).kept == (1, 2, 3, 4, 5)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, len(DISTINCT) - 1)), max_size=12),
    st.integers(1, 4),
    st.integers(1, 8),
)
def test_selection_keeps_the_order_and_never_leaves_room_empty(
    shape: list[tuple[int, int]], cap: int, limit: int
) -> None:
    ranked = [Candidate(i, f"doc_{d}", DISTINCT[t]) for i, (d, t) in enumerate(shape)]
    selection = diversify(ranked, per_document_cap=cap, limit=limit)
    distinct = len({t for _, t in shape})
    assert list(selection.kept) == sorted(selection.kept)
    assert len(selection.kept) == min(limit, distinct)
    assert not set(selection.kept) & {d.key for d in selection.dropped}


def test_page_two_follows_page_one() -> None:
    numbers = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26]
    ranked = candidates(*(f"Machine number {n} stands in hall {n}." for n in numbers))
    whole = diversify(ranked, per_document_cap=10, limit=10).kept
    assert whole[:5] == diversify(ranked, per_document_cap=5, limit=5).kept
    assert whole == tuple(range(1, 11))


def test_what_does_not_fit_gives_way_to_smaller_passages() -> None:
    kept, dropped = fit(candidates("aaaa", "bbbbbbbb", "cc"), budget=7, count_tokens=len)
    assert kept == (1, 3)
    assert [(d.key, d.why) for d in dropped] == [(2, "budget")]
    assert fit(candidates("aaaa"), budget=3, count_tokens=len)[0] == ()


@given(
    st.lists(
        st.tuples(st.text("abcdefgh", min_size=20, max_size=60), st.integers(0, 3), st.sampled_from("xy1")),
        max_size=12,
    )
)
def test_twins_are_those_that_comparing_with_each_finds(made: list[tuple[str, int, str]]) -> None:
    """Texts with copies that differ in a letter or two, some in a number."""
    texts = [text[: len(text) - cut] + letter for text, cut, letter in made] + [text for text, _, _ in made]
    seen, before = Seen(), []
    for text in texts:
        mark = fingerprint(text)
        assert seen.twins(mark) == [n for n, other in enumerate(before) if near_duplicates(mark, other)]
        assert seen.add(mark) == len(before)
        before.append(mark)
