"""Packed token vectors: their size, what comes back, and how near the estimates are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.encode import TokenVectors
from retrieval.token_codec import MAX_BYTES, pack_tokens, rotated, unpack_tokens


def made(count: int, dimension: int = 384, *, seed: int = 3) -> tuple[str, TokenVectors]:
    """A text of words of three letters and vectors around a common direction, as an encoder's are."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((count, dimension)) * 0.5 + random.standard_normal(dimension)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    offsets = np.array([[4 * i, 4 * i + 3] for i in range(count)], np.int32).reshape(-1, 2)
    return "abc " * count, TokenVectors(vectors.astype(np.float32), offsets)


@pytest.mark.parametrize("dimension", [8, 100, 384, 768, 1024])
def test_the_rotation_keeps_every_product_and_turns_back(dimension: int) -> None:
    _, tokens = made(5, dimension)
    turned = rotated(tokens.vectors)
    assert np.allclose(turned @ turned.T, tokens.vectors @ tokens.vectors.T, atol=1e-5)
    assert np.allclose(rotated(turned, back=True), tokens.vectors, atol=1e-5)


@given(st.integers(0, 40), st.sampled_from([8, 96, 384]))
def test_places_come_back_and_cosines_are_near(count: int, dimension: int) -> None:
    text, tokens = made(count, dimension)
    packed = pack_tokens(text, tokens)
    stored = unpack_tokens(packed)
    assert len(stored) == count
    assert np.array_equal(stored.offsets, tokens.offsets)
    question = tokens.vectors[:3] if count else np.ones((1, dimension), np.float32)
    estimated = stored.similarities(question)
    assert estimated.shape == (len(question), count)
    assert np.allclose(estimated, question @ stored.vectors().vectors.T, atol=1e-3)
    if dimension == 384 and count > 1:
        assert np.abs(estimated - question @ tokens.vectors.T).max() < 0.15
        assert np.abs(estimated - question @ tokens.vectors.T).mean() < 0.04


@pytest.mark.parametrize(("count", "dimension"), [(250, 384), (480, 384), (512, 1024), (5000, 384)])
def test_no_passage_takes_more_than_its_share(count: int, dimension: int) -> None:
    """Neighbours that are alike become one; together they still cover the text."""
    text, tokens = made(count, dimension)
    packed = pack_tokens(text, tokens)
    assert len(packed) <= MAX_BYTES
    stored = unpack_tokens(packed)
    assert 0 < len(stored) <= count
    assert stored.offsets[0, 0] == 0
    assert (np.diff(stored.offsets[:, 0]) > 0).all()


def test_marks_between_words_are_left_out_unless_there_is_nothing_else() -> None:
    _, tokens = made(4)
    places = np.array([[0, 2], [2, 3], [3, 5], [5, 6]], np.int32)
    words = unpack_tokens(pack_tokens("水泵，保养。", TokenVectors(tokens.vectors, places)))
    assert words.offsets.tolist() == [[0, 2], [3, 5]]
    marks = unpack_tokens(pack_tokens("…… ——.", TokenVectors(tokens.vectors, places)))
    assert len(marks) == 4


def test_what_is_cut_short_or_of_another_version_is_refused() -> None:
    packed = pack_tokens(*made(3))
    for damaged in (packed[:-1], packed[:4], b"", b"\x09" + packed[1:]):
        with pytest.raises(ValueError, match="token vectors"):
            unpack_tokens(damaged)


def test_the_same_text_gives_the_same_bytes() -> None:
    assert pack_tokens(*made(30)) == pack_tokens(*made(30))
