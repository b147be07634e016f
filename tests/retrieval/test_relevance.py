from __future__ import annotations

import numpy as np
import pytest

from core.types import Lang
from retrieval.relevance import Question, is_filler, relevance, terms

PROSE = (
    "The cooling pump in hall 4 is serviced every six months. It was last done in March 2024, and the next "
    "date is entered in the book beside the door. Spare seals are kept in the cabinet under the stairs."
)
TABLE = "\n".join(f"M-{n} | {n * 37 % 91} | {n * 53 % 97} | {n * 71 % 89}" for n in range(20))


@pytest.mark.parametrize("text", ["a" * 480, "的" * 160, "水泵" * 90, "lorem " * 60])
def test_filler_answers_nothing(text: str) -> None:
    assert is_filler(text)
    question = Question(
        "水泵多久保养一次？", Lang.ZH, np.eye(2, dtype=np.float32), np.ones(2), terms("水泵多久保养一次？")
    )
    assert relevance(question, 0.99, text, Lang.ZH) == 0.0


@pytest.mark.parametrize(
    "text", [PROSE, TABLE, PROSE[:40] * 2, "四台水泵每六个月保养一次，由值班员登记。" * 2, ""]
)
def test_prose_tables_and_short_texts_are_not_filler(text: str) -> None:
    assert not is_filler(text)
