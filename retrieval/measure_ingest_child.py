"""Our side of `geo bench ingest`: `python -m retrieval.measure_ingest_child`, a fresh process per figure."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sqlalchemy import select

from core.models import PassageRow
from core.settings import get_settings
from core.types import Scope
from core.worker import Task
from retrieval.measure_texts import made_passages
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack

Figures = dict[str, Any]


def _read(path: str, count: int) -> list[str]:
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines][:count]


# -- import ------------------------------------------------------------------------------------


def measure_import(passages: str, vectors: str, count: str) -> Figures:
    """Give passages and vectors to the bulk door; stop the clock when both routes serve them."""
    from retrieval.bulk import BulkDocument, import_documents
    from retrieval.tiers import get_reader
    from retrieval.writer import VectorSpace

    texts, rows = _read(passages, int(count)), np.load(vectors)[: int(count)]
    documents = [BulkDocument(f"passage {n}", (t,), rows[n : n + 1]) for n, t in enumerate(texts)]
    space = VectorSpace(get_settings().packs.encoder, rows.shape[1])
    with scratch_stack() as stack:
        warm = [BulkDocument(f"warm {n}", (f"{t} warm",), rows[n : n + 1]) for n, t in enumerate(texts[:50])]
        import_documents(stack.db, stack.scope, stack.collection_id, warm, space)
        process = psutil.Process()
        cpu, wall = time.process_time(), time.perf_counter()
        import_documents(stack.db, stack.scope, stack.collection_id, documents, space)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        rss = process.memory_info().rss
        found = _finds(get_reader(), stack.scope, texts[-1], rows[-1])
    return {"seconds": wall, "cpu_seconds": cpu, "rss_mib": round(rss / 2**20, 1), "found": found}


def _finds(reader: Any, scope: Scope, text: str, vector: Any) -> bool:
    """The same passage comes first by its words and by its vector."""
    index = reader.snapshot()
    by_words = index.lexical.search(text, 1, scope)
    by_vector = index.dense.search(vector, 1, scope)
    return bool(by_words) and bool(by_vector) and by_words[0][0] == by_vector[0][0]


# -- the whole line ----------------------------------------------------------------------------


def measure_line(passages: str, count: str) -> Figures:
    """Documents of ten passages through every stage: documents per second and each stage's processor time."""
    texts = _read(passages, 10 * int(count))
    documents = [
        CorpusDocument(f"d{n}", f"report {n}", "\n\n".join(texts[10 * n : 10 * n + 10]))
        for n in range(min(int(count), len(texts) // 10))
    ]
    warm = [CorpusDocument("w", "warm", "\n\n".join(made_passages(4, seed=1)))]
    with scratch_stack() as stack:
        stack.ingest(warm)
        begun = time.perf_counter()
        seconds = {"upload": cpu_seconds(lambda: stack.upload(documents))}
        seconds["parse"] = cpu_seconds(lambda: stack.run_jobs([Task.NORMALIZE]))
        seconds["mentions"] = cpu_seconds(lambda: stack.run_jobs([Task.DISAMBIGUATE]))
        seconds["encode"] = cpu_seconds(lambda: encode_all(stack))
        seconds["publish"] = cpu_seconds(lambda: stack.run_jobs([Task.INDEX]))
        wall = time.perf_counter() - begun
        growth = _parser_growth(stack)
    total = sum(seconds.values())
    return {
        "rss_growth": growth,
        "line": {
            "documents": len(documents), "passages": 10 * len(documents),
            "docs_per_s": round(len(documents) / wall, 2), "docs_per_cpu_s": round(len(documents) / total, 2),
        },
        "stage_cpu_share": {stage: round(s / total, 3) for stage, s in seconds.items()},
    }  # fmt: skip


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor seconds of this process and its parser."""
    begun = _used()
    work()
    return _used() - begun


def _used() -> float:
    own = psutil.Process()
    return sum(
        times.user + times.system for times in (p.cpu_times() for p in (own, *own.children(recursive=True)))
    )


def encode_all(stack: ScratchStack) -> None:
    """Give every passage that has none its vector."""
    from ingest.encode import encoder_name
    from retrieval.embed import embed_missing, encode_for_index

    with stack.db.read() as session:
        ids = list(session.scalars(select(PassageRow.id)))
    embed_missing(stack.db, ids, encoder_name(), encode_for_index)


def _parser_growth(stack: ScratchStack) -> float:
    """How much larger the parser's process is after 300 more documents, as a share."""
    from ingest.sandbox import parse_in_sandbox

    place = stack.folder / "report.md"
    place.write_text("# Report\n\n" + "\n\n".join(made_passages(60, seed=2)), encoding="utf-8")
    sizes: list[int] = []
    for number in range(400):
        parse_in_sandbox(place, "report.md", "")
        if number in (99, 399):
            children = psutil.Process().children(recursive=True)
            sizes.append(max(p.memory_info().rss for p in children if "sandbox" in " ".join(p.cmdline())))
    return round(sizes[1] / sizes[0] - 1, 4)


if __name__ == "__main__":
    measures = {"import": measure_import, "line": measure_line}
    print(json.dumps(measures[sys.argv[1]](*sys.argv[2:])))  # noqa: T201 - read by `measure_ingest`
