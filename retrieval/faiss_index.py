"""The one door to FAISS: exact rows, neighbour graphs and inverted lists over fp16 originals.

Everything here is inner product over unit vectors, one thread per call, and rows of one segment as ids. A
structure is never changed after it was built, so any number of threads may search it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss as _faiss
import numpy as np
import numpy.typing as npt

from retrieval.exact import TopK
from retrieval.selection import Selection
from retrieval.vector_pages import Rows
from retrieval.vector_tier import Ids, Vector

faiss: Any = _faiss  # its stubs lack the keyword arguments of the Python wrappers
faiss.omp_set_num_threads(1)  # parallel over queries; two threads on a busy box took one from 5 to 36 ms

Scores = npt.NDArray[np.float32]
Hits = tuple[Scores, Ids]
"""Scores and rows, [n, at most k] for [n, d] queries, best first; -inf and -1 where there were fewer."""

_IP = faiss.METRIC_INNER_PRODUCT
_FP16 = faiss.ScalarQuantizer.QT_fp16
_PRODUCT_FROM = 16  # queries from which a product of float32 costs less than a scan of fp16 for each
WIDENED_ROWS = 1024  # 1.5 MB as float32: stays in the processor's cache
_COPIED_ROWS = 1024  # copying so many rows and scanning them costs less than testing 65,536 against a filter
_GPU_SPARE = 8  # rows whose order fp16 sums may have mixed up
_WALKS = 64  # efforts of a graph whose parameters are kept
_GRAPH_LINKS = 16
_GRAPH_BUILD_EFFORT = 64


def widened(rows: Rows) -> Vector:
    """Finite rows [m, d] float16, C-contiguous, as float32.

    The bits are moved to where float32 has them, which makes numbers that are 2¹¹² too small: a tenth of the
    time that numpy or FAISS take.
    """
    wide = rows.view(np.int16).astype(np.int32)
    wide <<= 13
    wide &= np.int32(-0x70000001)  # the sign, moved along, fills three bits too many
    made = wide.view(np.float32)
    made *= np.float32(2.0**112)
    return made


def scan(rows: Rows, queries: Vector, k: int) -> Hits:
    """The k best of some rows per query, exactly; the second of the result are positions in `rows`.

    One query is scanned by FAISS, which reads fp16 as it is; for many a matrix product costs less, although
    it needs the rows as float32.

    Args:
        rows: [m, d] float16, C-contiguous.
        queries: [n, d] float32.
        k: how many at most.
    """
    k = min(k, len(rows))
    if k < 1:
        return nothing(len(queries))
    if len(queries) < _PRODUCT_FROM:
        index = _exact(rows.shape[1], len(rows))
        rows_of(index)[:] = rows
        return searched(index, queries, k)
    top = TopK(queries, k)
    for start in range(0, len(rows), WIDENED_ROWS):
        top.offer(start, widened(rows[start : start + WIDENED_ROWS]))
    return top.result()


def nothing(queries: int) -> Hits:
    """What a search of so many queries gives where there is nothing to find."""
    return np.empty((queries, 0), np.float32), np.empty((queries, 0), np.int64)


class GpuCopy:
    """A copy of a segment's rows on a GPU, scanned exactly.

    Only searches without a filter go there, as its flat index takes none; what it names is scored again from
    the rows in memory, so scores do not depend on where a search ran.
    """

    def __init__(self, rows: Rows) -> None:
        config = faiss.GpuIndexFlatConfig()
        config.useFloat16 = True
        self._rows = rows
        self._resources = faiss.StandardGpuResources()
        self._index = faiss.GpuIndexFlatIP(self._resources, rows.shape[1], config)
        self._turn = threading.Lock()  # one stream: callers take turns
        for start in range(0, len(rows), 65_536):
            self._index.add(rows[start : start + 65_536].astype(np.float32))

    @classmethod
    def of(cls, rows: Rows) -> GpuCopy | None:
        """A copy where there is a GPU that FAISS can use, and any row."""
        able = len(rows) and hasattr(faiss, "GpuIndexFlatIP") and faiss.get_num_gpus()
        return cls(rows) if able else None

    def search(self, queries: Vector, k: int) -> Hits:
        """The k best rows per query."""
        with self._turn:
            _, near = searched(self._index, queries, min(k + _GPU_SPARE, len(self._rows)))
        found = [
            scan(np.ascontiguousarray(self._rows[one]), q[None], k)
            for one, q in zip(near, queries, strict=True)
        ]
        rows = [one[at[0]] for one, (_, at) in zip(near, found, strict=True)]
        return np.concatenate([scores for scores, _ in found]), np.stack(rows)


class ExactRows:
    """All rows of a segment in memory as they are stored, 2 bytes a number."""

    def __init__(self, count: int, dimension: int) -> None:
        self._index = _exact(dimension, count)
        self.rows: Rows = rows_of(self._index)
        """[count, dimension], to be filled once."""
        self._copy: GpuCopy | None = None

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.rows.nbytes

    def use_accelerator(self) -> None:
        """Where FAISS was built for GPUs and there is one: let it scan a copy of the filled rows."""
        self._copy = GpuCopy.of(self.rows)

    def search(self, queries: Vector, k: int, selection: Selection) -> Hits:
        """The k best selected rows per query, exactly."""
        if self._copy is None or not selection.everything:
            return search_rows(self._index, self.rows, queries, k, selection)
        return self._copy.search(queries, k)


class Graph:
    """HNSW over fp16 rows; narrow selections are searched exactly in the rows that it keeps anyway."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self._storage = faiss.downcast_index(index.storage)
        self._walks: dict[int, Any] = {}  # parameters by effort: making them takes as long as a short walk
        self._copy: GpuCopy | None = None
        self.rows: Rows = rows_of(self._storage)

    def use_accelerator(self) -> None:
        """As `ExactRows.use_accelerator`: an exact scan there costs less than a walk here."""
        self._copy = GpuCopy.of(self.rows)

    @property
    def nbytes(self) -> int:
        """Memory taken: rows, links, and where each row's links begin."""
        links = self._index.hnsw
        return int(self.rows.nbytes + 4 * links.neighbors.size() + 8 * links.offsets.size())

    def write(self, path: Path) -> None:
        """Store it for `read_graph`. Not durable until the caller syncs the file."""
        faiss.write_index(self._index, str(path))

    def search(self, queries: Vector, k: int, selection: Selection, effort: int) -> Hits:
        """About the k best selected rows per query, from the `effort` nearest nodes that a walk finds."""
        if self._copy is not None and selection.everything:
            return self._copy.search(queries, k)
        parameters = self._parameters(max(effort, k), selection)
        return searched(self._index, queries, min(k, selection.count), parameters)

    def _parameters(self, effort: int, selection: Selection) -> Any:
        if not selection.everything:
            return faiss.SearchParametersHNSW(efSearch=effort, sel=selector(selection))
        if (known := self._walks.get(effort)) is None:
            if len(self._walks) >= _WALKS:
                self._walks.clear()
            known = self._walks[effort] = faiss.SearchParametersHNSW(efSearch=effort)
        return known

    def search_exact(self, queries: Vector, k: int, selection: Selection) -> Hits:
        """The k best selected rows per query, exactly."""
        return search_rows(self._storage, self.rows, queries, k, selection)


