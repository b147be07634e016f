from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.types import CitationMode, Lang
from generation.prompt_book import DEPTH, Form, PromptBook

FORM = Form(Lang.EN, CitationMode.FREE, "neutral")


def test_passages_of_most_prompts_stand_first_and_ties_by_id() -> None:
    book = PromptBook()
    assert book.order("t", [9, 3, 5]) == (3, 5, 9)
    for _ in range(3):
        book.note("t", FORM, [9])
    book.note("t", FORM, [5])
    assert book.order("t", [3, 5, 9]) == (9, 5, 3)


def test_what_one_tenant_asks_does_not_show_in_anothers_order() -> None:
    book = PromptBook()
    book.note("a", FORM, [9])
    assert book.order("b", [3, 9]) == (3, 9)


def test_old_use_counts_less() -> None:
    book = PromptBook(half_life=2)
    for _ in range(3):
        book.note("t", FORM, [1])
    for _ in range(2):
        book.note("t", FORM, [2])
    assert book.order("t", [1, 2])[0] == 2


def test_openings_seen_more_than_once_are_popular() -> None:
    book = PromptBook()
    for passages in ([1, 2, 3], [1, 2, 4], [5, 6], [1, 2, 5], [7, 8], [7, 8]):
        book.note("t", FORM, passages)
    assert [opening.passages for opening in book.popular(8)] == [(1, 2), (7, 8)]
    assert all(len(opening.passages) <= DEPTH for opening in book.popular(8))
    assert len(book.popular(1)) == 1


def test_the_book_is_bounded_and_keeps_the_most_used() -> None:
    book = PromptBook(capacity=10)
    for _ in range(5):
        book.note("t", FORM, [0])
    for passage in range(1, 100):
        book.note("t", FORM, [passage])
    assert book.order("t", [0, 500])[0] == 0
    assert book.popular(1)[0].passages == (0,)


@given(st.lists(st.lists(st.integers(0, 30), unique=True, max_size=6), max_size=40))
def test_the_order_of_shared_passages_never_depends_on_the_others(prompts: list[list[int]]) -> None:
    book = PromptBook(half_life=3)
    for passages in prompts:
        book.note("t", FORM, passages)
    whole = book.order("t", range(31))
    assert book.order("t", [20, 3, 7]) == tuple(p for p in whole if p in (3, 7, 20))
