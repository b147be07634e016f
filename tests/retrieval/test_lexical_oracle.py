"""The lexical route's scores against BM25 in numpy, over the same tokens."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from retrieval.analyzer import question_tokens, tokens
from retrieval.lexical import LexicalReader
from retrieval.lexical_store import change_lexical, open_lexical
from retrieval.lexical_writer import LexicalDocument
from retrieval.measure_texts import made_passages, made_questions

K1, B = 1.2, 0.75
TEXTS = made_passages(600, seed=5, words=400)
DOCUMENTS = [
    LexicalDocument(
        1000 - n,
        f"t{n % 2}",
        f"c{n % 10}",
        f"d{n // 4}",
        text,
        ("Overview", f"chapter {n % 7}"),
        f"report {n}",
    )
    for n, text in enumerate(TEXTS)
]


def stored_length(count: int) -> int:
    """A length as an index keeps it in one byte: exact below 40, four significant bits above.

    Source: Lucene's SmallFloat.byte4ToInt, which tantivy follows.
    """
    if count < 40:
        return count
    rest = count - 24
    shift = rest.bit_length() - 4
    return 24 + ((rest >> shift) << shift)


class Field:
    def __init__(self, texts: list[list[str]]) -> None:
        self.counts = [Counter(text) for text in texts]
        lengths = [sum(counts.values()) for counts in self.counts]
        self.lengths = np.array([stored_length(n) for n in lengths])
        self.average = np.mean(lengths)
        self.frequency = Counter(token for counts in self.counts for token in counts)

    def scores(self, token: str) -> np.ndarray:
        n, count = self.frequency[token], len(self.counts)
        idf = np.log(1 + (count - n + 0.5) / (n + 0.5))
        tf = np.array([counts[token] for counts in self.counts], float)
        return idf * tf * (1 + K1) / (tf + K1 * (1 - B + B * self.lengths / self.average))


# What a passage stands under counts as if it began with these words, each once.
BODY = Field(
    [list(dict.fromkeys(tokens(" ".join((d.title, *d.headings))))) + tokens(d.text) for d in DOCUMENTS]
)


def expected(question: str, k: int, allowed: list[bool]) -> list[tuple[int, float]]:
    total = np.zeros(len(DOCUMENTS))
    for token, times in Counter(question_tokens(question)).items():
        total += times * BODY.scores(token)
    ranked = [
        (d.passage_id, float(score))
        for d, score, ok in zip(DOCUMENTS, total, allowed, strict=True)
        if ok and score > 0
    ]
    return sorted(ranked, key=lambda hit: (-hit[1], hit[0]))[:k]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> LexicalReader:
    root = tmp_path_factory.mktemp("lexical")
    return open_lexical(root, change_lexical(root, "", DOCUMENTS))


QUESTIONS = [
    *made_questions(TEXTS, 30, seed=6),
    "report 17 overview chapter 3",
    "report report report overview",
]


def assert_same(found: list[tuple[int, float]], wanted: list[tuple[int, float]]) -> None:
    """Equal scores rank by rank; equal passages wherever scores differ."""
    assert [s for _, s in found] == pytest.approx([s for _, s in wanted], rel=1e-4)
    for (own, score), (other, _) in zip(found, wanted, strict=True):
        ties = [i for i, s in wanted if abs(s - score) < 1e-4 * score]
        assert own == other or own in ties or score == pytest.approx(wanted[-1][1], rel=1e-4)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_scores_are_those_of_bm25(reader: LexicalReader, question: str, k: int) -> None:
    for tenant, allowed in (
        ("t0", [d.tenant_id == "t0" for d in DOCUMENTS]),
        ("t9", [False] * len(DOCUMENTS)),
    ):
        found = reader.search(question, k, tenant_id=tenant, collection_ids=None)
        assert_same(found, expected(question, k, allowed))


@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_every_width_of_scope_gives_the_same_order(reader: LexicalReader, count: int) -> None:
    """Narrow scopes are filtered inside the search, wide ones in its results."""
    collections = [f"c{2 * n}" for n in range(count)]
    allowed = [d.collection_id in collections for d in DOCUMENTS]
    for question in QUESTIONS:
        for k in (1, 10, 300):
            found = reader.search(question, k, tenant_id="t0", collection_ids=collections)
            assert_same(found, expected(question, k, allowed))


def test_limits_to_documents_and_passages_are_exact(reader: LexicalReader) -> None:
    source = random.Random(3)
    for question in QUESTIONS[:10]:
        chosen = source.sample(DOCUMENTS, 60)
        ids, names = {d.passage_id for d in chosen}, {d.document_id for d in chosen}
        found = reader.search(question, 20, tenant_id="t1", collection_ids=None, passage_ids=tuple(ids))
        assert_same(
            found, expected(question, 20, [d.passage_id in ids and d.tenant_id == "t1" for d in DOCUMENTS])
        )
        found = reader.search(question, 20, tenant_id="t1", collection_ids=None, document_ids=tuple(names))
        assert_same(
            found, expected(question, 20, [d.document_id in names and d.tenant_id == "t1" for d in DOCUMENTS])
        )


def test_an_index_of_one_tenant_needs_no_filter_and_hides_nothing(tmp_path: Path) -> None:
    own = [d for d in DOCUMENTS if d.tenant_id == "t0"]
    reader = open_lexical(tmp_path, change_lexical(tmp_path, "", own))
    for question in QUESTIONS[:10]:
        every = reader.search(question, 1000, tenant_id="t0", collection_ids=None)
        named = reader.search(
            question, 1000, tenant_id="t0", collection_ids=[f"c{n}" for n in range(0, 10, 2)]
        )
        assert every == named
        assert reader.search(question, 10, tenant_id="t1", collection_ids=None) == []