class Lists:
    """Inverted lists over short codes: SQ8 in memory, or RaBitQ in a mapped file. Scores are approximate."""

    def __init__(
        self, index: Any, rotation: npt.NDArray[np.float32] | None = None, *, keep: Any = None
    ) -> None:
        self._index = index
        self._keep = keep  # what the index has a bare pointer to
        self._rotation = rotation
        self.list_count: int = index.nlist
        lists = faiss.downcast_InvertedLists(index.invlists)
        if hasattr(lists, "prefetch_nthread"):
            lists.prefetch_nthread = 0  # it would start 32 threads per query

    @property
    def nbytes(self) -> int:
        """Codes, row numbers and centroids."""
        index = self._index
        centroids = faiss.downcast_index(index.quantizer)
        return int(index.ntotal * (index.code_size + 8) + index.nlist * centroids.code_size)

    def write(self, path: Path) -> None:
        """Store them for `read_lists`. Not durable until the caller syncs the file."""
        faiss.write_index(self._index, str(path))

    def search(self, queries: Vector, k: int, selection: Selection, probes: int, needed: int) -> Hits:
        """About the k best selected rows of the `probes` nearest lists; of more to find `needed`."""
        wanted, chosen = min(k, selection.count), selector(selection)
        asked = queries if self._rotation is None else np.ascontiguousarray(queries @ self._rotation.T)

        def ask(some: Vector, lists: int) -> Hits:
            return searched(self._index, some, wanted, faiss.SearchParametersIVF(nprobe=lists, sel=chosen))

        return in_more_lists(ask, asked, min(probes, self.list_count), self.list_count, min(needed, wanted))


def in_more_lists(
    ask: Callable[[Vector, int], Hits], queries: Vector, probes: int, most: int, needed: int
) -> Hits:
    """What `ask(queries, probes)` finds; questions that find less than `needed` are asked in more lists."""
    scores, rows = ask(queries, probes)
    while needed and probes < most:
        short = np.flatnonzero(rows[:, needed - 1] < 0)  # the selection is elsewhere
        if not len(short):
            break
        probes = min(4 * probes, most)
        scores[short], rows[short] = ask(queries[short], probes)
    return scores, rows


def flat_search(rows: Vector, queries: Vector, k: int) -> Callable[[], Ids]:
    """FAISS's own exact batch search over float32 rows, to compare with; uses all processors."""
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)

    def run() -> Ids:
        faiss.omp_set_num_threads(os.cpu_count() or 1)
        try:
            return index.search(queries, k)[1]
        finally:
            faiss.omp_set_num_threads(1)

    return run


