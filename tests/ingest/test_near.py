from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.near import (
    BANDS,
    MIN_SHINGLES,
    VALUES,
    band_keys,
    estimate,
    jaccard,
    shingles,
    signature,
)
from ingest.near_duplicates import REPORTED_FROM
from tests.e2e.help_pages import page
from tests.e2e.test_chaos import WORDS

# The texts below differ in the order of their words, or characters, alone.
CHINESE = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后"
    "水泵阀门压力管道仪表车站北方河流桥梁石铁冬季港口信号记录机器办公信件花园市场季节"
)  # fmt: skip
TOKENS = {"en": WORDS, "zh": tuple(CHINESE)}


def text_of(language: str, seed: int, size: int = 600) -> list[str]:
    """Tokens of a made-up document: words, or single characters."""
    chance = random.Random(f"{language} {seed}")
    return [chance.choice(TOKENS[language]) for _ in range(size)]


def joined(language: str, tokens: list[str]) -> str:
    return (" " if language == "en" else "").join(tokens)


def edited(language: str, tokens: list[str], share: float, *, scattered: bool, seed: int) -> list[str]:
    """The same tokens with a share of them replaced, one by one or as one block."""
    chance = random.Random(f"edit {seed}")
    count, changed = round(share * len(tokens)), list(tokens)
    first = chance.randrange(len(tokens) - count + 1)
    places = chance.sample(range(len(tokens)), count) if scattered else range(first, first + count)
    for place in places:
        changed[place] = chance.choice([t for t in TOKENS[language] if t != changed[place]])
    return changed


def similarity(first: str, second: str) -> float:
    return jaccard(shingles(first), shingles(second))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("share", "scattered", "low", "high"),
    [
        (0.01, True, 0.85, 1.0), (0.01, False, 0.95, 1.0),
        (0.05, True, 0.55, 0.85), (0.05, False, 0.85, 0.95),
        (0.20, False, 0.60, 0.72), (0.20, True, 0.10, 0.50),
    ],
)  # fmt: skip
def test_edited_copies_are_as_alike_as_their_edits_are_small(
    language: str, share: float, scattered: bool, low: float, high: float
) -> None:
    for seed in range(20):
        tokens = text_of(language, seed)
        copy = edited(language, tokens, share, scattered=scattered, seed=seed)
        first, second = joined(language, tokens), joined(language, copy)
        assert low <= similarity(first, second) <= high, (seed, similarity(first, second))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pairs_that_are_to_be_reported_meet_in_a_band(language: str) -> None:
    met = {0.01: 0, 0.05: 0, 0.20: 0}
    for share in met:
        for seed in range(100):
            tokens = text_of(language, seed)
            copy = edited(language, tokens, share, scattered=share < 0.2, seed=seed)
            keys = [set(band_keys(signature(shingles(joined(language, t))))) for t in (tokens, copy)]
            met[share] += bool(keys[0] & keys[1])
    assert met[0.01] == 100
    assert min(met.values()) >= 97, met


def test_different_documents_are_never_told_to_be_alike() -> None:
    for language in ("en", "zh"):
        texts = [shingles(joined(language, text_of(language, seed))) for seed in range(40)]
        assert max(jaccard(a, b) for a, b in combinations(texts, 2)) < 0.2
    pages = [shingles(page(n)[1]) for n in range(60)]  # the same template, other content
    assert max(jaccard(a, b) for a, b in combinations(pages, 2)) < REPORTED_FROM


def test_layout_width_case_and_traditional_forms_do_not_count() -> None:
    told = "The pump K7 doses 38 litres per hour, at most ten bar; see table nine on the next page."
    assert similarity(told, told.upper().replace(",", "\n\n—") + "!") == 1.0
    plain = "后台程序每天凌晨三点备份数据库，磁盘余量低于百分之十时发出警报。"
    assert similarity(plain, "後臺程序，每天凌晨三點備份數據庫。\n磁盤餘量低於百分之十時發出警報！") == 1.0
    assert similarity("ＸＹ－２０８０ " * 3 + plain, "xy-2080 " * 3 + plain) == 1.0


@pytest.mark.parametrize("text", ["", "。。。", "one two three", "你好世界", "\ud800", "🎈" * 50])
def test_texts_that_say_too_little_have_no_shingles(text: str) -> None:
    assert len(shingles(text)) == 0
    assert jaccard(shingles(text), shingles("a b c d e f g h i j k l m n")) == 0.0


@given(st.lists(st.text(min_size=1, max_size=12), min_size=MIN_SHINGLES + 6, max_size=60))
def test_signatures_of_any_text_are_whole_and_equal_for_equal_texts(words: list[str]) -> None:
    text = " ".join(words)
    first = shingles(text)
    assert np.array_equal(first, np.unique(first))
    if not len(first):
        return
    values = signature(first)
    assert (values.shape, values.dtype) == ((VALUES,), np.dtype(np.uint32))
    assert estimate(values, signature(shingles(text))) == 1.0
    keys = band_keys(values)
    assert len(keys) == BANDS
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_estimates_stay_near_the_exact_index() -> None:
    errors = []
    for seed in range(60):
        tokens = text_of("en", seed, size=200 + 20 * seed)
        copy = edited("en", tokens, (seed % 10) / 25, scattered=False, seed=seed)
        one, two = shingles(joined("en", tokens)), shingles(joined("en", copy))
        errors.append(estimate(signature(one), signature(two)) - jaccard(one, two))
    assert abs(np.mean(errors)) < 0.02
    assert np.std(errors) < 0.06
