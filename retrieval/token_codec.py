"""Token vectors of a passage in 50 bytes a token: made once at index time, read by every rerank. Pure.

A passage's vectors are stored as their mean and, of what is left, one bit a dimension and one scale a token,
after a fixed rotation that spreads the energy evenly over the dimensions. Marks between words are dropped; of
a passage too long for `MAX_BYTES`, the neighbours that are most alike become one. Nothing is learned from any
text, so what is stored never depends on what was stored before.

    header   version u8, 0 u8, dimension u16, tokens u16
    mean     f2[d]
    scales   f2[t]
    places   start u2[t], length u1[t]: characters of the encoded text
    bits     [t, d/8], the sign of each rotated residual

Source of the one-bit estimate: Gao and Long, RaBitQ, SIGMOD 2024, doi:10.1145/3654970.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import regex

from ingest.encode import TokenVectors

Floats = npt.NDArray[np.float32]
MAX_BYTES = 16_384
_VERSION = 1
_HEADER = struct.Struct("<BBHH")
_WORDLESS = regex.compile(r"[\s\p{P}\p{S}]*")


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """Token vectors as they are stored.

    Attributes:
        mean: [d] float32.
        scales: [t] float32.
        offsets: [t, 2] int32, half-open character range of each token in the encoded text.
        bits: [t, d / 8] uint8.
    """

    mean: Floats
    scales: Floats
    offsets: npt.NDArray[np.int32]
    bits: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.scales)

    def similarities(self, question: Floats) -> Floats:
        """Estimated cosines [q, t] of question tokens [q, d] with these."""
        return similarities(question, [self])[0]

    def vectors(self) -> TokenVectors:
        """The vectors that the estimates are cosines with; not of unit length."""
        on = np.unpackbits(self.bits, axis=1, count=len(self.mean)).astype(np.float32)
        rows = rotated(self.scales[:, None] * (2 * on - 1), back=True) + self.mean
        return TokenVectors(rows, self.offsets)


def similarities(question: Floats, passages: Sequence[StoredTokens]) -> list[Floats]:
    """`StoredTokens.similarities` of several passages in one product: the question is turned once."""
    if not passages:
        return []
    turned = rotated(question)
    bits = np.concatenate([p.bits for p in passages])
    on = np.unpackbits(bits, axis=1, count=question.shape[1]).astype(np.float32)
    signs = 2 * (turned @ on.T) - turned.sum(axis=1, keepdims=True)
    middle = question @ np.stack([p.mean for p in passages]).T
    found: list[Floats] = []
    at = 0
    for number, passage in enumerate(passages):
        own = signs[:, at : at + len(passage)] * passage.scales
        found.append(middle[:, number, None] + own)
        at += len(passage)
    return found


def pack_tokens(text: str, tokens: TokenVectors) -> bytes:
    """Compress the token vectors of a text to at most `MAX_BYTES`.

    Args:
        text: what `tokens.offsets` count characters of.
        tokens: [t, d] unit rows; t may be 0.
    """
    said = worded(text, tokens)
    vectors, offsets = said.vectors, said.offsets
    dimension = vectors.shape[1] if vectors.ndim == 2 else 0
    room = (MAX_BYTES - _HEADER.size - 2 * dimension) // (5 + dimension // 8)
    vectors, offsets = _merged(vectors, offsets, room)
    mean = vectors.mean(axis=0).astype("<f2") if len(vectors) else np.zeros(dimension, "<f2")
    residual = rotated(vectors - mean.astype(np.float32)) if len(vectors) else vectors
    # The scale that keeps the product of a residual with itself: unbiased for directions near it.
    size = np.abs(residual).sum(axis=1)
    scales = np.divide((residual**2).sum(axis=1), size, out=np.zeros_like(size), where=size > 0)
    starts = np.minimum(offsets[:, 0], 0xFFFF).astype("<u2")
    lengths = np.clip(offsets[:, 1] - offsets[:, 0], 0, 0xFF).astype(np.uint8)
    return b"".join(
        (
            _HEADER.pack(_VERSION, 0, dimension, len(vectors)),
            mean.tobytes(),
            scales.astype("<f2").tobytes(),
            starts.tobytes(),
            lengths.tobytes(),
            np.packbits(residual > 0, axis=1).tobytes(),
        )
    )


def unpack_tokens(packed: bytes) -> StoredTokens:
    """Read what `pack_tokens` wrote.

    Raises:
        ValueError: it is of another version or cut short.
    """
    if len(packed) < _HEADER.size:
        raise ValueError("stored token vectors are cut short")
    version, _, dimension, count = _HEADER.unpack_from(packed)
    width = (dimension + 7) // 8
    if version != _VERSION or len(packed) != _HEADER.size + 2 * dimension + count * (5 + width):
        raise ValueError(f"stored token vectors of version {version}, {len(packed)} bytes, cannot be read")
    at = _HEADER.size
    mean = np.frombuffer(packed, "<f2", dimension, at).astype(np.float32)
    at += 2 * dimension
    scales = np.frombuffer(packed, "<f2", count, at).astype(np.float32)
    at += 2 * count
    starts = np.frombuffer(packed, "<u2", count, at).astype(np.int32)
    at += 2 * count
    ends = starts + np.frombuffer(packed, np.uint8, count, at)
    at += count
    bits = np.frombuffer(packed, np.uint8, count * width, at).reshape(count, width)
    return StoredTokens(mean, scales, np.stack([starts, ends], axis=1).astype(np.int32), bits)


def rotated(rows: Floats, *, back: bool = False) -> Floats:
    """Rows [n, d] turned by the fixed rotation of their width, or back: signs, a shuffle, Hadamard blocks."""
    signs, order, block = _rotation(rows.shape[1])
    blocks = (len(rows), rows.shape[1] // len(block), len(block))
    if back:
        turned = (rows.reshape(blocks) @ block).reshape(rows.shape)
        result = np.empty_like(turned)
        result[:, order] = turned
        return (result * signs).astype(np.float32, copy=False)
    shuffled = (rows * signs)[:, order].reshape(blocks)
    return (shuffled @ block).astype(np.float32, copy=False).reshape(rows.shape)


@lru_cache(maxsize=4)
def _rotation(dimension: int) -> tuple[Floats, npt.NDArray[np.intp], Floats]:
    """Signs [d], a shuffle [d] and a Hadamard block, the same on every machine: they come out of a hash."""
    stream = hashlib.shake_256(f"token rotation {dimension}".encode()).digest(5 * dimension)
    signs = np.where(np.frombuffer(stream, np.uint8, dimension) & 1, 1.0, -1.0).astype(np.float32)
    order = np.argsort(np.frombuffer(stream, "<u4", dimension, dimension), kind="stable")
    size = max(1, dimension & -dimension)  # the largest power of two that divides the width
    block = np.ones((1, 1), np.float32)
    while len(block) < size:
        block = np.block([[block, block], [block, -block]])
    return signs, order, (block / np.sqrt(len(block))).astype(np.float32)


def worded(text: str, tokens: TokenVectors) -> TokenVectors:
    """The tokens with a letter or a digit, of a passage or a question; all of them when none has one."""
    kept = [i for i, (start, end) in enumerate(tokens.offsets) if not _WORDLESS.fullmatch(text, start, end)]
    if not kept:
        return tokens
    return TokenVectors(tokens.vectors[kept], tokens.offsets[kept])


def _merged(
    vectors: Floats, offsets: npt.NDArray[np.int32], room: int
) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Neighbours made one, the most alike first, until there are `room` at most."""
    while len(vectors) > room:
        alike = (vectors[:-1] * vectors[1:]).sum(axis=1)
        taken = np.zeros(len(vectors), np.bool_)
        firsts: list[int] = []
        for first in np.argsort(-alike, kind="stable")[: 3 * (len(vectors) - room)]:
            if len(firsts) < len(vectors) - room and not taken[first : first + 2].any():
                taken[first : first + 2] = True
                firsts.append(int(first))
        at = np.array(sorted(firsts))
        both = vectors[at] + vectors[at + 1]
        vectors, offsets = vectors.copy(), offsets.copy()
        vectors[at] = both / np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-9)
        offsets[at, 1] = offsets[at + 1, 1]
        vectors, offsets = np.delete(vectors, at + 1, axis=0), np.delete(offsets, at + 1, axis=0)
    return vectors, offsets
