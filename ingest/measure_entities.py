"""`geo eval entities`: mentions with known entities, linked by the code that ingest runs."""

from __future__ import annotations

import csv
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import regex

from core.errors import InvalidInput
from core.measured import machine, versions
from core.settings import get_settings
from core.types import Lang, LinkedMention, Passage, Span
from ingest.catalogue import (
    MAX_CANDIDATES,
    Alias,
    Catalogue,
    CatalogueEntity,
    alias_key,
    with_catalogue_names,
)
from ingest.disambiguate import Context, Similarity, link
from ingest.values import Mention

SEED = 0  # nothing here is random; stated because every measurement states its seed
Progress = Callable[[int, int], None]
_SENTENCE = regex.compile(r"\n\n|(?<=[.!?])\s(?=\p{Lu})|(?<=[。！？])")
# Classes of Wikidata that say of what kind an entity is, first match first.
_CLASSES = (("Q215627", "PERSON"), ("Q27096213", "PLACE"), ("Q43229", "ORG"))
_NIL = "<NIL>"
PRONOUNS = frozenset((
    "he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself", "they", "them",
    "their", "theirs", "themselves", "i", "me", "my", "mine", "myself", "we", "us", "our", "ours",
    "ourselves", "you", "your", "yours", "who", "whom", "whose", "which", "that", "this", "these", "those",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class GoldMention:
    """A mention whose entity is known; `entity_id` None is one that no entity of the list stands for."""

    span: Span
    surface: str
    entity_id: str | None
    optional: bool = False

    @property
    def pronoun(self) -> bool:
        """Whether it is counted apart."""
        return self.surface.casefold() in PRONOUNS


@dataclass(frozen=True, slots=True)
class GoldText:
    """One text of one benchmark with its mentions."""

    benchmark: str
    text: str
    mentions: tuple[GoldMention, ...]


def eval_entities(
    entities: Path,
    mentions: Path,
    benchmark: Path | None = None,
    *,
    gold_mentions: bool = True,
    threshold: float = 0.5,
    similarity: Similarity | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure linking.

    Args:
        entities: TSV with `qid`, `name` and, where known, `types` (Wikidata classes) and `description`.
        mentions: JSON lines of `{benchmark, article, start, end, mention, gold, optional}`, or with the
            `text` itself in place of benchmark and article.
        benchmark: folder of `<name>.benchmark.jsonl` with the texts and the mentions without an entity.
        gold_mentions: link the given mentions; otherwise find them first and count what is found.
        threshold: of the product; `accuracy` is that of the best candidate, because the list is closed.
        similarity: the encoder's, or None to leave it out.
        progress: called as `progress(done, total)` after each text.

    Returns:
        Macro means over the benchmarks: `accuracy` (best candidate right), `accuracy_abstaining` (with the
        product's threshold), `candidate_recall@50`, `precision`, `recall`, `f1` of links above the threshold,
        `nil_accuracy` (mentions without an entity left unlinked), `pronoun_accuracy`, `mentions_per_s`,
        `by_benchmark`, counts, and what they were taken on.
    """
    catalogue = read_catalogue(entities)
    texts = list(gold_texts(mentions, benchmark))
    if not texts:
        raise InvalidInput("The mention file holds no mention; check --mentions and --benchmark.")
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    started, count = time.perf_counter(), 0
    for number, text in enumerate(texts, start=1):
        count += _measure(text, catalogue, tallies[text.benchmark], gold_mentions, threshold, similarity)
        if progress is not None:
            progress(number, len(texts))
    seconds = time.perf_counter() - started
    by_benchmark = {name: tally.figures() for name, tally in sorted(tallies.items())}
    keys = [k for k in next(iter(by_benchmark.values())) if k != "n"]
    return {
        **{k: _mean(f[k] for f in by_benchmark.values()) for k in keys},
        "n": sum(f["n"] for f in by_benchmark.values()),
        "machine": machine(),
        "versions": versions("rapidfuzz", "spacy", "openvino"),
        "seed": SEED,
        "sizes": {"entities": len(catalogue.entities), "texts": len(texts), "mentions": count},
        "encoder": get_settings().packs.encoder if similarity else None,
        "peer": None,
        "limit": {"accuracy": 0.75, "candidate_recall@50": 0.85},
        "mentions_per_s": round(count / seconds, 1),
        "threshold": threshold,
        "gold_mentions": gold_mentions,
        "by_benchmark": by_benchmark,
    }


class _Tally:
    def __init__(self) -> None:
        self.best: list[bool] = []
        self.kept: list[bool] = []
        self.reached: list[bool] = []
        self.nil: list[bool] = []
        self.pronouns: list[bool] = []
        self.links = self.right = self.gold = 0

    def figures(self) -> dict[str, Any]:
        precision = self.right / self.links if self.links else None
        recall = self.right / self.gold if self.gold else None
        both = (precision or 0) + (recall or 0)
        return {
            "n": len(self.best),
            "accuracy": _mean(self.best),
            "accuracy_abstaining": _mean(self.kept),
            "candidate_recall@50": _mean(self.reached),
            "precision": None if precision is None else round(precision, 4),
            "recall": None if recall is None else round(recall, 4),
            "f1": round(2 * (precision or 0) * (recall or 0) / both, 4) if both else None,
            "nil_accuracy": _mean(self.nil),
            "pronoun_accuracy": _mean(self.pronouns),
        }


def _measure(
    text: GoldText,
    catalogue: Catalogue,
    tally: _Tally,
    gold_mentions: bool,
    threshold: float,
    similarity: Similarity | None,
) -> int:
    passages = _passages(text.text)
    contexts = {p.id: Context(_around(passages, p.id)) for p in passages}
    given = [Mention(_holding(passages, m.span), m.span, m.surface, "") for m in text.mentions]
    mentions = given if gold_mentions else _found(passages, catalogue)

    def linked(abstain: bool) -> list[LinkedMention]:
        return link(
            mentions,
            contexts,
            catalogue,
            document_id="",
            threshold=threshold,
            similarity=similarity,
            abstain=abstain,
        )

    kept = linked(True)
    if gold_mentions:
        for gold, best, sure in zip(text.mentions, linked(False), kept, strict=True):
            _count_gold(gold, best, sure, catalogue, tally)
    _count_links(text.mentions, kept, tally)
    return len(mentions)


def _count_gold(
    gold: GoldMention, best: LinkedMention, sure: LinkedMention, catalogue: Catalogue, tally: _Tally
) -> None:
    if gold.entity_id is None:
        tally.nil.append(sure.entity_id is None)
    elif gold.pronoun:
        tally.pronouns.append(best.entity_id == gold.entity_id)
    elif not gold.optional:
        tally.best.append(best.entity_id == gold.entity_id)
        tally.kept.append(sure.entity_id == gold.entity_id)
        reached = catalogue.candidates(gold.surface, MAX_CANDIDATES)
        tally.reached.append(any(c.entity.id == gold.entity_id for c in reached))


def _count_links(gold: Sequence[GoldMention], found: Sequence[LinkedMention], tally: _Tally) -> None:
    wanted = {g.span: g for g in gold if not g.pronoun}
    tally.gold += sum(g.entity_id is not None and not g.optional for g in wanted.values())
    for one in found:
        if one.entity_id is None or one.surface.casefold() in PRONOUNS:
            continue
        known = wanted.get(one.span)
        if known is not None and known.optional:
            continue
        tally.links += 1
        tally.right += known is not None and known.entity_id == one.entity_id


def _found(passages: Sequence[Passage], catalogue: Catalogue) -> list[Mention]:
    from ingest.mentions import recognise

    return with_catalogue_names(passages, recognise(passages), catalogue)


def _passages(text: str) -> list[Passage]:
    """One passage per sentence or paragraph, numbered from 0."""
    cuts = [0, *(m.end() for m in _SENTENCE.finditer(text)), len(text)]
    spans = [Span(a, b) for a, b in itertools.pairwise(cuts) if b > a] or [Span(0, len(text))]
    return [Passage(i, "", 1, i, s, None, (), Lang.EN, text[s.start : s.end]) for i, s in enumerate(spans)]


def _around(passages: Sequence[Passage], number: int) -> str:
    """A passage with its neighbours: about what a passage of the product holds."""
    return "".join(p.text for p in passages[max(0, number - 1) : number + 2])


def _holding(passages: Sequence[Passage], span: Span) -> int:
    return next(p.id for p in reversed(passages) if p.span.start <= span.start or p.id == 0)


def read_catalogue(path: Path) -> Catalogue:
    """Entities of a TSV with the columns qid and name, and types and description where known."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    if not rows or not {"qid", "name"} <= set(rows[0]):
        raise InvalidInput("The entity file is not a TSV with the columns qid and name; check --entities.")
    return Catalogue.build(
        [
            CatalogueEntity(r["qid"], _kind(r.get("types") or ""), r["name"], r.get("description") or "")
            for r in rows
        ],
        [Alias(r["qid"], alias_key(r["name"]), r["name"]) for r in rows],
    )


def _kind(classes: str) -> str:
    known = set(classes.split("|"))
    return next((kind for wikidata_class, kind in _CLASSES if wikidata_class in known), "")


def gold_texts(mentions: Path, benchmark: Path | None) -> Iterator[GoldText]:
    """Texts with their judged mentions."""
    rows = [json.loads(line) for line in mentions.read_text("utf-8").splitlines() if line.strip()]
    grouped: dict[tuple[str, Any], list[GoldMention]] = defaultdict(list)
    texts: dict[tuple[str, Any], str] = {}
    for number, row in enumerate(rows):
        key = (row.get("benchmark", mentions.parent.name), row.get("article", number))
        if "text" in row:
            texts[key] = row["text"]
        span = Span(row["start"], row["end"])
        grouped[key].append(GoldMention(span, row["mention"], row["gold"], bool(row.get("optional"))))
    for file in sorted(benchmark.glob("*.benchmark.jsonl")) if benchmark else ():
        name = file.name.removesuffix(".benchmark.jsonl")
        for line in file.read_text("utf-8").splitlines():
            article = json.loads(line)
            key = (name, article["id"])
            texts[key] = article["text"]
            grouped[key].extend(_without_entity(article))
    missing = [key for key in grouped if key not in texts]
    if missing:
        raise InvalidInput(f"No text for {missing[0]}; give the folder of the benchmarks with --benchmark.")
    for (name, article_id), found in grouped.items():
        yield GoldText(name, texts[name, article_id], tuple(sorted(found, key=lambda m: m.span)))


def _without_entity(article: dict[str, Any]) -> Iterator[GoldMention]:
    for label in article.get("labels", ()):
        if label["entity_id"] == _NIL:
            span = Span(*label["span"])
            yield GoldMention(span, article["text"][span.start : span.end], None)


def _mean(values: Iterable[Any]) -> float | None:
    known = [float(v) for v in values if v is not None]
    return round(fmean(known), 4) if known else None
