"""A segment that outlives the process that writes it, so that a killed build does little of it again.

    <segments>/.draft/draft.npz      rows that are durable: ids, checksums of their pages, owners
    <segments>/.draft/vectors.f16    their originals, and perhaps more
    <segments>/.draft/steps/<n>.npy  what steps of making the search structure gave

Notes are taken every few seconds. Each file is replaced as a whole after what it speaks of is durable; a note
that cannot be read, or originals that do not match it, begin the segment anew.
"""

from __future__ import annotations

import io
import json
import shutil
import time
import zipfile
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from retrieval.files import DamagedIndex, write_durably
from retrieval.selection import OwnerSpan
from retrieval.vector_pages import PageFile, PageWriter, Sums

NOTED_EVERY_S = 5.0  # what a kill costs; a note of a million rows is 9 MB
_NOTES, _VECTORS, _STEPS = "draft.npz", "vectors.f16", "steps"
Made = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """Where a segment is written so that it can be gone on with.

    Args:
        folder: holds one segment at a time; becomes the segment's folder when it is finished.
        between: called between steps of some seconds; raises when the work is to stop.
    """

    folder: Path
    between: Callable[[], None] = lambda: None

    def noted(self, dimension: int, page_rows: int) -> Noted | None:
        """What is there, after a look at every byte; None when there is nothing to go on with."""
        try:
            with (self.folder / _NOTES).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                ids, sums, body = stored["ids"], stored["sums"], bytes(stored["body"])
            fields = json.loads(body)
            if (fields["dimension"], fields["page_rows"]) != (dimension, page_rows):
                return None
            spans = tuple(OwnerSpan(*span) for span in fields["spans"])
            found = Noted(ids, sums, spans, bool(fields["complete"]))
            _cut(self.folder / _VECTORS, 2 * dimension * page_rows * len(sums))
            pages = PageFile(self.folder / _VECTORS, len(ids), dimension, page_rows, sums)
            return found if sum(len(rows) for _, rows in pages.blocks()) == len(ids) else None
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, DamagedIndex):
            return None

    def begin(self) -> None:
        """Make the folder, empty."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def note(
        self,
        pages: PageWriter,
        ids: array[int],
        spans: Sequence[OwnerSpan],
        *,
        dimension: int,
        page_rows: int,
        complete: Sums | None = None,
    ) -> None:
        """Make the rows so far durable; `complete` are the checksums of all pages when no row will follow."""
        sums = pages.sync() if complete is None else complete
        count = len(ids) if complete is not None else len(sums) * page_rows
        fields = {
            "dimension": dimension, "page_rows": page_rows, "complete": complete is not None,
            "spans": [
                [s.tenant_id, s.collection_id, s.start, min(s.end, count)] for s in spans if s.start < count
            ],
        }  # fmt: skip
        buffer = io.BytesIO()
        body = np.frombuffer(json.dumps(fields).encode(), np.uint8)
        np.savez(buffer, ids=np.asarray(ids[:count], np.int64), sums=sums, body=body)
        write_durably(self.folder / _NOTES, buffer.getvalue())

    def steps(self) -> Steps:
        """Of the segment's structure."""
        return Steps(self.folder / _STEPS, self.between)

    def finish(self) -> None:
        """Remove the notes: the folder becomes a segment's."""
        (self.folder / _NOTES).unlink(missing_ok=True)
        shutil.rmtree(self.folder / _STEPS, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Noted:
    """Rows of a draft that are durable.

    Attributes:
        ids: [n] passage ids.
        sums: checksum per page.
        spans: who owns which rows.
        complete: no row follows.
    """

    ids: npt.NDArray[np.int64]
    sums: Sums
    spans: tuple[OwnerSpan, ...]
    complete: bool

    @property
    def last(self) -> tuple[str, str, int] | None:
        """`VectorRow.order` of the last row."""
        if not len(self.ids):
            return None
        return self.spans[-1].tenant_id, self.spans[-1].collection_id, int(self.ids[-1])


class Steps:
    """Results of the steps of a long computation, kept so that none is done twice. The default keeps nothing.

    Args:
        folder: where they are kept.
        between: called after each; raises when the work is to stop.
    """

    def __init__(self, folder: Path | None = None, between: Callable[[], None] = lambda: None) -> None:
        self._folder, self._between = folder, between
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str) -> Made | None:
        """What a step gave, if it was done."""
        if self._folder is None:
            return None
        try:
            return np.load(self._folder / f"{name}.npy", allow_pickle=False)
        except (OSError, ValueError):
            return None

    def keep(self, name: str, made: Made) -> None:
        """Note the result of a step, durably."""
        if self._folder is not None:
            buffer = io.BytesIO()
            np.save(buffer, made, allow_pickle=False)
            write_durably(self._folder / f"{name}.npy", buffer.getvalue())
        self._between()

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """The result of a step, made if it was not."""
        if (made := self.get(name)) is None:
            made = make()
            self.keep(name, made)
        return made


class Pace:
    """Says when a note is due."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether the last one was `NOTED_EVERY_S` ago; counts as one then."""
        if time.monotonic() - self._last < NOTED_EVERY_S:
            return False
        self._last = time.monotonic()
        return True


def _cut(path: Path, length: int) -> None:
    """Forget what was written after the note. Raises `OSError` when the file is shorter than that."""
    if path.stat().st_size < length:
        raise OSError(f"{path.name} is shorter than its notes say")
    with path.open("r+b") as file:
        file.truncate(length)
