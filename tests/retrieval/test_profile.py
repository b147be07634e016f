"""The built-in profile, and what its weights and depths say."""

from __future__ import annotations

import pytest

from core.settings import get_settings
from core.types import Lang, Route
from retrieval.profile import built_in, parse_profile

PROFILE = built_in(get_settings().retrieval)


@pytest.mark.parametrize("lang", list(Lang))
def test_every_language_weighs_the_routes_that_are_standardized(lang: Lang) -> None:
    routes = PROFILE.routes(lang)
    assert set(routes) == {Route.DENSE, Route.LEXICAL}
    assert min(PROFILE.of_question(lang).tokens, *routes.values()) > 0


def test_token_vectors_count_for_more_where_most_of_the_head_is_in_another_language() -> None:
    zh, en, und = Lang.ZH, Lang.EN, Lang.UND
    weight = PROFILE.tokens_weight
    assert weight(en, [zh, zh, en]) == PROFILE.across.tokens > PROFILE.en.tokens
    assert weight(en, [zh, en]) == weight(en, []) == PROFILE.en.tokens
    assert weight(und, [zh, en]) == weight(en, [und, und]) == PROFILE.en.tokens


def test_more_of_the_ranking_is_read_across_languages() -> None:
    zh, en, usual = Lang.ZH, Lang.EN, PROFILE.rerank_k
    assert PROFILE.head_size(zh, [en] * 80) == PROFILE.across.head > usual
    assert PROFILE.model_copy(update={"rerank_k": 200}).head_size(zh, [en] * 80) == 200
    # The head decides, not what stands below it.
    assert PROFILE.head_size(zh, [zh] * usual + [en] * 60) == usual
    assert PROFILE.head_size(zh, []) == usual


def test_a_profile_survives_json() -> None:
    assert parse_profile(PROFILE.model_dump(mode="json")) == PROFILE
