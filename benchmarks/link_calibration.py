"""Fit how probable it is that a link is right, and measure how far the probabilities can be trusted.

`python -m benchmarks.link_calibration --elevant DIR --aliases DIR`: mentions whose entity is known, of three
kinds: names of the ambiguous set of this folder (once with the right entity in the catalogue, once without
it, so that the mention is NIL), articles of public benchmarks, aliases without a text. Each is used in one
half, by the hash of its name, article or entity; figures of the other half are printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.types import Span
from ingest.calibration import Evidence, terms
from ingest.catalogue import Alias, Catalogue, CatalogueEntity, alias_key
from ingest.disambiguate import Context, Similarity, resolve
from ingest.values import Mention

OWN = Path(__file__).parent / "ambiguous_names"
Floats = npt.NDArray[np.float64]
_RIDGE = 1.0
_EACH = 12  # names without a text are many and alike: one in so many is taken


@dataclass(frozen=True)
class Judged:
    """One mention: what spoke for its best candidate, and whether that was right."""

    lang: str
    kind: str
    first_half: bool
    evidence: Evidence
    right: bool


def half(key: str) -> bool:
    """Whether something belongs to the half that is fitted on."""
    return hashlib.sha256(key.encode()).digest()[0] % 2 == 0


def rows(path: Path) -> list[dict[str, Any]]:
    """Objects of a JSON lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def own_mentions(similarity: Similarity | None) -> Iterator[Judged]:
    """People, companies and places of one name, with their entity in the catalogue and without it."""
    entities = rows(OWN / "own.catalogue.jsonl")
    whole = _catalogue(entities)
    for document in rows(OWN / "own.corpus.jsonl"):
        gold = document["_id"].rsplit("-", 1)[0]
        entity = next(e for e in entities if e["id"] == gold)
        for known in (whole, _catalogue([e for e in entities if e["id"] != gold])):
            match = whole.find(document["text"])[0]
            surface = document["text"][match.start : match.end]
            for called in _called(surface, entity):
                text = document["text"].replace(surface, called)
                mention = Mention(1, Span(match.start, match.start + len(called)), called, entity["type"])
                about = (entity["lang"], "names" if called == surface else "parts", half(entity["name"]))
                yield from _judge([mention], [gold], text, known, similarity, about)


def _called(surface: str, entity: dict[str, Any]) -> list[str]:
    """What documents call it: the name, and of a person with a Latin name the last word too."""
    last = surface.split()[-1]
    return [surface, last] if entity["type"] == "PERSON" and last != surface else [surface]


def article_mentions(folder: Path) -> Iterator[Judged]:
    """Mentions of public benchmarks against a closed list of names."""
    from ingest.measure_entities import gold_texts, read_catalogue

    known = read_catalogue(folder / "entities.tsv")
    for number, text in enumerate(gold_texts(folder / "mentions.jsonl", folder)):
        wanted = [m for m in text.mentions if not m.optional and not m.pronoun]
        mentions = [Mention(1, m.span, m.surface, "") for m in wanted]
        gold = [m.entity_id for m in wanted]
        yield from _judge(
            mentions, gold, text.text, known, None, ("en", text.benchmark, half(f"{text.benchmark}:{number}"))
        )


def alias_mentions(folder: Path) -> Iterator[Judged]:
    """Names alone, half of each entity's in the catalogue."""
    from ingest.measure_aliases import alias_cases, read_alias_sets

    for file in sorted(folder.glob("*.jsonl")):
        known, cases = alias_cases(read_alias_sets(file))
        for case in cases:
            if hashlib.sha256(case.surface.encode()).digest()[1] % _EACH:
                continue
            mention = Mention(1, Span(0, len(case.surface)), case.surface, "")
            gold = None if case.fails else case.entity_id
            yield from _judge(
                [mention], [gold], "", known, None, (case.lang, file.stem, half(case.entity_id))
            )


def _catalogue(entities: Sequence[dict[str, Any]]) -> Catalogue:
    return Catalogue.build(
        [CatalogueEntity(e["id"], e["type"], e["name"], e["description"]) for e in entities],
        [Alias(e["id"], alias_key(e["name"]), e["name"]) for e in entities],
    )


def _judge(
    mentions: Sequence[Mention],
    gold: Sequence[str | None],
    text: str,
    known: Catalogue,
    similarity: Similarity | None,
    about: tuple[str, str, bool],
) -> Iterator[Judged]:
    found = resolve(
        mentions,
        {1: Context(text)},
        known,
        document_id="",
        threshold=0.5,
        similarity=similarity,
        abstain=False,
    )
    for one, right in zip(found, gold, strict=True):
        if one.evidence is not None:
            yield Judged(*about, one.evidence, one.best == right)


def fit(judged: Sequence[Judged]) -> Floats:
    """Weights by Newton's method, every kind of mention counting the same in total."""
    x = np.array([terms(j.evidence) for j in judged])
    y = np.array([float(j.right) for j in judged])
    kinds = [f"{j.kind}{j.lang}" for j in judged]
    share = np.array([len(judged) / len(set(kinds)) / kinds.count(k) for k in kinds])
    weights = np.zeros(x.shape[1])
    ridge = _RIDGE * np.diag([0.0, *np.ones(x.shape[1] - 1)])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (share * (p - y)) + ridge @ weights
        weights -= np.linalg.solve(
            (x.T * (share * p * (1 - p))) @ x + ridge + 1e-9 * np.eye(len(weights)), gradient
        )
    return weights


def figures(judged: Sequence[Judged], weights: Floats) -> dict[str, Any]:
    """Expected calibration error in ten bins, and how often what is above one half is right."""
    p = np.array([1 / (1 + np.exp(-np.dot(weights, terms(j.evidence)))) for j in judged])
    y = np.array([float(j.right) for j in judged])
    bins = np.minimum((p * 10).astype(int), 9)
    ece = sum(
        abs(p[bins == b].mean() - y[bins == b].mean()) * (bins == b).mean()
        for b in range(10)
        if (bins == b).any()
    )
    kept = p >= 0.5
    return {
        "n": len(judged),
        "right": round(float(y.mean()), 3),
        "ece": round(float(ece), 3),
        "kept": round(float(kept.mean()), 3),
        "precision": round(float(y[kept].mean()), 3) if kept.any() else None,
    }


def main() -> None:
    """Fit, and print weights and figures of both halves as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elevant", type=Path, required=True)
    parser.add_argument("--aliases", type=Path, required=True)
    parser.add_argument("--no-encoder", action="store_true")
    options = parser.parse_args()
    from ingest.similarity import similarity

    judged = [
        *own_mentions(None if options.no_encoder else similarity),
        *own_mentions(None),
        *article_mentions(options.elevant),
        *alias_mentions(options.aliases),
    ]
    fitted = [j for j in judged if j.first_half]
    other = [j for j in judged if not j.first_half]
    weights = fit(fitted)
    by: dict[str, Any] = {}
    for lang in ("zh", "en"):
        by[lang] = {
            k: figures([j for j in other if j.lang == lang and j.kind == k], weights)
            for k in sorted({j.kind for j in other if j.lang == lang})
        }
        by[lang]["all"] = figures([j for j in other if j.lang == lang], weights)
    hand = np.array([0.0, 1.0, *[0.0] * (len(weights) - 2)])
    print(
        json.dumps(
            {
                "weights": [round(float(w), 3) for w in weights],
                "other_half": by,
                "name_alone": {
                    lang: figures([j for j in other if j.lang == lang], hand) for lang in ("zh", "en")
                },
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
