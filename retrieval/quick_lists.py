"""Inverted lists over 4-bit product codes, which are compared 32 at a time in the processor's registers.

Rows are projected on the directions that hold most of them, as many as the codes can tell of, and turned so
that every part of a code tells of as much as any other. A code is what is left of a row beside its list's
centroid; the comparison with a query is a table per part, made once per query, whatever lists are probed.
The codes name candidates. Where the segment also keeps its rows in memory, as fp16 or SQ8, FAISS scores the
candidates again from them; scores from fp16 are exact.

Source: André, Kermarrec, Le Scouarnec, Cache locality is not enough, VLDB 2015, doi:10.14778/2856318.2856324
(the comparison); Ge, He, Ke, Sun, Optimized Product Quantization, TPAMI 2014, doi:10.1109/TPAMI.2013.240.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retrieval import cluster
from retrieval.faiss_index import (
    GpuCopy,
    Hits,
    faiss,
    in_more_lists,
    rows_of,
    search_rows,
    searched,
    selector,
)
from retrieval.selection import Selection
from retrieval.vector_pages import Rows
from retrieval.vector_tier import Ids, Vector

_IP = faiss.METRIC_INNER_PRODUCT
_STORED = {8: faiss.ScalarQuantizer.QT_8bit, 16: faiss.ScalarQuantizer.QT_fp16}
_BLOCK = 32  # codes that are compared at a time: lists are filled up to a multiple
_LEARNT_ROWS = 8192
_ROUNDS = 10
_WALKED_FROM = 1024  # lists: of 1,000 a walk takes 5.6 µs, comparing all 4.8; of 3,346 7.9 and 23.9
_LINKS, _BUILD_EFFORT, _LEAST_WALK, _ASKED = 16, 128, 16, 32
_KEPT = 256  # parameters


class QuickLists:
    """Made by `QuickListsBuilder` or `read_quick_lists`. Never changes."""

    def __init__(self, index: Any, *, keep: Any = None) -> None:
        self._index = index
        self._keep = keep  # what the index has a bare pointer to
        refined = isinstance(self._index, faiss.IndexRefine)
        self._named = faiss.downcast_index(self._index.base_index) if refined else self._index
        self._stored = faiss.downcast_index(self._index.refine_index) if refined else None
        self._codes = faiss.downcast_index(self._named.index)
        self.list_count: int = self._codes.nlist
        centroids = faiss.downcast_index(self._codes.quantizer)
        self._walked = centroids if isinstance(centroids, faiss.IndexHNSW) else None
        exact = self._stored is not None and self._stored.sq.qtype == _STORED[16]
        self.rows: Rows | None = rows_of(self._stored) if exact else None
        # Parameters by lists and candidates: making them takes as long as the search of one question.
        self._walks: dict[tuple[int, float], Any] = {}
        self._copy: GpuCopy | None = None

    @property
    def refines(self) -> bool:
        """Whether candidates are scored again from rows in memory."""
        return self._stored is not None

    @property
    def nbytes(self) -> int:
        """Codes, row numbers, centroids, the projection, and rows in memory."""
        codes, lists = self._codes, self._codes.invlists
        sizes = np.asarray([lists.list_size(number) for number in range(codes.nlist)])
        blocks = -(-sizes // _BLOCK)
        code_bytes = int(blocks.sum()) * _BLOCK * codes.M2 // 2
        turned = 4 * codes.d * (codes.nlist + self._named.d)
        if self._walked is not None:
            links = self._walked.hnsw
            turned += int(4 * links.neighbors.size() + 8 * links.offsets.size())
        stored = self._stored.ntotal * self._stored.code_size if self._stored is not None else 0
        return int(code_bytes + 8 * codes.ntotal + turned + stored)

    def use_accelerator(self) -> None:
        """As `ExactRows.use_accelerator`, where rows are kept exactly."""
        if self.rows is not None:
            self._copy = GpuCopy.of(self.rows)

    def write(self, path: Path) -> None:
        """Store them for `read_quick_lists`. Not durable until the caller syncs the file."""
        faiss.write_index(self._index, str(path))

    def search(
        self,
        queries: Vector,
        k: int,
        selection: Selection,
        probes: int,
        needed: int,
        candidates: int | None = None,
    ) -> Hits:
        """About the k best selected rows of the `probes` nearest lists; of more to find `needed`.

        Args:
            queries: [n, d] float32.
            k: how many at most.
            selection: which rows may be found.
            probes: lists.
            needed: hits that a question is to have if the selection holds them.
            candidates: so many are scored again from the rows in memory; None: scores are those of the codes.
        """
        if self._copy is not None and candidates and selection.everything:
            return self._copy.search(queries, k)
        k = min(k, selection.count)
        more = 0.0
        if candidates is not None and self._stored is not None:
            more = max(1.0, min(candidates, selection.count) / max(1, k))

        def ask(some: Vector, lists: int) -> Hits:
            index = self._index if more else self._named
            return searched(index, some, k, self._parameters(lists, more, selection))

        return in_more_lists(ask, queries, min(probes, self.list_count), self.list_count, min(needed, k))

    def _parameters(self, lists: int, more: float, selection: Selection) -> Any:
        """For so many lists, and `more` times as many candidates as hits; kept where nothing is filtered."""
        key = lists, more
        if selection.everything and (known := self._walks.get(key)) is not None:
            return known
        walk = None
        if self._walked is not None:
            walk = faiss.SearchParametersHNSW(efSearch=max(_LEAST_WALK, 2 * lists))
        inner = faiss.SearchParametersIVF(nprobe=lists, sel=selector(selection), quantizer_params=walk)
        made = faiss.SearchParametersPreTransform(index_params=inner)
        if more:
            made = faiss.IndexRefineSearchParameters(k_factor=more, base_index_params=made)
        if selection.everything:
            if len(self._walks) >= _KEPT:
                self._walks.clear()
            self._walks[key] = made
        return made

    def search_exact(self, queries: Vector, k: int, selection: Selection) -> Hits | None:
        """The k best selected rows, exactly, from memory; None where it does not keep them so."""
        if self.rows is None:
            return None
        return search_rows(self._stored, self.rows, queries, k, selection)


class QuickListsBuilder:
    """Fills the lists block by block.

    Args:
        centroids: [nlist, d] float32, unit length.
        stored_bits: 16 or 8 a number for rows that stay in memory, 0 for none.
        sample: [m, d] float16, to learn from; m at least 16.
    """

    def __init__(self, centroids: Vector, stored_bits: int, sample: Rows) -> None:
        count, dimension = centroids.shape
        parts = code_parts(dimension, stored_bits > 0)
        learnt = sample[:: max(1, len(sample) // _LEARNT_ROWS)].astype(np.float32)
        self._turn, entries = _learnt(learnt, centroids, parts)
        kept = len(self._turn)
        self._quantizer = _nearest_list(self._turned(centroids))
        self._codes = faiss.IndexIVFPQ(self._quantizer, kept, count, parts, 4, _IP)
        self._codes.by_residual = True
        faiss.copy_array_to_vector(entries, self._codes.pq.centroids)
        self._codes.is_trained = True
        self._stored = None
        if stored_bits:
            self._stored = faiss.IndexScalarQuantizer(dimension, _STORED[stored_bits], _IP)
            self._stored.train(learnt)

    def add(self, first: int, rows: Vector, lists: Ids) -> None:
        """Append rows [m, d] whose numbers begin at `first`, in order, to the lists given."""
        turned = self._turned(rows)
        numbers = np.arange(first, first + len(rows), dtype=np.int64)
        self._codes.add_core(
            len(rows), faiss.swig_ptr(turned), faiss.swig_ptr(numbers),
            faiss.swig_ptr(np.ascontiguousarray(lists, np.int64)),
        )  # fmt: skip
        if self._stored is not None:
            self._stored.add(rows)

    def finish(self) -> QuickLists:
        """The lists, to be searched or written."""
        fast = faiss.IndexIVFPQFastScan(self._codes, _BLOCK)
        turn = faiss.LinearTransform(self._turn.shape[1], len(self._turn), False)
        faiss.copy_array_to_vector(self._turn.ravel(), turn.A)
        turn.is_trained = True
        named = index = faiss.IndexPreTransform(turn, fast)
        if self._stored is not None:
            index = faiss.IndexRefine(named, self._stored)
        return QuickLists(index, keep=(self._quantizer, self._codes, fast, turn, named, self._stored))

    def _turned(self, rows: Vector) -> Vector:
        return np.ascontiguousarray(rows @ self._turn.T, np.float32)


def read_quick_lists(path: Path) -> QuickLists:
    """Load what `QuickLists.write` stored."""
    return QuickLists(faiss.read_index(str(path)))


def code_parts(dimension: int, refined: bool) -> int:
    """Parts of a code, half a byte each.

    52 bytes for 384 numbers, which 72 bytes a vector leave for them; 24 where candidates are scored again in
    memory, so that more of them cost less than longer codes.
    """
    numbers = dimension // 8 if refined else dimension // 4 + dimension // 48
    return max(1, 2 * (numbers // 2))


def _nearest_list(centroids: Vector) -> Any:
    """An index of [nlist, kept] centroids: of many a graph, if it names all of them when asked to."""
    count, kept = centroids.shape
    if count >= _WALKED_FROM:
        graph = faiss.IndexHNSWFlat(kept, _LINKS, _IP)
        graph.hnsw.efConstruction = _BUILD_EFFORT
        graph.add(centroids)
        every = faiss.SearchParametersHNSW(efSearch=count)
        asked = centroids[:: max(1, count // _ASKED)]
        if (graph.search(np.ascontiguousarray(asked), count, params=every)[1] >= 0).all():
            return graph
    flat = faiss.IndexFlatIP(kept)
    flat.add(centroids)
    return flat


def _learnt(rows: Vector, centroids: Vector, parts: int) -> tuple[Vector, Vector]:
    """The projection [kept, d] and the codes' entries, of what reproduces the rows best.

    Few directions leave the codes more to say of each, many leave less out: what is best depends on the
    vectors. Of made vectors with 48 directions 104 of 384 are kept, of embeddings nearly all.
    """
    rest = rows - centroids[cluster.nearest(rows, centroids)]
    dimension = rows.shape[1]
    _, directions = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    directions = directions[:, ::-1]
    shown, told = rest[::8], rows[::8]
    base = told - shown
    best: tuple[float, Vector, Vector] | None = None
    most = dimension // parts
    for wide in (n for n in range(1, most + 1) if n == most or not n & (n - 1)):  # 1, 2, 4 ... and the most
        kept = parts * wide
        mixed = np.linalg.qr(np.random.default_rng(kept).standard_normal((kept, kept)))[0]
        turn = np.ascontiguousarray((directions[:, :kept] @ mixed).T, np.float32)
        product = faiss.ProductQuantizer(kept, parts, 4)
        product.cp.niter, product.cp.min_points_per_centroid = _ROUNDS, 1
        product.train(np.ascontiguousarray(rest @ turn.T))
        codes = product.compute_codes(np.ascontiguousarray(shown @ turn.T))
        again = (base @ turn.T + product.decode(codes)) @ turn
        error = float(np.square(again - told).sum())
        if best is None or error < best[0]:
            best = error, turn, faiss.vector_to_array(product.centroids)
    if best is None:
        raise ValueError(f"vectors of {dimension} numbers have no codes")
    return best[1], best[2]
