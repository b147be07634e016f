"""`geo eval chunks`: how much of the gold text the best passages hold, in characters of the source.

Documents run through the real stages; a found passage counts by the place in its source that the offset map
leads to, so a wrong map costs recall.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.measured import machine, versions
from core.settings import get_settings
from core.types import Span
from retrieval.measure import LIBRARIES, SEED, report_progress
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack

TOP = 5
WINDOW_CHARS = 1600  # of the peer: BM25 over windows of this size
_FIELD_CHARS = 10_000_000
Pieces = Sequence[tuple[str, Span]]
"""Places in the sources, best first: document name and characters."""


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question and the characters of one document that answer it."""

    text: str
    document: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Cover:
    """Shares of characters for one question, each in [0, 1].

    Attributes:
        recall: of the gold characters, those inside a piece.
        precision: of the characters in all pieces (one in two pieces counts twice), those that are gold.
        iou: gold and shown, of gold or shown.
    """

    recall: float
    precision: float
    iou: float


def cover(gold: Sequence[Span], document: str, pieces: Pieces) -> Cover:
    """Compare what was shown with what should be.

    Source: Smith and Troynikov, Evaluating Chunking Strategies for Retrieval, Chroma, 2024 (there in tokens).
    """
    wanted = {i for span in gold for i in range(span.start, span.end)}
    shown: set[int] = set()
    elsewhere = total = 0
    for name, span in pieces:
        total += len(span)
        if name == document:
            shown.update(range(span.start, span.end))
        else:
            elsewhere += len(span)
    both = len(wanted & shown)
    return Cover(
        both / len(wanted) if wanted else 1.0,
        both / total if total else 0.0,
        both / (len(wanted | shown) + elsewhere) if wanted else 0.0,
    )


def read_questions(path: Path) -> list[GoldQuestion]:
    """Rows `question, references, corpus_id`; references are JSON with `start_index` and `end_index`."""
    csv.field_size_limit(_FIELD_CHARS)
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            GoldQuestion(
                row["question"],
                row["corpus_id"],
                tuple(
                    Span(int(r["start_index"]), int(r["end_index"])) for r in json.loads(row["references"])
                ),
            )
            for row in csv.DictReader(lines)
        ]


def eval_chunks(folder: Path, *, limit: int | None = None) -> dict[str, Any]:
    """Ingest `corpora/*.md`, ask `questions_df.csv`, and measure the best five passages.

    Questions about documents that are not in the folder are left out.
    """
    sources = {p.stem: _text_of(p) for p in sorted((folder / "corpora").glob("*.md"))}
    questions = [q for q in read_questions(folder / "questions_df.csv") if q.document in sources][:limit]
    with scratch_stack() as stack:
        documents = [CorpusDocument(name, name, text, ".md") for name, text in sources.items()]
        stack.ingest(documents, report_progress("ingest"))
        asker = _Asker(stack)
        found = [asker.best(question.text) for question in _shown(questions)]
        sizes = asker.sizes()
    peer = WindowPeer(sources)
    settings = get_settings()
    return {
        "n": len(questions),
        **_figures(questions, found),
        "by_document": {name: _figures(*_of_document(questions, found, name)) for name in sorted(sources)},
        **sizes,
        "passage_tokens": settings.ingest.passage_tokens,
        "machine": machine(),
        "versions": versions(*LIBRARIES),
        "seed": SEED,
        "sizes": {"documents": len(sources), "questions": len(questions)},
        "encoder": settings.packs.encoder,
        "peer": {
            "name": f"BM25 (k1 1.2, b 0.75) on windows of {WINDOW_CHARS} characters",
            **_figures(questions, [peer.best(q.text) for q in questions]),
        },
        "limit": limit,
    }


def _shown(questions: Sequence[GoldQuestion]) -> Iterable[GoldQuestion]:
    show = report_progress("ask")
    for n, question in enumerate(questions, 1):
        yield question
        show(n, len(questions))


def _text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8")  # as it is: offsets count line ends too


class _Asker:
    """Asks the scratch stack and tells where the best passages stand in their sources."""

    def __init__(self, stack: ScratchStack) -> None:
        from retrieval.tiers import get_reader

        self._stack = stack
        self._reader = get_reader()
        self._scope = stack.scope.narrowed((stack.collection_id,))
        self._passages = stack.passages()

    def best(self, text: str) -> Pieces:
        from retrieval.filters import Filters
        from retrieval.ranking import rank

        ranking = rank(self._stack.db, self._reader, self._scope, text=text, filters=Filters(), wanted=TOP)
        pieces: list[tuple[str, Span]] = []
        for one in ranking.ranked[:TOP]:
            passage = one.stored.passage
            document = self._stack.corpus_ids[passage.document_id]
            places = self._passages[passage.id].places
            pieces.extend(
                (document, Span(p.start, p.end)) for p in places if p.start is not None and p.end is not None
            )
        return pieces

    def sizes(self) -> dict[str, Any]:
        lengths = [len(placed.passage.text) for placed in self._passages.values()]
        return {
            "passages": len(lengths),
            "passage_chars_mean": round(statistics.mean(lengths), 1) if lengths else 0.0,
            "passage_chars_max": max(lengths, default=0),
        }


def _of_document(
    questions: Sequence[GoldQuestion], found: Sequence[Pieces], name: str
) -> tuple[list[GoldQuestion], list[Pieces]]:
    chosen = [i for i, question in enumerate(questions) if question.document == name]
    return [questions[i] for i in chosen], [found[i] for i in chosen]


def _figures(questions: Sequence[GoldQuestion], found: Sequence[Pieces]) -> dict[str, float]:
    covers = [cover(q.spans, q.document, pieces) for q, pieces in zip(questions, found, strict=True)]
    n = max(1, len(covers))
    return {
        f"recall@{TOP}": round(sum(c.recall for c in covers) / n, 4),
        "precision": round(sum(c.precision for c in covers) / n, 4),
        "iou": round(sum(c.iou for c in covers) / n, 4),
        "shown_chars": round(sum(len(span) for pieces in found for _, span in pieces) / n, 1),
    }


class WindowPeer:
    """What a plain keyword system does: fixed windows, BM25, our own analyser for its words."""

    def __init__(self, sources: Mapping[str, str], size: int = WINDOW_CHARS) -> None:
        self._windows: list[tuple[str, Span]] = [
            (name, Span(at, min(len(text), at + size)))
            for name, text in sources.items()
            for at in range(0, len(text), size)
        ]
        words = [Counter(_words(sources[name][span.start : span.end])) for name, span in self._windows]
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for number, counts in enumerate(words):
            for word, count in counts.items():
                self._postings.setdefault(word, []).append((number, count))
        self._lengths = [sum(counts.values()) for counts in words]
        self._mean = statistics.mean(self._lengths) if self._lengths else 1.0

    def best(self, question: str, k: int = TOP) -> Pieces:
        """The best `k` windows."""
        scores: Counter[int] = Counter()
        for word in _words(question):
            postings = self._postings.get(word, [])
            weight = math.log(1 + (len(self._windows) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                length = 1.2 * (0.25 + 0.75 * self._lengths[number] / self._mean)
                scores[number] += weight * count * 2.2 / (count + length)  # type: ignore[assignment]  # a Counter of floats
        return [self._windows[number] for number, _ in scores.most_common(k)]


def _words(text: str) -> list[str]:
    from retrieval.analyzer import tokens

    return tokens(text)
