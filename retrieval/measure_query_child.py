"""Our side of `geo bench query`: `python -m retrieval.measure_query_child FOLDER`, asked by lines."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.settings import get_settings
from core.steady import answer_evenly
from ingest.encode import get_encoder
from retrieval.bulk import BulkDocument, import_documents
from retrieval.filters import Filters
from retrieval.language import question_language
from retrieval.measure_query_load import at_random
from retrieval.ranking import rank
from retrieval.recall import Merged, Stopwatch, recall_and_fuse
from retrieval.relevance import Question, terms
from retrieval.scratch import ScratchStack, scratch_stack
from retrieval.searches import LazyQuestion
from retrieval.side_merge import merge_aside
from retrieval.tiers import get_reader
from retrieval.writer import VectorSpace

SHOWN = 10
_THREADS = 2
_WARM_ROUNDS = 12
_DONE = "imported"


class GivenQuestion(LazyQuestion):
    """A question whose vector comes from outside."""

    def __init__(self, text: str, vector: npt.NDArray[np.float32]) -> None:
        super().__init__(text)
        self._vector = vector

    def get(self, model: str = "") -> Question:
        """The question; nothing is encoded."""
        return Question(
            self.text, question_language(self.text), self._vector[None], self._vector, terms(self.text)
        )


class Bench:
    """The index and the questions."""

    def __init__(self, stack: ScratchStack, place: Path) -> None:
        self._stack, self._reader = stack, get_reader()
        self._settings = get_settings().retrieval
        self._questions: list[str] = json.loads((place / "questions.json").read_text(encoding="utf-8"))
        self._vectors = np.load(place / "question_vectors.npy")

    def ask(self, number: int, watch: Stopwatch) -> tuple[Merged, list[str]]:
        """One question: ten texts."""
        n = number % len(self._questions)
        question = GivenQuestion(self._questions[n], self._vectors[n])
        k = max(self._settings.route_k, 4 * SHOWN)
        merged = recall_and_fuse(
            self._stack.db, self._reader, self._stack.scope, question, Filters(), k, self._settings, watch
        )
        return merged, [merged.known[one.passage_id].passage.text for one in merged.fused[:SHOWN]]

    def alone(self, count: int | None) -> Any:
        """One after the other; laps are means per question."""
        ms: list[float] = []
        laps: dict[str, float] = {}
        for number in range(count or len(self._questions)):
            watch = Stopwatch()
            begun = time.perf_counter()
            _, shown = self.ask(number, watch)
            ms.append((time.perf_counter() - begun) * 1000)
            if not shown:
                raise AssertionError("nothing was found")
            for lap, spent in watch.laps.items():
                laps[lap] = laps.get(lap, 0.0) + spent
        return {"ms": ms, "laps": {lap: spent / len(ms) for lap, spent in laps.items()}}

    def whole(self, count: int) -> Any:
        """The same questions with everything that a search does: encoder, routes, fusion, rerank of 20.

        The worker loads its encoder when it starts, and token vectors are made when a document is indexed; a
        bulk import brings none. So the round that counts is the first one in which none has to be made: a
        rerank that reaches its budget leaves some to the next.
        """
        get_encoder(self._reader.snapshot().model).encode_query("warm up")
        for _ in range(_WARM_ROUNDS):
            ms: list[float] = []
            laps: dict[str, float] = {}
            made = 0
            for text in self._questions[:count]:
                begun = time.perf_counter()
                ranking = rank(
                    self._stack.db,
                    self._reader,
                    self._stack.scope,
                    text=text,
                    filters=Filters(),
                    wanted=SHOWN,
                )
                ms.append((time.perf_counter() - begun) * 1000)
                made += len(ranking.reading.made)
                for lap, spent in ranking.timings_ms.items():
                    laps[lap] = laps.get(lap, 0.0) + spent
            if not made:
                return {"ms": ms, "laps": {lap: spent / len(ms) for lap, spent in laps.items()}}
        raise AssertionError("the machine is too busy to make the token vectors of 20 questions' passages")

    def under_load(self) -> Any:
        """Questions at random for two threads of this process."""
        return at_random(lambda number: self.ask(number, Stopwatch()), len(self._questions), at_once=_THREADS)


def _import(stack: ScratchStack, place: Path) -> None:
    with (place / "passages.jsonl").open(encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]
    vectors = np.load(place / "vectors.npy")
    documents = [BulkDocument(f"passage {n}", (text,), vectors[n : n + 1]) for n, text in enumerate(texts)]
    space = VectorSpace(get_settings().packs.encoder, vectors.shape[1])
    import_documents(stack.db, stack.scope, stack.collection_id, documents, space)


def main(place: Path, keep: Path | None) -> None:
    """Import what is not kept from before, then answer requests until the input ends."""
    begun = time.perf_counter()
    with scratch_stack(keep) as stack:
        if keep is None or not (keep / _DONE).is_file():
            stack.upload([])  # writes down what a later run needs of the folder, if this one is stopped too
            _import(stack, place)
            (stack.folder / _DONE).touch()
        merge_aside(stack.db)  # for an index that was kept; the maintenance worker looks once a minute
        bench = Bench(stack, place)
        answer_evenly()  # as the worker does
        _say({"build_s": round(time.perf_counter() - begun, 1)})
        for line in sys.stdin:
            request = json.loads(line)
            _say(_answered(bench, request))


def _answered(bench: Bench, request: Any) -> Any:
    if request["mode"] == "load":
        return bench.under_load()
    if request["mode"] == "one":
        bench.ask(request["number"], Stopwatch())
        return {}
    if request["mode"] == "whole":
        return bench.whole(request["count"])
    return bench.alone(request.get("count"))


def _say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)  # noqa: T201 - read by `measure_query`


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
