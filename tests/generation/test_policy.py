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


def test_a_mode_that_is_not_served_is_refused_not_faked() -> None:
    with pytest.raises(InvalidInput, match="choose extract or free"):
        parse_policy({"mode": "quote"})
