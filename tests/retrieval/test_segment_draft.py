"""Segments that outlive the process that writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from core.types import Tier
from retrieval import cluster, segment_draft
from retrieval.segment_draft import Draft
from retrieval.segments import Segment, drafted, open_segment, write_segments
from retrieval.structures import StructurePlan, load_structure
from retrieval.vector_pages import rows_per_page
from retrieval.vector_tier import VectorRow

DIMENSION = 64
COUNT = 2000
PLANS = {
    "pages": StructurePlan(Tier.COLD, lists_from=10_000),
    "quick": StructurePlan(Tier.COLD, lists_from=500, scanned_rows=10),
    "quick8": StructurePlan(Tier.WARM, lists_from=500, scanned_rows=10),
}


class Killed(BaseException):
    """Stands for the end of a process between two rows or two steps."""


def rows(count: int = COUNT) -> list[VectorRow]:
    random = np.random.default_rng(3)
    vectors = random.standard_normal((count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        VectorRow("t1", f"c{n * 3 // count}", n, vector.astype("<f2").tobytes())
        for n, vector in enumerate(vectors)
    ]


def after(given: list[VectorRow], draft: Draft) -> Iterator[VectorRow]:
    """What a caller gives to go on: the rows that the draft lacks."""
    noted = drafted(draft, DIMENSION)
    if noted is not None and noted.complete:
        return iter(())
    return (row for row in given if noted is None or noted.last is None or row.order > noted.last)


def written(
    folder: Path, given: Iterator[VectorRow], plan: StructurePlan, draft: Draft | None = None
) -> Segment:
    (ref,) = write_segments(folder, given, dimension=DIMENSION, max_rows=COUNT, plan=plan, draft=draft)
    segment = open_segment(folder, ref)
    segment.verify()
    return segment


def content(segment: Segment) -> tuple[list[VectorRow], bytes]:
    structure = segment.folder / "structure.faiss"
    return list(segment.rows()), structure.read_bytes() if structure.exists() else b""


@pytest.fixture(autouse=True)
def note_each_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_draft, "NOTED_EVERY_S", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "segments"
    place.mkdir()
    return place


@pytest.mark.parametrize("kind", list(PLANS))
def test_a_segment_killed_between_rows_and_steps_is_the_same_in_the_end(folder: Path, kind: str) -> None:
    given, plan = rows(), PLANS[kind]
    alive = written(folder, iter(given), plan)
    draft_folder = folder / ".draft"
    stops = iter([1, 40, 700, 1999])

    def cut(left: Iterator[VectorRow], stop: int) -> Iterator[VectorRow]:
        for row in left:
            if row.passage_id >= stop:
                raise Killed
            yield row

    for stop in stops:
        with pytest.raises(Killed):
            draft = Draft(draft_folder)
            written(folder, cut(after(given, draft), stop), plan, draft)
    steps = 0
    while True:
        left = 1

        def between() -> None:
            nonlocal left
            if not left:
                raise Killed
            left -= 1

        try:
            draft = Draft(draft_folder, between)
            resumed = written(folder, after(given, draft), plan, draft)
        except Killed:
            steps += 1
            continue
        break
    assert steps >= (0 if kind == "pages" else 4)
    assert content(resumed) == content(alive)
    assert load_structure(resumed).kind == kind
    assert not draft_folder.exists()


def test_rows_that_are_noted_are_not_asked_for_again(folder: Path) -> None:
    given, draft = rows(), Draft(folder / ".draft")

    def dying() -> Iterator[VectorRow]:
        yield from given[:1000]
        raise Killed

    with pytest.raises(Killed):
        written(folder, dying(), PLANS["pages"], draft)
    left = list(after(given, draft))
    assert COUNT - 1000 <= len(left) < COUNT - 1000 + rows_per_page(DIMENSION)


def test_a_step_that_was_done_is_not_done_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, draft = rows(), Draft(folder / ".draft")
    assigned = 0
    nearest = cluster.nearest

    def counted(part: np.ndarray, centres: np.ndarray) -> np.ndarray:
        nonlocal assigned
        assigned += len(part)
        if assigned > 3 * COUNT:  # in the middle of the rounds
            raise Killed
        return nearest(part, centres)

    monkeypatch.setattr(cluster, "nearest", counted)
    with pytest.raises(Killed):
        written(folder, iter(given), PLANS["quick8"], draft)
    done = len(list((folder / ".draft" / "steps").iterdir()))
    assert done >= 1
    monkeypatch.setattr(cluster, "nearest", nearest)
    rounds: list[int] = []
    moved = cluster._moved
    monkeypatch.setattr(cluster, "_moved", lambda *given: rounds.append(1) or moved(*given))
    written(folder, after(given, draft), PLANS["quick8"], draft)
    assert len(rounds) == 8 - done


@pytest.mark.parametrize("what", ["draft.npz", "vectors.f16"])
@pytest.mark.parametrize("how", ["cut", "changed", "missing"])
def test_a_damaged_draft_begins_anew(folder: Path, what: str, how: str) -> None:
    given, draft = rows(), Draft(folder / ".draft")

    def dying() -> Iterator[VectorRow]:
        yield from given[:1000]
        raise Killed

    with pytest.raises(Killed):
        written(folder, dying(), PLANS["pages"], draft)
    file = folder / ".draft" / what
    stored = bytearray(file.read_bytes())
    if how == "missing":
        file.unlink()
    else:
        stored[len(stored) // 3] ^= 255
        file.write_bytes(stored[: len(stored) // 2] if how == "cut" else stored)
    assert drafted(draft, DIMENSION) is None
    assert list(written(folder, iter(given), PLANS["pages"], draft).rows()) == given
