from __future__ import annotations

import pytest

from core.errors import InvalidInput
from core.settings import GenerationSettings, RetrievalSettings
from core.types import CitationMode, Lang
from generation.policy import CitationPolicy, merged, parse_policy, resolved


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"policy\.modus"):
        parse_policy({"modus": "free"})
    with pytest.raises(InvalidInput, match=r"policy\.max_sentences"):
        merged(CitationPolicy(), {"max_sentences": 0})


def test_the_request_is_laid_over_the_collection() -> None:
    base = parse_policy({"mode": "free", "max_sentences": 3, "refusal": {"en": "No."}})
    policy = merged(base, {"max_sentences": 5, "refusal": {"zh": "无。"}})
    assert (policy.mode, policy.max_sentences) == (CitationMode.FREE, 5)
    assert (policy.refusal.en, policy.refusal.zh) == ("No.", "无。")


def test_the_stored_policy_has_no_open_value() -> None:
    policy = resolved(CitationPolicy(), GenerationSettings(), RetrievalSettings())
    assert policy.mode is CitationMode.EXTRACT
    assert policy.max_sentences == 2
    assert policy.refusal_threshold == RetrievalSettings().refusal_threshold
    assert policy.max_answer_tokens == 256
    assert resolved(policy, GenerationSettings(), RetrievalSettings()) == policy


def test_a_threshold_of_zero_is_kept() -> None:
    policy = resolved(parse_policy({"refusal_threshold": 0}), GenerationSettings(), RetrievalSettings())
    assert policy.refusal_threshold == 0


def test_the_refusal_speaks_the_questions_language() -> None:
    words = CitationPolicy()
    assert words.refusal_words(Lang.ZH) == words.refusal.zh
    assert words.refusal_words(Lang.UND) == words.refusal.en


def test_a_request_narrows_the_sources_of_its_collection_and_never_widens_them() -> None:
    base = parse_policy({"sources": {"trust": ["high", "normal"], "max_age_days": 30}})
    asked = merged(base, {"sources": {"trust": ["normal", "low"], "max_age_days": 300, "tags": ["law"]}})
    assert asked.sources.trust == ("normal",)
    assert (asked.sources.max_age_days, asked.sources.tags) == (30, ("law",))
    assert merged(base, {"mode": "quote"}).sources == base.sources


def test_length_and_tone_are_bounded_words() -> None:
    settings = GenerationSettings()
    short = resolved(parse_policy({"mode": "quote", "length": "short"}), settings, RetrievalSettings())
    long = resolved(parse_policy({"length": "long"}), settings, RetrievalSettings())
    assert (short.max_sentences, long.max_sentences) == (2, 4)
    with pytest.raises(InvalidInput, match=r"policy\.tone"):
        parse_policy({"tone": "angry"})


def test_what_a_model_may_write_for_the_search_is_off_unless_the_policy_says_so() -> None:
    assert parse_policy({}).rewrite == "off"
    assert merged(parse_policy({"rewrite": "hyde"}), {"rewrite": "llm"}).rewrite == "llm"
    with pytest.raises(InvalidInput, match=r"policy\.rewrite"):
        parse_policy({"rewrite": "always"})


def test_the_model_orders_passages_only_where_the_policy_says_so() -> None:
    assert parse_policy({}).listwise is False
    with pytest.raises(InvalidInput, match=r"policy\.listwise"):
        parse_policy({"listwise": "sometimes"})


def test_words_of_a_refusal_say_something() -> None:
    with pytest.raises(InvalidInput, match="refusal"):
        parse_policy({"refusal": {"en": "  "}})
