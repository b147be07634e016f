"""Late interaction against plain loops, the time budget, the final order, sentences and relevance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Lang
from ingest.encode import TokenVectors
from retrieval.centres import Centres
from retrieval.relevance import Question, relevance, terms
from retrieval.rerank import (
    BATCH,
    Head,
    TokenCache,
    centred_closeness,
    final_order,
    mean_of_best,
    score_head,
)
from retrieval.sentence_scores import score_sentences
from retrieval.token_codec import pack_tokens, unpack_tokens

rng = np.random.default_rng(7)


def unit(rows: int, dimension: int = 8) -> np.ndarray:
    made = rng.standard_normal((rows, dimension)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def question(
    text: str = "水泵多久保养一次？", lang: Lang = Lang.ZH, tokens: np.ndarray | None = None
) -> Question:
    vectors = unit(4) if tokens is None else tokens
    return Question(text, lang, vectors, vectors.mean(axis=0), terms(text))


def tokens_of(text: str) -> TokenVectors:
    """One token per character with a direction of its own, so that equal characters match with cosine 1."""
    vectors = np.stack([_direction(c) for c in text])
    offsets = np.array([[i, i + 1] for i in range(len(text))], np.int32)
    return TokenVectors(vectors, offsets)


def _direction(character: str) -> np.ndarray:
    made = np.random.default_rng(ord(character)).standard_normal(64).astype(np.float32)
    return made / np.linalg.norm(made)


@pytest.mark.parametrize(("q", "p"), [(1, 1), (1, 9), (7, 1), (5, 13)])
def test_maxsim_equals_its_loop(q: int, p: int) -> None:
    a, b = unit(q), unit(p)
    loop = [max(float(np.dot(x, y)) for y in b) for x in a]
    assert mean_of_best(a @ b.T) == pytest.approx(sum(loop) / q, abs=1e-6)


def test_a_text_without_tokens_is_similar_to_nothing() -> None:
    assert mean_of_best(np.empty((3, 0), np.float32)) == 0.0
    assert mean_of_best(np.empty((0, 3), np.float32)) == 0.0


def test_centred_closeness_is_near_its_loop_over_whole_vectors() -> None:
    """Estimates from one bit a dimension deviate a little; the order of what is apart does not."""
    centre_q, centre_p = 0.8 * unit(1, 64)[0], 0.8 * unit(1, 64)[0]
    asked = question(tokens=_around(centre_q, 5))
    whole = [_around(centre_p, 20) for _ in range(6)]
    whole[3][:5] = _normal(asked.tokens - centre_q + centre_p)  # the one that says what the question says
    text = "a" * 20
    offsets = np.array([[i, i + 1] for i in range(20)], np.int32)
    stored = [unpack_tokens(pack_tokens(text, TokenVectors(rows, offsets))) for rows in whole]
    centres = Centres({Lang.ZH: centre_q}, {Lang.EN: centre_p}, {})
    found = centred_closeness(asked, [(one, Lang.EN) for one in stored], centres)
    loop: list[float] = []
    for rows in whole:
        left, right = _normal(asked.tokens - centre_q), _normal(rows - centre_p)
        loop.append(sum(math.exp(3 * max(float(a @ b) for b in right)) for a in left) / len(left))
    assert int(np.argmax(found)) == int(np.argmax(loop)) == 3
    assert np.corrcoef(found, loop)[0, 1] > 0.95


def _around(centre: np.ndarray, rows: int) -> np.ndarray:
    return _normal(centre + 0.6 * unit(rows, 64))


def _normal(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class Encoder:
    """Encodes with the character directions and takes a second per call on a clock of its own."""

    def __init__(self) -> None:
        self.now, self.texts = 0.0, list[str]()

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        self.now += 1.0
        self.texts += texts
        return [pack_tokens(text, tokens_of(text)) for text in texts]

    def clock(self) -> float:
        return self.now


HEAD = [(i, f"passage number {i}", Lang.EN) for i in range(1, 21)]
ASKED = question("passage", Lang.EN, tokens_of("passage").vectors)


def score(
    encoder: Encoder, cache: TokenCache, budget_s: float, stored: dict[int, bytes] | None = None
) -> Head:
    def load(ids: Sequence[int]) -> dict[int, bytes]:
        return {i: packed for i, packed in (stored or {}).items() if i in ids}

    return score_head(
        ASKED, HEAD, load=load, encode=encoder.encode, cache=cache, budget_s=budget_s, clock=encoder.clock
    )


def test_a_spent_budget_is_overrun_by_at_most_one_batch() -> None:
    encoder = Encoder()
    head = score(encoder, TokenCache(1 << 20), 1.5)
    assert [s.passage_id for s in head.scored] == list(head.made) == list(range(1, 2 * BATCH + 1))
    assert encoder.now == 2.0


def test_cached_passages_are_scored_alike_and_cost_nothing() -> None:
    encoder, cache = Encoder(), TokenCache(1 << 20)
    first = score(encoder, cache, 99)
    again = score(encoder, cache, 0)
    assert len(encoder.texts) == len(HEAD) == len(first.made)
    assert again.made == {}
    assert [s.maxsim for s in again.scored] == [s.maxsim for s in first.scored]


def test_what_is_stored_is_not_encoded_and_a_spent_budget_leaves_out_the_rest() -> None:
    encoder = Encoder()
    stored = score(encoder, TokenCache(1 << 20), 99).made
    fresh = Encoder()
    assert [s.maxsim for s in score(fresh, TokenCache(1 << 20), 0, stored).scored] == [
        s.maxsim for s in score(encoder, TokenCache(1 << 20), 99).scored
    ]
    assert fresh.texts == []
    some = {i: stored[i] for i in (2, 5)}
    head = score(fresh, TokenCache(1 << 20), 0, some)
    assert [s.passage_id for s in head.scored] == [2, 5]
    assert fresh.texts == []


def test_the_cache_stays_below_its_bound_and_drops_the_oldest() -> None:
    one = bytes(100)
    cache = TokenCache(2 * len(one))
    for passage_id in (1, 2):
        cache.put(passage_id, one)
    assert cache.get(1) is not None
    cache.put(3, one)
    assert cache.get(2) is None
    assert cache.get(1) is not None
    assert cache.get(3) is not None


@given(
    st.lists(st.tuples(st.integers(1, 40), st.floats(-5, 5)), max_size=15, unique_by=lambda t: t[0]),
    st.integers(0, 15),
)
def test_what_was_not_reranked_never_overtakes_what_was(fused: list[tuple[int, float]], head: int) -> None:
    fused = sorted(fused, key=lambda t: (-t[1], t[0]))
    maxsims = {passage_id: (passage_id * 37 % 11) / 11 for passage_id, _ in fused[:head]}
    order = final_order(fused, maxsims, weight=2.0)
    assert {i for i, _ in order} == {i for i, _ in fused}
    assert {i for i, _ in order[: len(maxsims)]} == set(maxsims)
    assert [i for i, _ in order[len(maxsims) :]] == [i for i, _ in fused[len(maxsims) :]]
    assert [s for _, s in order] == sorted((s for _, s in order), reverse=True)


def test_a_clear_late_interaction_winner_comes_first() -> None:
    fused = [(1, 2.0), (2, 1.9), (3, 1.8), (4, -3.0)]
    assert final_order(fused, {1: 0.80, 2: 0.80, 3: 0.93, 4: 0.79}, weight=2.0)[0][0] == 3


def test_the_sentence_that_answers_scores_highest() -> None:
    text = "水泵位于东门。水泵每六个月保养一次。值班室在地下。"
    asked = question("水泵多久保养一次？", Lang.ZH, tokens_of("水泵多久保养一次").vectors)
    (scored,) = score_sentences(asked, [(text, tokens_of(text), 100, 0.9)])
    assert [(s.span.start, s.span.end) for s in scored] == [(100, 107), (107, 118), (118, 125)]
    assert all(0 <= s.score <= 1 for s in scored)
    assert max(scored, key=lambda s: s.score).span.start == 107


def test_a_question_for_a_number_prefers_a_sentence_with_a_new_number() -> None:
    text = "Pump 7 was painted. Pump 7 weighs 40 kg."
    asked = question("How much does pump 7 weigh?", Lang.EN, tokens_of("pump 7").vectors)
    (scored,) = score_sentences(asked, [(text, tokens_of(text), 0, 0.9)])
    assert scored[1].score > scored[0].score


def test_a_chinese_numeral_with_a_measure_word_is_a_number() -> None:
    text = "一些水泵已经涂漆完毕。水泵每三个月保养。"
    asked = question("水泵多少个月保养？", Lang.ZH, tokens_of("水泵").vectors)
    (scored,) = score_sentences(asked, [(text, tokens_of(text), 0, 0.9)])
    assert scored[1].score > scored[0].score


def test_a_term_that_every_sentence_has_tells_none_apart() -> None:
    text = "Pump one was painted. Pump two has a brass impeller. Pump three was sold."
    asked = question("pump impeller", Lang.EN, tokens_of("impeller").vectors)
    (scored,) = score_sentences(asked, [(text, tokens_of(text), 0, 0.9)])
    assert max(scored, key=lambda s: s.score).span.start == text.index("Pump two")


def test_no_evidence_has_no_sentences() -> None:
    assert score_sentences(question(), []) == []


def test_relevance_grows_with_similarity_and_shared_terms() -> None:
    asked = question()
    near, far = "水泵每六个月保养一次。", "食堂的开放时间。"
    assert relevance(asked, 0.92, near, Lang.ZH) > relevance(asked, 0.85, near, Lang.ZH)
    assert relevance(asked, 0.88, near, Lang.ZH) > relevance(asked, 0.88, far, Lang.ZH)
    assert 0 <= relevance(asked, -1.0, far, Lang.ZH) <= relevance(asked, 1.0, near, Lang.ZH) <= 1


def test_a_question_without_words_is_answered_by_nothing() -> None:
    asked = question("🙂🙂🙂？！", Lang.UND)
    assert relevance(asked, 1.0, "anything", Lang.EN) == 0.0


def test_terms_are_folded_words_and_character_pairs() -> None:
    assert terms("ＸＹ 水泵房 a") == {"xy", "水泵", "泵房", "a"}
    assert terms("水") == {"水"}
