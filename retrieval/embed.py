"""Vectors for passages that have none yet, stored batch by batch so that an interrupted run goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from core.db import Database
from core.errors import PermanentError
from ingest.clean import visible
from ingest.split import encoder_text
from retrieval import index_repository as repository

BATCH = 64  # passages per commit: 1–2 s of encoding on two cores
_STORED = 500  # copied vectors per commit
Encode = Callable[[Sequence[str]], "np.typing.NDArray[np.float32]"]
Progress = Callable[[int, int], None]


def embed_missing(
    db: Database, ids: Sequence[int], model: str, encode: Encode, progress: Progress | None = None
) -> list[int]:
    """Encode those of these passages that have no vector of `model` and store the vectors.

    Args:
        db: each batch is one transaction.
        ids: passages of one document version, or any batch.
        model: identity of the encoder.
        encode: texts → [n, d] float32 unit rows; a row of NaN means that this text failed.
        progress: called as `progress(done, total)` over all of `ids`; it may renew a lease.

    Returns:
        Passages for which the encoder gave no usable vector. They stay findable by their words.

    Raises:
        PermanentError: it gave none for any of many texts: the encoder is broken, not the text.
    """
    with db.read() as session:
        missing = repository.passages_without_vector(session, ids, model)
    failed = [p.id for p in missing if not visible(p.text)]  # a blank has no direction
    missing = [p for p in missing if visible(p.text)]
    done = len(ids) - len(missing)
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        vectors = encode([encoder_text(p.heading_path, p.text) for p in batch])
        usable: list[bool] = [bool(np.isfinite(row).all()) for row in vectors]
        stored = [(p.id, to_bytes(v)) for p, v, ok in zip(batch, vectors, usable, strict=True) if ok]
        failed.extend(p.id for p, ok in zip(batch, usable, strict=True) if not ok)
        with db.write() as session:
            repository.store_vectors(session, model, stored)
        done += len(batch)
        if progress is not None:
            progress(done, len(ids))
    if len(failed) == len(ids) >= BATCH:
        raise PermanentError(f"The encoder {model} gave no usable vector for any of {len(ids)} passages.")
    return failed


def reuse_vectors(db: Database, document_id: str, ids: Sequence[int], model: str) -> int:
    """Give passages of a new version the vectors of those of other versions that read the same.

    Args:
        db: one reading and one writing transaction.
        document_id: their document.
        ids: passages of the new version.
        model: identity of the encoder.

    Returns:
        How many need no encoding any more.
    """
    with db.read() as session:
        known = repository.vectors_by_text(session, document_id, ids, model)
        if not known:
            return 0
        missing = repository.passages_without_vector(session, ids, model)
    same = [(p.id, known[text]) for p in missing if (text := encoder_text(p.heading_path, p.text)) in known]
    for start in range(0, len(same), _STORED):
        with db.write() as session:
            repository.store_vectors(session, model, same[start : start + _STORED])
    return len(same)


def to_bytes(vector: np.typing.NDArray[np.float32]) -> bytes:
    """A unit vector as it is stored: fp16 little endian."""
    return vector.astype("<f2").tobytes()
