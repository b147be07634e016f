from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.errors import GeoError
from retrieval import measure_ingest
from retrieval.measure_ingest_child import measure_import
from retrieval.measure_texts import made_passages


def test_made_passages_are_different_and_the_same_every_time() -> None:
    passages = made_passages(200, seed=3)
    assert len(set(passages)) == 200
    assert passages == made_passages(200, seed=3)
    assert passages[0].isascii()
    assert not passages[1].isascii()


def test_the_import_that_is_timed_is_found_by_words_and_by_vector(tmp_path: Path) -> None:
    texts = made_passages(60, seed=0)
    (tmp_path / "p.jsonl").write_text("\n".join(json.dumps(t) for t in texts), encoding="utf-8")
    rows = np.random.default_rng(0).standard_normal((60, 384)).astype(np.float32)
    np.save(tmp_path / "v.npy", rows / np.linalg.norm(rows, axis=1, keepdims=True))
    figures = measure_import(str(tmp_path / "p.jsonl"), str(tmp_path / "v.npy"), "60")
    assert figures["found"]
    assert figures["cpu_seconds"] > 0


def test_a_corpus_with_too_few_passages_is_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"text": "one"}\n"two"\n"two"\n', encoding="utf-8")
    assert measure_ingest._passages(corpus, 2) == ["one", "two"]
    with pytest.raises(GeoError, match="holds 2 different passages"):
        measure_ingest._passages(corpus, 3)
