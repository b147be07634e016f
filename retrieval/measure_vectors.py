"""Vectors for measurements: made ones with clusters inside of clusters, or real ones from a file.

Real embeddings have far fewer directions than numbers. Made ones are therefore drawn in a space of 48
directions, around centres around centres, mapped to the full width, with a little noise in all of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.errors import GeoError

DIMENSION = 384
_DIRECTIONS = 48
_PER_CLUSTER = 200
_BLOCK = 65_536


def made_vectors(
    count: int, queries: int, *, seed: int
) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float32]]:
    """Unit vectors [count, 384] float16 to store and [queries, 384] float32 to ask, of the same kind."""
    random = np.random.default_rng(seed)
    to_full = random.standard_normal((_DIRECTIONS, DIMENSION)).astype(np.float32) / _DIRECTIONS**0.5
    tops = 1.5 * random.standard_normal((64, _DIRECTIONS)).astype(np.float32)
    clusters = max(64, count // _PER_CLUSTER)
    centres = tops[random.integers(0, 64, clusters)]
    centres = centres + random.standard_normal(centres.shape, np.float32)

    def draw(rows: int) -> npt.NDArray[np.float32]:
        inner = centres[random.integers(0, clusters, rows)]
        inner = inner + 0.6 * random.standard_normal(inner.shape, np.float32)
        full = inner @ to_full + 0.05 * random.standard_normal((rows, DIMENSION), np.float32)
        return full / np.linalg.norm(full, axis=1, keepdims=True)

    stored = np.empty((count, DIMENSION), np.float16)
    for start in range(0, count, _BLOCK):
        stored[start : start + _BLOCK] = draw(min(_BLOCK, count - start))
    return stored, draw(queries)


def read_vectors(
    path: Path, count: int, queries: int, *, seed: int
) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float32]]:
    """The same from a file [n, d] of real vectors: rows that are asked are not stored.

    Raises:
        GeoError: the file has too few rows.
    """
    rows = np.load(path, allow_pickle=False)
    if len(rows) < count + queries:
        raise GeoError(f"{path} has {len(rows)} vectors, {count + queries} are needed.")
    order = np.random.default_rng(seed).permutation(len(rows))
    asked = rows[order[:queries]].astype(np.float32)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    stored = rows[np.sort(order[queries : queries + count])].astype(np.float32)
    return (stored / np.linalg.norm(stored, axis=1, keepdims=True)).astype(np.float16), asked
