"""Weights by language."""

from __future__ import annotations

import pytest

from core.types import Lang, Route
from retrieval.weights import ACROSS_HEAD, ACROSS_TOKENS, head_size, tokens_weight, weights_for


@pytest.mark.parametrize("lang", list(Lang))
def test_every_language_weighs_the_routes_that_are_standardized(lang: Lang) -> None:
    weights = weights_for(lang)
    assert set(weights.routes) == {Route.DENSE, Route.LEXICAL}
    assert min(weights.tokens, *weights.routes.values()) > 0


def test_token_vectors_count_for_more_where_most_of_the_head_is_in_another_language() -> None:
    zh, en, und = Lang.ZH, Lang.EN, Lang.UND
    assert tokens_weight(en, [zh, zh, en]) == ACROSS_TOKENS > weights_for(en).tokens
    assert tokens_weight(en, [zh, en]) == tokens_weight(en, []) == weights_for(en).tokens
    assert tokens_weight(und, [zh, en]) == tokens_weight(en, [und, und]) == weights_for(und).tokens


def test_more_of_the_ranking_is_read_across_languages() -> None:
    zh, en = Lang.ZH, Lang.EN
    assert head_size(zh, [en] * 80, 20) == ACROSS_HEAD
    assert head_size(zh, [en] * 80, 200) == 200
    assert head_size(zh, [zh] * 20 + [en] * 60, 20) == 20  # the head decides, not what stands below it
    assert head_size(zh, [], 20) == 20
