"""A tier outside of the index files, as another engine would be: rows in one JSON file per commit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from core.errors import ConfigError, TransientError
from core.types import Scope, Tier
from retrieval.files import DamagedIndex, checksum, read_checked, write_durably
from retrieval.vector_tier import (
    Batch,
    Candidates,
    Found,
    Ids,
    SegmentRef,
    TierRef,
    TierStats,
    VectorRow,
    VectorsRejected,
)
from tests.retrieval.vector_rows import exact


class ExternalTier:
    """Obeys `VectorTier`."""

    tier = Tier.COLD

    def __init__(self, folder: Path, ref: TierRef, dimension: int) -> None:
        self._folder, self._ref, self._dimension = folder, ref, dimension
        self._live = read(folder, ref)
        self._number = len(list(folder.glob("*.json")))
        self._changed = False

    def add(self, rows: Iterable[VectorRow]) -> int:
        checked: dict[int, VectorRow] = {}
        last = None
        for row in rows:
            vector = np.frombuffer(row.vector, np.float16).astype(np.float32)
            if len(vector) != self._dimension or (last is not None and row.order <= last):
                raise ValueError("width or order")
            length = np.linalg.norm(vector)
            if not np.isfinite(length) or length == 0:
                raise VectorsRejected("no direction", passage_ids=[row.passage_id])
            last = row.order
            if abs(length - 1) > 2e-3:
                row = VectorRow(*row.order, (vector / length).astype(np.float16).tobytes())
            if self._live.get(row.passage_id) != row:
                checked[row.passage_id] = row
        self._live.update(checked)
        self._changed |= bool(checked)
        return len(checked)

    def delete(self, ids: Sequence[int]) -> int:
        gone = [i for i in set(ids) if self._live.pop(i, None) is not None]
        self._changed |= bool(gone)
        return len(gone)

    def present(self, ids: Sequence[int]) -> set[int]:
        return set(ids) & self._live.keys()

    def live_ids(self) -> Ids:
        return np.asarray(sorted(self._live), np.int64)

    def commit(self) -> TierRef:
        if self._changed:
            self._number += 1
            name = f"rows-{self._number}.json"
            content = json.dumps([[*row.order, row.vector.hex()] for row in self._live.values()]).encode()
            write_durably(self._folder / name, content)
            self._ref = TierRef((SegmentRef(name, len(self._live), checksum(content)),))
            self._changed = False
        return self._ref

    def stats(self) -> TierStats:
        return TierStats(self.tier, len(self._live), 0)


class ExternalSnapshot:
    """Obeys `TierSnapshot`."""

    tier, refused = Tier.COLD, ""

    def __init__(self, folder: Path, ref: TierRef, dimension: int) -> None:
        self.dimension = dimension
        self._rows = tuple(read(folder, ref).values())

    @property
    def live_count(self) -> int:
        return len(self._rows)

    def search(self, vector, k, scope: Scope, *, passage_ids=None, effort=None) -> Found:
        if not np.isfinite(vector).all() or not vector.any():
            raise TransientError("no direction")
        if self._rows and len(vector) != self.dimension:
            raise ConfigError(f"{self.dimension} {len(vector)}")
        return [(i, min(1.0, max(-1.0, s))) for i, s in exact(self._rows, vector, k, scope, passage_ids)]

    def search_many(self, vectors, k, scope: Scope, *, passage_ids=None, effort=None) -> Batch:
        found = [self.search(vector, k, scope, passage_ids=passage_ids) for vector in vectors]
        width = max(map(len, found), default=0)
        scores, ids = np.full((len(found), width), -np.inf, np.float32), np.full((len(found), width), -1)
        for n, hits in enumerate(found):
            ids[n, : len(hits)], scores[n, : len(hits)] = [i for i, _ in hits], [s for _, s in hits]
        return scores, ids

    def candidates(self, vectors, k, scope: Scope, *, passage_ids=None, effort=None) -> list[Candidates]:
        return [Candidates(*self.search_many(vectors, k, scope, passage_ids=passage_ids))]

    def search_exact(self, vector, k, scope: Scope, *, passage_ids=None) -> Found:
        return self.search(vector, k, scope, passage_ids=passage_ids)

    def search_exact_many(self, vectors, k, scope: Scope) -> list[Found]:
        return [self.search(vector, k, scope) for vector in vectors]

    def sample(self, count: int, seed: int) -> list[VectorRow]:
        order = np.random.default_rng(seed).permutation(len(self._rows))[:count]
        return [self._rows[at] for at in order]

    def stats(self) -> TierStats:
        return TierStats(self.tier, len(self._rows), 0)


def read(folder: Path, ref: TierRef) -> dict[int, VectorRow]:
    live: dict[int, VectorRow] = {}
    for segment in ref.segments:
        try:
            content = read_checked(folder / segment.name, segment.checksum)
        except FileNotFoundError as error:
            raise DamagedIndex(str(error)) from error
        for tenant, collection, passage_id, vector in json.loads(content):
            live[passage_id] = VectorRow(tenant, collection, passage_id, bytes.fromhex(vector))
    return live