def build_graph(rows: Rows) -> Graph:
    """A graph over all rows [n, d] float16; about 25,000 rows a second."""
    index = faiss.IndexHNSWSQ(rows.shape[1], _FP16, _GRAPH_LINKS, _IP)
    index.hnsw.efConstruction = _GRAPH_BUILD_EFFORT
    index.is_trained = True  # fp16 has nothing to learn
    for start in range(0, len(rows), 4096):
        index.add(rows[start : start + 4096].astype(np.float32))
    return Graph(index)


class ListsBuilder:
    """Fills inverted lists block by block.

    Args:
        centroids: [nlist, d] float32, unit length.
        bits: 8 for SQ8, 1 for RaBitQ.
        sample: [m, d] float32, to learn ranges from.
        rotation: [d, d] orthogonal, applied to centroids, rows and queries; for RaBitQ.
    """

    def __init__(
        self, centroids: Vector, bits: int, sample: Vector, rotation: npt.NDArray[np.float32] | None = None
    ) -> None:
        count, dimension = centroids.shape
        self._rotation = rotation
        quantizer = faiss.IndexFlatIP(dimension)  # compared by a matrix product, which fp16 has none of
        quantizer.add(self._turned(centroids))
        if bits == 8:
            eight = faiss.ScalarQuantizer.QT_8bit
            self._index = faiss.IndexIVFScalarQuantizer(quantizer, dimension, count, eight, _IP, False)
        else:
            self._index = faiss.IndexIVFRaBitQ(quantizer, dimension, count, _IP)
        self._quantizer = quantizer
        self._index.train(self._turned(sample))

    def add(self, first: int, rows: Vector, lists: Ids) -> None:
        """Append rows [m, d] whose numbers begin at `first` to the lists given."""
        turned = self._turned(rows)
        numbers = np.arange(first, first + len(rows), dtype=np.int64)
        self._index.add_core(
            len(rows), faiss.swig_ptr(turned), faiss.swig_ptr(numbers),
            faiss.swig_ptr(np.ascontiguousarray(lists, np.int64)),
        )  # fmt: skip

    def finish(self) -> Lists:
        """The lists, to be searched or written."""
        return Lists(self._index, self._rotation, keep=self._quantizer)

    def _turned(self, rows: Vector) -> Vector:
        turned = rows if self._rotation is None else rows @ self._rotation.T
        return np.ascontiguousarray(turned, np.float32)


def read_graph(path: Path) -> Graph:
    """Load what `Graph.write` stored."""
    return Graph(faiss.read_index(str(path)))


def read_lists(path: Path, *, mapped: bool, rotation: npt.NDArray[np.float32] | None = None) -> Lists:
    """Load what `Lists.write` stored, or map its lists, so that the system may drop them from memory."""
    flags = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY if mapped else 0
    return Lists(faiss.read_index(str(path), flags), rotation)


def _exact(dimension: int, count: int) -> Any:
    index = faiss.IndexScalarQuantizer(dimension, _FP16, _IP)
    index.codes.resize(count * index.code_size)  # `add` would double its buffer and leave half of it empty
    index.ntotal = count
    index.is_trained = True
    return index


def rows_of(index: Any) -> Rows:
    """The rows of an index of fp16, as it keeps them; valid while it lives."""
    size = index.ntotal * index.code_size
    if not size:
        return np.empty((0, index.d), np.float16)
    return faiss.rev_swig_ptr(index.codes.data(), size).view(np.float16).reshape(-1, index.d)


def search_rows(index: Any, rows: Rows, queries: Vector, k: int, selection: Selection) -> Hits:
    """The k best selected rows of an index of fp16 per query, exactly."""
    if selection.count <= _COPIED_ROWS:
        chosen = selection.row_numbers()
        part = rows[slice(*selection.rows)] if selection.rows is not None else rows[chosen]
        scores, at = scan(part, queries, k)
        return scores, np.where(at < 0, -1, chosen[at]) if len(chosen) else at
    if len(queries) < _PRODUCT_FROM:
        parameters = faiss.SearchParameters(sel=selector(selection))
        return searched(index, queries, min(k, selection.count), parameters)
    top = TopK(queries, min(k, selection.count))
    start, stop = selection.bounds()
    mask = None if selection.rows is not None else selection.as_mask()
    for first in range(start, stop, WIDENED_ROWS):
        end = min(first + WIDENED_ROWS, stop)
        top.offer(first, widened(rows[first:end]), None if mask is None else mask[first:end])
    return top.result()


def searched(index: Any, queries: Vector, k: int, parameters: Any = None) -> Hits:
    """What an index finds, with what it pads its results with made -1 and -inf."""
    if k < 1:
        return nothing(len(queries))
    scores, rows = index.search(queries, k, params=parameters)
    missing = rows < 0  # FAISS pads with -1 and the lowest number there is
    if missing.any():
        scores[missing] = -np.inf
    return scores, rows


def selector(selection: Selection) -> Any:
    """The filter that an index takes; None where nothing is filtered."""
    if selection.everything:
        return None
    if selection.rows is not None:
        return faiss.IDSelectorRange(*selection.rows)
    return faiss.IDSelectorBitmap(np.packbits(selection.as_mask(), bitorder="little"))
