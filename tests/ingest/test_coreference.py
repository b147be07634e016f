from __future__ import annotations

import pytest

from core.types import Lang, Passage, Span
from ingest.coreference import with_short_forms
from ingest.values import Mention


def read(text: str, *names: tuple[str, str]) -> list[tuple[str, str]]:
    """Surface and full name of every mention, the given ones found at each of their places."""
    passage = Passage(1, "d", 1, 0, Span(10, 10 + len(text)), None, (), Lang.EN, text)
    mentions = [
        Mention(1, Span(10 + at, 10 + at + len(name)), name, kind)
        for name, kind in names
        for at in range(len(text))
        if text.startswith(name, at)
    ]
    found = with_short_forms([passage], sorted(mentions, key=lambda m: m.span))
    assert all(text[m.span.start - 10 : m.span.end - 10] == m.surface for m in found)
    return [(m.surface, m.stands_for) for m in found]


@pytest.mark.parametrize(
    ("text", "names", "short", "full"),
    [
        ("Dr. Maria Novak signed. Novak left.", [("Maria Novak", "PERSON")], "Novak", "Maria Novak"),
        ("王小明是经理。王经理明天休假。", [("王小明", "PERSON")], "王经理", "王小明"),
        ("欧阳晓月已到。欧阳女士发言。", [("欧阳晓月", "PERSON")], "欧阳女士", "欧阳晓月"),
        (
            "Acme Pumps Ltd sells pumps. Acme Pumps grew.",
            [("Acme Pumps Ltd", "ORG")],
            "Acme Pumps",
            "Acme Pumps Ltd",
        ),
        (
            "海石科技有限公司成立。海石科技盈利。",
            [("海石科技有限公司", "ORG")],
            "海石科技",
            "海石科技有限公司",
        ),
    ],
)
def test_a_short_form_is_found_and_tied_to_the_full_name(
    text: str, names: list[tuple[str, str]], short: str, full: str
) -> None:
    assert read(text, *names) == [(full, ""), (short, full)]


@pytest.mark.parametrize(
    ("text", "full", "alias"),
    [
        ("American Civil Liberties Union (ACLU) sued. ACLU won.", "American Civil Liberties Union", "ACLU"),
        ("海石科技有限公司（以下简称“海石”）成立。海石盈利。", "海石科技有限公司", "海石"),
        ("北京航空航天大学（北航）招生。北航很大。", "北京航空航天大学", "北航"),
    ],
)
def test_a_name_that_the_document_defines_is_tied(text: str, full: str, alias: str) -> None:
    # The recogniser may miss the short form or find it.
    assert read(text, (full, "ORG")) == [(full, ""), (alias, full), (alias, full)]
    assert (alias, full) in read(text, (full, "ORG"), (alias, "ORG"))


def test_a_surname_of_two_people_is_tied_to_neither() -> None:
    text = "Maria Novak and Peter Novak met. Novak spoke."
    assert read(text, ("Maria Novak", "PERSON"), ("Peter Novak", "PERSON")) == [
        ("Maria Novak", ""),
        ("Peter Novak", ""),
    ]


def test_brackets_that_say_something_else_define_nothing() -> None:
    text = "Acme Pumps (founded in 1990) and Lyon (France)."
    assert read(text, ("Acme Pumps", "ORG"), ("Lyon", "GPE"), ("France", "GPE")) == [
        ("Acme Pumps", ""), ("Lyon", ""), ("France", ""),
    ]  # fmt: skip


def test_a_word_that_only_contains_the_short_form_is_left_alone() -> None:
    assert read("Tom Ford came. Fords and Fordham.", ("Tom Ford", "PERSON")) == [("Tom Ford", "")]
