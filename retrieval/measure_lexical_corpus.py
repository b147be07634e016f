"""Passages and tokens for `geo bench lexical`, made once by all processors and kept.

    <cache>/bench-lexical/corpus-<key>/<first>.txt      one passage a line
    <cache>/bench-lexical/corpus-<key>/<first>.tokens   its tokens, joined by spaces
    <cache>/bench-lexical/<side>-<size>-<key>/          an index that a side built

A key is the checksum of everything that the files follow from, the code that makes them included, so what a
changed analyser or another release of a peer would make otherwise is made anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from core.settings import cache_home
from retrieval.measure_texts import made_passages

SEED = 20_260_112
WORDS = 60_000
PART = 50_000  # passages of one file
_HERE = Path(__file__).parent
_CODE = ("analyzer.py", "measure_texts.py", "measure_lexical_corpus.py", "../ingest/fold.py")
Note = Callable[[str], None]


def bench_home() -> Path:
    """The folder of everything that is kept between runs."""
    return cache_home() / "bench-lexical"


def key(*facts: object, code: tuple[str, ...] = ()) -> str:
    """Checksum of facts and of source files of this package."""
    digest = hashlib.sha256(repr(facts).encode())
    for name in (*_CODE, *code):
        digest.update((_HERE / name).read_bytes())
    return digest.hexdigest()[:16]


def prepared(size: int, note: Note) -> Path:
    """The folder with at least `size` passages, made where they are missing."""
    folder = bench_home() / f"corpus-{key(SEED, WORDS, PART)}"
    _remove_others(folder, "corpus-")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [first for first in range(0, size, PART) if not _part(folder, first).is_file()]
    if not missing:
        return folder
    begun = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting = [pool.submit(_make, folder, first) for first in missing]
        for done, one in enumerate(as_completed(waiting), 1):
            one.result()
            left = (time.monotonic() - begun) / done * (len(missing) - done)
            note(f"passages: {done * PART} of {len(missing) * PART}, {left:.0f} s left")
    return folder


def passages(folder: Path, size: int) -> Iterator[str]:
    """The first `size` passages."""
    return _lines(folder, size, ".txt")


def token_lines(folder: Path, size: int) -> Iterator[str]:
    """Their tokens, joined by spaces."""
    return _lines(folder, size, ".tokens")


def index_place(side: str, size: int, note_key: str) -> Path:
    """Where a side keeps its index; folders that other code made are removed."""
    place = bench_home() / f"{side}-{size}-{note_key}"
    _remove_others(place, f"{side}-{size}-")
    return place


def _lines(folder: Path, size: int, kind: str) -> Iterator[str]:
    left = size
    for first in range(0, size, PART):
        with _part(folder, first).with_suffix(kind).open(encoding="utf-8") as file:
            for line in file:
                if not left:
                    return
                left -= 1
                yield line.rstrip("\n")


def _make(folder: Path, first: int) -> None:
    from retrieval.analyzer import tokens

    made = made_passages(PART, seed=SEED, words=WORDS, first=first)
    for kind, lines in ((".tokens", (" ".join(tokens(text)) for text in made)), (".txt", made)):
        final = _part(folder, first).with_suffix(kind)
        aside = final.with_suffix(f"{kind}.{os.getpid()}")
        aside.write_text("\n".join(lines), encoding="utf-8")
        aside.rename(final)


def _part(folder: Path, first: int) -> Path:
    return folder / f"{first:08d}.txt"


def _remove_others(kept: Path, prefix: str) -> None:
    for entry in kept.parent.glob(f"{prefix}*"):
        if entry != kept:
            shutil.rmtree(entry, ignore_errors=True)
