"""`geo bench query`: a question by words and vector at once, against txtai and Haystack on the same vectors.

Each side is a process that indexes once and then answers the same questions in interleaved rounds. What is
timed begins with the question's text and its vector and ends with ten passages: the same work on each side,
a hybrid search without encoder and rerank, which txtai does not have. Ours also asks the entity and code
routes, filters by tenant and reads what is live from the database. `whole` is ours with the encoder and the
rerank of 20 passages; nobody is held against it.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from core.figures import growth_exponent
from core.measured import machine, versions
from core.settings import get_settings
from ingest.peers import peer_python
from retrieval.measure_ingest import BESIDE, PEER_FOLDER, PEERS
from retrieval.measure_lexical import Side, typical
from retrieval.measure_query_load import over_processes
from retrieval.measure_texts import made_passages, made_questions

SEED = 20_260_119
WORDS = 60_000
LIMIT = {
    "ratio_txtai": 2.0,
    "ratio_haystack": 10.0,
    "exponent": 0.5,
    "p99_over_p50": 3.0,
    "fusion_share": 0.03,
}
_SLOW_QUESTIONS = 10  # a side that scores every passage in Python is asked so few
_WHOLE_QUESTIONS = 20  # the first time, each of their passages is encoded
_DIMENSION = 384
Note = Callable[[str], None]
Figures = dict[str, Any]


def bench_query(
    *,
    sizes: Sequence[int],
    rounds: int,
    questions: int,
    peers_at: int | None = None,
    keep: Path | None = None,
    note: Note = print,
) -> Figures:
    """Measure one question at a time at every size, and questions that come at random at one of them.

    Args:
        sizes: numbers of passages.
        peers_at: the size at which the peers run, and at which questions come at random; None: the largest.
            With 0 no peer runs.
        rounds: interleaved rounds; each asks every question once of every side.
        questions: how many.
        keep: a folder that passages, vectors and our index stay in and are taken from the next time.
        note: told about progress.

    Raises:
        GeoError: a side ended before its time.
    """
    alone: dict[int, Figures] = {}
    compared: Figures = {}
    size_compared = peers_at or max(sizes)
    for size in sorted(sizes):
        with _place(keep, size, questions, note) as place:
            note(f"{size} passages: building")
            with _ours(place, kept=keep is not None) as ours:
                if size != size_compared:
                    alone[size] = _by_itself(ours, rounds)
                    continue
                if peers_at == 0:
                    alone[size] = _by_itself(ours, rounds)
                else:
                    alone[size], compared = _against_peers(ours, str(place), rounds, note)
                note("at 70 % of the load that it can take")
                compared["under_load"] = ours.ask(mode="load")
                if keep is not None:  # another process can only answer from an index that stays
                    with _ours(place, kept=True) as second:
                        both = over_processes((ours, second), questions)
                        compared["under_load_of_two_processes"] = both
                note("with encoder and rerank")
                compared["whole"] = _alone([ours.ask(mode="whole", count=_WHOLE_QUESTIONS)])
    return {
        "p50_ms": alone[size_compared]["p50_ms"],
        "p99_ms": alone[size_compared]["p99_ms"],
        **compared,
        "exponent": growth_exponent({size: figures["p50_ms"] for size, figures in alone.items()}),
        "fusion_share": alone[size_compared]["shares"]["fuse"],
        "by_size": alone,
        "machine": machine(),
        "versions": versions("tantivy", "faiss-cpu", "sqlalchemy")
        | {peer: pin for peer, _, pin in (one.partition("==") for one in PEERS)},
        "seed": SEED,
        "sizes": {
            "passages": sorted(sizes),
            "compared": size_compared,
            "rounds": rounds,
            "questions": questions,
        },
        "encoder": get_settings().packs.encoder,
        "peer": "txtai: hybrid with content, external vectors; haystack: in-memory store, bm25_retrieval and "
        f"embedding_retrieval, DocumentJoiner by reciprocal rank; haystack answers {_SLOW_QUESTIONS} of the "
        "questions a round, and its ratio is over those",
        "limit": LIMIT,
    }


@contextmanager
def _place(keep: Path | None, size: int, questions: int, note: Note) -> Generator[Path]:
    """A folder with the passages, vectors and questions of this size."""
    with TemporaryDirectory(prefix="geo-bench-") as scratch:
        place = Path(scratch) if keep is None else keep / f"{size}-{questions}"
        if not (place / "questions.json").is_file():
            note(f"{size} passages: making")
            place.mkdir(parents=True, exist_ok=True)
            _write(place, made_passages(size, seed=SEED, words=WORDS), questions)
        yield place


def _write(place: Path, passages: Sequence[str], questions: int) -> None:
    import numpy as np

    source = np.random.default_rng(SEED)
    centres = source.standard_normal((max(8, len(passages) // 100), _DIMENSION)).astype(np.float32)
    rows = centres[source.integers(0, len(centres), len(passages))]
    rows += source.standard_normal(rows.shape).astype(np.float32)
    asked = rows[source.integers(0, len(rows), questions)]
    asked = asked + source.standard_normal(asked.shape).astype(np.float32) * 0.5
    for name, vectors in (("vectors", rows), ("question_vectors", asked)):
        np.save(place / f"{name}.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    lines = (json.dumps(passage, ensure_ascii=False) + "\n" for passage in passages)
    (place / "passages.jsonl").write_text("".join(lines), encoding="utf-8")
    made = made_questions(passages, questions, seed=SEED)
    (place / "questions.json").write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")


def _ours(place: Path, *, kept: bool) -> Side:
    stack = [str(place / "stack")] if kept else []
    return Side("ours", [sys.executable, "-m", "retrieval.measure_query_child", str(place), *stack])


def _by_itself(ours: Side, rounds: int) -> Figures:
    return _alone([ours.ask(mode="ask") for _ in range(rounds + 1)][1:])


def _against_peers(ours: Side, place: str, rounds: int, note: Note) -> tuple[Figures, Figures]:
    """Ours one question at a time, and how the peers compare."""
    python = str(peer_python((*PEERS, *BESIDE), PEER_FOLDER, beside_product=True))
    script = str(Path(__file__).with_name("peer_query.py"))
    figures: Figures = {}
    runs: list[Figures] = []
    for name, count in (("txtai", None), ("haystack", _SLOW_QUESTIONS)):
        note(f"{name}: building")
        with Side(name, [python, "-P", script, name, place]) as peer:
            for side in (ours, peer):
                side.ask(mode="ask", count=count)  # warm
            pairs: list[tuple[Figures, Figures]] = []
            for number in range(rounds):
                note(f"{name}: round {number + 1} of {rounds}")
                pairs.append((ours.ask(mode="ask", count=count), peer.ask(mode="ask", count=count)))
            figures[f"{name}_p50_ms"] = round(statistics.median(typical([p for _, p in pairs])), 3)
            own = statistics.median(typical([o for o, _ in pairs]))
            figures[f"ratio_{name}"] = round(figures[f"{name}_p50_ms"] / own, 2)
            figures[f"ratio_{name}_by_round"] = [
                round(statistics.median(p["ms"]) / statistics.median(o["ms"]), 2) for o, p in pairs
            ]
            if count is None:
                runs = [o for o, _ in pairs]
    return _alone(runs), figures


def _alone(runs: Sequence[Figures]) -> Figures:
    """Over the questions, of each one's median over the rounds."""
    ms = sorted(typical(runs))
    total = sum(statistics.fmean(run["ms"]) for run in runs)
    shares = {lap: round(sum(run["laps"][lap] for run in runs) / total, 4) for lap in runs[0].get("laps", {})}
    return {
        "p50_ms": round(statistics.median(ms), 3), "p99_ms": round(ms[int(len(ms) * 0.99)], 3),
        "shares": shares,
    }  # fmt: skip
