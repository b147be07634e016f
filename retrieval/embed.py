"""Vectors for passages that have none yet, stored batch by batch so that an interrupted run goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.db import Database
from core.errors import PermanentError
from ingest.clean import visible
from ingest.encode import Encoder, TokenVectors, get_encoder
from ingest.split import encoder_text
from retrieval import index_repository as repository
from retrieval.index_repository import PassageText
from retrieval.token_codec import pack_tokens

BATCH = 64  # passages per commit: 1–2 s of encoding on two cores
_STORED = 500  # copied vectors per commit
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the encoder made of some texts: `vectors` [n, d], and each text's packed token vectors."""

    vectors: Vectors
    tokens: Sequence[bytes]


Encode = Callable[[Sequence[str]], "Vectors | Encoded"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Usable:
    """Rows to store, by passage id; `failed` are the passages whose vector has no direction."""

    vectors: list[tuple[int, bytes]]
    tokens: list[tuple[int, bytes]]
    failed: list[int]


def encode_for_index(texts: Sequence[str], model: str = "") -> Encoded:
    """Vectors and packed token vectors of passages, from one pass of an encoder (the settings', or this)."""
    return encode_with_tokens(get_encoder(model), texts)


def encode_with_tokens(encoder: Encoder, texts: Sequence[str]) -> Encoded:
    """`encode_for_index` with this encoder."""
    tokens = [b""] * len(texts)

    def keep(row: int, own: TokenVectors) -> None:
        tokens[row] = pack_tokens(texts[row], own)

    return Encoded(encoder.encode_both(texts, "passage", keep), tokens)


def usable(passages: Sequence[PassageText], encode: Encode) -> Usable:
    """Encode passages and sort out what can be stored. An encoder may give vectors alone."""
    if not passages:
        return Usable([], [], [])
    made = encode([encoder_text(p.heading_path, p.text) for p in passages])
    encoded = made if isinstance(made, Encoded) else Encoded(made, [b""] * len(passages))
    found = Usable([], [], [])
    for passage, vector, tokens in zip(passages, encoded.vectors, encoded.tokens, strict=True):
        if not np.isfinite(vector).all():
            found.failed.append(passage.id)
            continue
        found.vectors.append((passage.id, to_bytes(vector)))
        if tokens:
            found.tokens.append((passage.id, tokens))
    return found


def embed_missing(
    db: Database, ids: Sequence[int], model: str, encode: Encode, progress: Progress | None = None
) -> list[int]:
    """Encode those of these passages that have no vector of `model` and store the vectors.

    Args:
        db: each batch is one transaction.
        ids: passages of one document version, or any batch.
        model: identity of the encoder.
        encode: texts → [n, d] float32 unit rows, and perhaps tokens; a row of NaN: this text failed.
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
        made = usable(batch, encode)
        failed.extend(made.failed)
        with db.write() as session:
            repository.store_vectors(session, model, made.vectors)
            repository.store_tokens(session, model, made.tokens)
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
        batch = same[start : start + _STORED]
        with db.write() as session:
            repository.store_vectors(session, model, [(i, vector) for i, (vector, _) in batch])
            repository.store_tokens(session, model, [(i, tokens) for i, (_, tokens) in batch if tokens])
    return len(same)


def to_bytes(vector: np.typing.NDArray[np.float32]) -> bytes:
    """A unit vector as it is stored: fp16 little endian."""
    return vector.astype("<f2").tobytes()
