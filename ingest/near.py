"""How much two texts share: hashed shingles, MinHash signatures, bands, the exact Jaccard index. Pure.

A shingle is five characters of a text that is written without spaces, else four words; letters and digits
only, folded as for search, so that layout, punctuation, width, case and traditional forms do not count.
Signatures are one-permutation MinHash with optimal densification: one pass over the shingles, whatever the
number of values.

Source: Li, Owen, Zhang, One Permutation Hashing (NIPS 2012); Shrivastava, Optimal Densification for Fast and
Accurate Minwise Hashing (ICML 2017); banding: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, 3.4.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ingest.fold import search_fold

Hashes = npt.NDArray[np.uint64]
Signature = npt.NDArray[np.uint32]

VALUES = 128
# 32 bands of 4: a pair with a Jaccard index of .5 meets with probability .87, of .67 .999, of .2 .05.
BANDS = 32
MIN_SHINGLES = 8  # below it a text says too little to be alike anything
_CHARACTERS, _WORDS = 5, 4
_UNSPACED_SHARE = 0.3
_PRIME = np.uint64(0x100000001B3)
_BIN_SHIFT = np.uint64(64 - VALUES.bit_length() + 1)
_BMP = 0x10000


def shingles(text: str) -> Hashes:
    """Hashes of the distinct shingles of `text`, ascending; empty when it has fewer than `MIN_SHINGLES`."""
    points = np.frombuffer(text.encode("utf-32-le", "replace"), dtype="<u4")
    folded = _fold_table()[np.minimum(points, _BMP - 1)]
    astral = points >= _BMP
    if astral.any():
        folded = np.where(astral & (points >= 0x20000), points, folded)  # rare Han; emoji do not count
    kept = folded != 0
    letters = folded[kept].astype(np.uint64)
    if np.count_nonzero(_is_unspaced(letters)) >= _UNSPACED_SHARE * max(len(letters), 1):
        units, width = letters, _CHARACTERS
    else:
        units, width = _words(letters, np.flatnonzero(kept)), _WORDS
    if len(units) < width:
        return np.empty(0, np.uint64)
    count = len(units) - width + 1
    rolled = np.zeros(count, np.uint64)
    for offset in range(width):
        rolled = rolled * _PRIME + units[offset : offset + count]
    distinct = np.unique(_mixed(rolled))
    return distinct if len(distinct) >= MIN_SHINGLES else np.empty(0, np.uint64)


def signature(distinct: Hashes) -> Signature:
    """`VALUES` numbers; the share of equal ones in two signatures estimates the Jaccard index.

    Args:
        distinct: what `shingles` gave, not empty.
    """
    bins, first = np.unique((distinct >> _BIN_SHIFT).astype(np.int64), return_index=True)
    values = np.zeros(VALUES, np.uint32)
    filled = np.zeros(VALUES, bool)
    values[bins] = (distinct[first] & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    filled[bins] = True
    empty = np.flatnonzero(~filled)
    order = _donors()[empty]
    values[empty] = values[order[np.arange(len(empty)), np.argmax(filled[order], axis=1)]]
    return values


def band_keys(values: Signature) -> list[int]:
    """One signed 64-bit key per band; two texts that share one are worth a closer look."""
    rows = values.reshape(BANDS, -1).astype(np.uint64)
    keys = np.arange(1, BANDS + 1, dtype=np.uint64)
    for column in rows.T:
        keys = _mixed(keys * _PRIME + column)
    return keys.view(np.int64).tolist()


def estimate(first: Signature, second: Signature) -> float:
    """The Jaccard index as two signatures tell it; standard error below .045."""
    return float(np.mean(first == second))


def jaccard(first: Hashes, second: Hashes) -> float:
    """Shared shingles among all shingles of both, in [0, 1]; 0 when one has none."""
    if not len(first) or not len(second):
        return 0.0
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


def _words(letters: Hashes, at: npt.NDArray[np.int64]) -> Hashes:
    """One hash per run of neighbouring letters."""
    starts = np.flatnonzero(np.diff(at, prepend=-2) > 1)
    if not len(starts):
        return np.empty(0, np.uint64)
    within = np.arange(len(letters)) - np.repeat(starts, np.diff(starts, append=len(letters)))
    return _mixed(np.add.reduceat(letters * _powers()[np.minimum(within, 63)], starts))


def _mixed(values: Hashes) -> Hashes:
    """The finalizer of splitmix64: every bit of the input moves every bit of the output."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _is_unspaced(letters: Hashes) -> npt.NDArray[np.bool_]:
    """Han, kana and Thai, which are written without spaces."""
    return (
        ((letters >= 0x3040) & (letters <= 0x30FF))
        | ((letters >= 0x3400) & (letters <= 0x9FFF))
        | (letters >= 0x20000)
        | ((letters >= 0x0E00) & (letters <= 0x0E7F))
    )


@lru_cache(maxsize=1)
def _powers() -> Hashes:
    return np.cumprod(np.full(64, _PRIME, np.uint64), dtype=np.uint64)


@lru_cache(maxsize=1)
def _donors() -> npt.NDArray[np.int64]:
    """For each value, the order in which it borrows from others when no shingle fell to it."""
    chance = np.random.default_rng(20)
    return np.stack([chance.permutation(VALUES) for _ in range(VALUES)])


@lru_cache(maxsize=1)
def _fold_table() -> npt.NDArray[np.uint32]:
    """Code point → its folded form, 0 for what is neither letter nor digit (0.1 s, once per process)."""
    counted = [chr(c) for c in range(_BMP) if not 0xD800 <= c < 0xE000 and chr(c).isalnum()]
    table = np.zeros(_BMP, np.uint32)
    for char, folded in zip(counted, search_fold("\n".join(counted)).split("\n"), strict=True):
        table[ord(char)] = ord(folded[0]) if folded else 0
    return table
