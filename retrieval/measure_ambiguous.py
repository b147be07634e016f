"""`geo eval entities --ambiguous`: questions about one of several entities of a name.

Each is asked with the entity route and without it, on one index.

A folder holds `own.` and `public.` files: `catalogue.jsonl` as `geo entities import` takes it,
`questions.jsonl` of `{_id, text, lang, relevant}` and, for `own.` alone, `corpus.jsonl`. The documents of the
public questions are read from where the public data lie.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import regex

from core.errors import InvalidInput
from core.measured import machine, versions
from core.settings import get_settings
from retrieval.measure import CUTOFF, LIBRARIES, SEED, Tally, document_ranking, read_jsonl, report_progress
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack

_HAN = regex.compile(r"\p{Han}")
WANTED_GAIN = 0.10


def eval_ambiguous(
    folder: Path, public: Path | None = None, *, weights: Sequence[float] | None = None
) -> dict[str, Any]:
    """Ingest the documents with their catalogue, and ask every question with each weight of the route.

    Args:
        folder: the questions.
        public: where `el_emerson` and `zh_crudrag` lie; None asks the own questions alone.
        weights: of the entity route; by default off and the setting.

    Returns:
        `by_weight`: measures of the final ranking, for all questions and by language and source;
        `gain_recall@5` of the last weight over the first; `links`: how mentions of the names were linked.
    """
    weights = weights or (0.0, get_settings().retrieval.entity_weight)
    documents, catalogue, questions = _read(folder, public)
    with scratch_stack() as stack:
        _import(stack, catalogue)
        stack.ingest(documents, report_progress("ingest"))
        by_weight, laps = _ask(stack, questions, weights)
    first, last = (by_weight[str(w)]["all"]["recall@5"] for w in (weights[0], weights[-1]))
    return {
        "by_weight": by_weight,
        "gain_recall@5": round(last - first, 4),
        "p50_ms": {w: round(statistics.median(own), 2) for w, own in laps.items()},
        "machine": machine(),
        "versions": versions(*LIBRARIES),
        "seed": SEED,
        "sizes": {"documents": len(documents), "questions": len(questions), "entities": len(catalogue)},
        "encoder": get_settings().packs.encoder,
        "peer": None,
        "limit": {"gain_recall@5": WANTED_GAIN},
    }


def _read(folder: Path, public: Path | None) -> tuple[list[CorpusDocument], list[str], list[dict[str, Any]]]:
    corpus = [CorpusDocument(d["_id"], "", d["text"]) for d in read_jsonl(folder / "own.corpus.jsonl")]
    catalogue = (folder / "own.catalogue.jsonl").read_text("utf-8").splitlines()
    questions = [{**q, "source": "own"} for q in read_jsonl(folder / "own.questions.jsonl")]
    if public is not None:
        rows = read_jsonl(folder / "public.catalogue.jsonl")
        corpus += _public_documents(public, {r["name"] for r in rows})
        catalogue += (folder / "public.catalogue.jsonl").read_text("utf-8").splitlines()
        questions += [
            {**q, "source": str(q["relevant"][0]).partition(":")[0]}
            for q in read_jsonl(folder / "public.questions.jsonl")
        ]
    return corpus, catalogue, questions


def _public_documents(public: Path, names: set[str]) -> list[CorpusDocument]:
    """Every sentence of `el_emerson`, and the news that have one of the names."""
    sentences, news = public / "el_emerson" / "mentions.jsonl", public / "zh_crudrag" / "news_4k.jsonl"
    if not sentences.is_file() or not news.is_file():
        raise InvalidInput(f"{public} has no el_emerson/mentions.jsonl and zh_crudrag/news_4k.jsonl.")
    han = [name for name in names if _HAN.search(name)]
    return [
        *(CorpusDocument(f"emerson:{row['id']}", "", row["text"]) for row in read_jsonl(sentences)),
        *(
            CorpusDocument(f"news:{row['_id']}", "", row["text"])
            for row in read_jsonl(news)
            if any(name in row["text"] for name in han)
        ),
    ]


def _import(stack: ScratchStack, catalogue: Sequence[str]) -> None:
    from ingest.service import import_entities

    with stack.db.write() as session:
        done = import_entities(session, stack.scope, lines=iter(catalogue), form="jsonl")
    if done.rejected:
        raise InvalidInput(f"Row {done.rejected[0].row} of the catalogue: {done.rejected[0].reason}.")


def _ask(
    stack: ScratchStack, questions: Sequence[Mapping[str, Any]], weights: Sequence[float]
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    from retrieval.filters import Filters
    from retrieval.ranking import rank
    from retrieval.searches import prepare_question
    from retrieval.tiers import get_reader

    prepare_question("warm")  # the encoder is loaded before the first question's deadline
    scope = stack.scope.narrowed((stack.collection_id,))
    tallies: dict[str, dict[str, Tally]] = {str(w): defaultdict(Tally) for w in weights}
    laps: dict[str, list[float]] = {str(w): [] for w in weights}
    show = report_progress("ask")
    for number, question in enumerate(questions, 1):
        relevant = dict.fromkeys(question["relevant"], 1.0)
        for weight in weights:
            settings = get_settings().retrieval.model_copy(update={"entity_weight": weight})
            begun = time.perf_counter()
            ranking = rank(
                stack.db,
                get_reader(),
                scope,
                text=question["text"],
                filters=Filters(),
                wanted=2 * CUTOFF,
                settings=settings,
            )
            laps[str(weight)].append((time.perf_counter() - begun) * 1000)
            for part in ("all", question["lang"], question["source"]):
                tallies[str(weight)][part].add(document_ranking(ranking, stack.corpus_ids), relevant)
        show(number, len(questions))
    by_weight = {
        weight: {part: {"n": tally.n, **tally.means()} for part, tally in parts.items()}
        for weight, parts in tallies.items()
    }
    return by_weight, laps
