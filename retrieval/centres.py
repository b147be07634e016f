"""What all texts of a language have in common for an encoder, so that it can be taken off across languages.

Token vectors of a multilingual encoder share a large common part, and that part differs by language. Between
a question and passages in one language it takes part in every cosine alike; across languages it tilts them
towards whatever is near the other language's common part. So there the mean of the language is taken off
either side before cosines are formed (ADR 0036). The means come from plain texts (`centre_texts.py`), not
from anybody's documents.

Source: Libovický, Rosa and Fraser, How Language-Neutral is Multilingual BERT?, 2019, arXiv:1911.03310.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from core.types import Lang
from ingest.encode import get_encoder
from retrieval.centre_texts import PASSAGES, QUESTIONS

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Centres:
    """Means of an encoder's vectors, [d] each, by language; `UND` has the mean of the others.

    Attributes:
        questions, passages: of token vectors.
        asked: of the vectors of whole questions, which the dense route asks with.
    """

    questions: Mapping[Lang, Floats]
    passages: Mapping[Lang, Floats]
    asked: Mapping[Lang, Floats]


@lru_cache(maxsize=2)  # while the index changes its encoder
def centres_of(model: str) -> Centres:
    """The means of an encoder; about a second of encoding in each process that asks across languages."""
    encoder = get_encoder(model)

    def means(texts: Mapping[Lang, tuple[str, ...]], kind: str) -> dict[Lang, Floats]:
        found: dict[Lang, Floats] = {}
        for lang, own in texts.items():
            tokens = encoder.encode_tokens(own, "query" if kind == "query" else "passage")
            found[lang] = np.mean([one.mean(axis=0) for one in tokens if len(one)], axis=0).astype(np.float32)
        found[Lang.UND] = np.mean(list(found.values()), axis=0).astype(np.float32)
        return found

    asked = {lang: encoder.encode_queries(list(own)).mean(axis=0) for lang, own in QUESTIONS.items()}
    asked[Lang.UND] = np.mean(list(asked.values()), axis=0)
    return Centres(means(QUESTIONS, "query"), means(PASSAGES, "passage"), asked)


def without(rows: Floats, centre: Floats) -> Floats:
    """Unit rows [n, d] of what is left of `rows` once `centre` [d] is taken off."""
    left = rows - centre
    return left / np.maximum(np.linalg.norm(left, axis=1, keepdims=True), 1e-9)
