"""Texts → unit vectors, for passages, questions and tokens.

On a CPU a pack's exported network runs on OpenVINO (`encode_openvino.py`); on a GPU, and for a pack without
an export, the pack runs on torch (`encode_torch.py`). Either computes in bfloat16 where the machine has the
instructions, else in float32.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError, TransientError
from core.memory import return_freed_memory
from core.metrics import ENCODE_REJECTED, ENCODE_TEXTS, ENCODE_TRUNCATED
from core.packs import pack_path
from core.settings import get_settings

log = logging.getLogger(__name__)

Kind = Literal["query", "passage"]
Vectors = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]
_T = TypeVar("_T")

_BATCH_TEXTS = 32
_MIN_NORM = 1e-6
_IDLE_S = 60.0  # queries that began on the old encoder have ended by then


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Late-interaction form of one text, without special tokens and prompt.

    Attributes:
        vectors: [t, d] float32 unit rows.
        offsets: [t, 2] int32, half-open character range of each token in the text.
    """

    vectors: Vectors
    offsets: npt.NDArray[np.int32]


class Network(Protocol):
    """What turns token ids into vectors, and what it needs to get them."""

    dimension: int
    window: int
    batch_tokens: int
    pad_id: int
    prompts: dict[str, str]
    tokenizer: Any

    def pooled(self, ids: Int64, mask: Int64) -> Vectors:
        """[n, d] of texts; ids and mask [n, t], padded on the right."""
        ...

    def tokens(self, ids: Int64, mask: Int64) -> Vectors:
        """[n, t, d] of tokens."""
        ...

    def both(self, ids: Int64, mask: Int64) -> tuple[Vectors, Vectors]:
        """`pooled` and `tokens` of one pass."""
        ...


class Encoder:
    """An encoder pack in this process. Safe to share between threads.

    Args:
        folder: the pack.
        dtype: `bfloat16`, `float32` or empty for the faster one on this machine.
    """

    def __init__(self, folder: Path, dtype: str = "") -> None:
        self.network = _network(folder, dtype)
        # Fast tokenizers change state, and two passes at once would only share the cores.
        self._lock = threading.Lock()
        self.dimension = self.network.dimension
        self.window = self.network.window
        prompts = self.network.prompts
        self._prompts: dict[Kind, str] = {
            "query": prompts.get("query", ""),
            "passage": prompts.get("passage", prompts.get("document", "")),
        }

    def encode_passages(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Encode passages.

        Args:
            texts: in any order; they are batched by length.
            progress: called as `progress(done, total)` after each batch.

        Returns:
            [n, d] float32 unit rows in the order of `texts`. A text whose vector is not finite or has no
            length gets a row of NaN and is counted; the others are not affected.
        """
        return self._encode(texts, "passage", progress)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode questions: [n, d] float32 unit rows.

        Raises:
            TransientError: a vector is not finite or has no length; searching with it would find nothing.
        """
        vectors = self._encode(texts, "query", None)
        if not np.isfinite(vectors).all():
            raise TransientError("The encoder gave no usable vector for the question; try again.")
        return vectors

    def encode_query(self, text: str) -> Vectors:
        """Encode one question: [d] float32, unit length. Raises like `encode_queries`."""
        return self.encode_queries([text])[0]

    def encode_tokens(self, texts: Sequence[str], kind: Kind) -> list[Vectors]:
        """Contextual token vectors for MaxSim.

        Returns:
            Per text [t, d] float32 unit rows, without special and prompt tokens.
        """
        return [entry.vectors for entry in self.encode_tokens_at(texts, kind)]

    def encode_tokens_at(self, texts: Sequence[str], kind: Kind) -> list[TokenVectors]:
        """Like `encode_tokens`, with each token's place in its text."""
        result: list[TokenVectors | None] = [None] * len(texts)
        for rows, encodings in self._batches(texts, kind):
            states = self._forward(self.network.tokens, encodings)
            for row, encoding, state in zip(rows, encodings, states, strict=True):
                result[row] = self._own_tokens(encoding, state, kind)
        return [entry for entry in result if entry is not None]

    def encode_both(
        self, texts: Sequence[str], kind: Kind, keep: Callable[[int, TokenVectors], None]
    ) -> Vectors:
        """Vectors of the texts and, from the same pass, of their tokens.

        Args:
            texts: in any order.
            kind: whose prompt they get.
            keep: called once a text as `keep(row, tokens)`, batch by batch, so that the token vectors of all
                texts are never held together.

        Returns:
            Like `encode_passages`.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for rows, encodings in self._batches(texts, kind):
            pooled, states = self._forward(self.network.both, encodings)
            vectors[rows], rejected = _unit_rows(pooled)
            if rejected:
                ENCODE_REJECTED.labels(kind).inc(rejected)
                log.warning("encoder_rejected_vectors", extra={"kind": kind, "count": rejected})
            for row, encoding, state in zip(rows, encodings, states, strict=True):
                keep(row, self._own_tokens(encoding, state, kind))
        return vectors

    def _own_tokens(self, encoding: Any, state: Vectors, kind: Kind) -> TokenVectors:
        """The tokens of the text itself, without padding, prompt and special tokens."""
        offsets = np.asarray(encoding.offsets, np.int32) - len(self._prompts[kind])
        keep = (np.asarray(encoding.special_tokens_mask) == 0) & (offsets[:, 1] > 0)
        vectors, _ = _unit_rows(state[: len(keep)][keep])
        return TokenVectors(np.nan_to_num(vectors), np.maximum(offsets[keep], 0))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens and prompt not counted."""
        with self._lock:
            self.network.tokenizer.no_truncation()
            self.network.tokenizer.no_padding()
            encoded = self.network.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [len(e.ids) for e in encoded]

    def _encode(self, texts: Sequence[str], kind: Kind, progress: Progress | None) -> Vectors:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        done = 0
        for rows, encodings in self._batches(texts, kind):
            pooled = self._forward(self.network.pooled, encodings)
            vectors[rows], rejected = _unit_rows(pooled)
            if rejected:
                ENCODE_REJECTED.labels(kind).inc(rejected)
                log.warning("encoder_rejected_vectors", extra={"kind": kind, "count": rejected})
            done += len(rows)
            if progress is not None:
                progress(done, len(texts))
        return vectors

    def _batches(self, texts: Sequence[str], kind: Kind) -> Iterator[tuple[list[int], list[Any]]]:
        """Tokenize, sort by length and cut batches by padded size: (rows in `texts`, their encodings)."""
        if not texts:
            return
        prompt = self._prompts[kind]
        with self._lock:
            tokenizer = self.network.tokenizer
            tokenizer.enable_truncation(self.window)
            tokenizer.no_padding()
            encodings = tokenizer.encode_batch([prompt + text for text in texts])
        ENCODE_TEXTS.labels(kind).inc(len(texts))
        ENCODE_TRUNCATED.labels(kind).inc(sum(1 for e in encodings if e.overflowing))
        order = sorted(range(len(texts)), key=lambda row: len(encodings[row].ids), reverse=True)
        batch: list[int] = []
        for row in order:
            widest = len(encodings[batch[0]].ids) if batch else 0
            if batch and (
                len(batch) == _BATCH_TEXTS or widest * (len(batch) + 1) > self.network.batch_tokens
            ):
                yield batch, [encodings[r] for r in batch]
                batch = []
            batch.append(row)
        yield batch, [encodings[r] for r in batch]

    def _forward(self, run: Callable[[Int64, Int64], _T], encodings: Sequence[Any]) -> _T:
        width = len(encodings[0].ids)  # the batch is sorted, longest first
        ids = np.full((len(encodings), width), self.network.pad_id, np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        with self._lock:
            return run(ids, mask)


def _unit_rows(rows: npt.NDArray[np.float32]) -> tuple[Vectors, int]:
    """Scale rows to unit length; rows without a direction become NaN. Returns the rows and how many did."""
    rows = rows.astype(np.float32, copy=False)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = ~np.isfinite(norms[:, 0]) | (norms[:, 0] < _MIN_NORM)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = rows / norms
    unit[bad] = np.nan
    return unit, int(bad.sum())


def _network(folder: Path, dtype: str) -> Network:
    if not has_gpu():
        from ingest.encode_openvino import OpenVinoNetwork, available, exported

        if available() and exported(folder):
            return OpenVinoNetwork(folder, dtype or fast_dtype())
    from ingest.encode_torch import TorchNetwork

    return TorchNetwork(folder, dtype or fast_dtype())


def has_gpu() -> bool:
    """Asks torch only where a driver is loaded: importing it costs 0.3 GB."""
    if not Path("/proc/driver/nvidia/version").exists():
        return False
    import torch

    return torch.cuda.is_available()


def fast_dtype() -> str:
    """`bfloat16` where matrix products in it are native, else `float32`."""
    if has_gpu():
        import torch

        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "float32"
    return "bfloat16" if "avx512_bf16" in flags or "amx_bf16" in flags else "float32"


@dataclass(slots=True)
class _Loaded:
    encoder: Encoder
    used_at: float


_loaded: dict[str, _Loaded] = {}
_load_lock = threading.Lock()


def get_encoder(pack_id: str = "") -> Encoder:
    """An encoder of this process, loaded on first use (2–5 s).

    While an index changes its encoder a process works with two. One that was not asked for in a minute is
    let go when the next is asked for, so the old one leaves by itself.

    Args:
        pack_id: which one; empty means that of the settings.

    Raises:
        ConfigError: the pack is missing or cannot be read.
    """
    pack_id = pack_id or get_settings().packs.encoder
    found = _loaded.get(pack_id)
    now = time.monotonic()
    if found is None or len(_loaded) > 1:
        with _load_lock:  # two threads would load it at once
            for idle in [p for p, one in _loaded.items() if p != pack_id and now - one.used_at > _IDLE_S]:
                del _loaded[idle]
            found = _loaded.get(pack_id) or _loaded.setdefault(pack_id, _Loaded(_load(pack_id), now))
    found.used_at = now
    return found.encoder


def release_encoders() -> None:
    """Let every encoder of this process go; the next `get_encoder` loads it again."""
    with _load_lock:
        loaded = bool(_loaded)
        _loaded.clear()
    if loaded:
        gc.collect()
        return_freed_memory()


def _load(pack_id: str) -> Encoder:
    try:
        return Encoder(pack_path(pack_id))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"encoder pack {pack_id} cannot be loaded ({error}); run: geo models fetch {pack_id}"
        ) from error


def encoder_name() -> str:
    """Identity under which vectors are stored: the pack's id."""
    return get_settings().packs.encoder


def encode_passages(texts: Sequence[str], progress: Progress | None = None, model: str = "") -> Vectors:
    """`Encoder.encode_passages` of an encoder, that of the settings unless another is named."""
    return get_encoder(model).encode_passages(texts, progress)


def encode_queries(texts: Sequence[str]) -> Vectors:
    """`Encoder.encode_queries` of the process's encoder."""
    return get_encoder().encode_queries(texts)


def encode_query(text: str) -> Vectors:
    """`Encoder.encode_query` of the process's encoder."""
    return get_encoder().encode_query(text)


def encode_tokens(texts: Sequence[str], kind: Kind) -> list[Vectors]:
    """`Encoder.encode_tokens` of the process's encoder."""
    return get_encoder().encode_tokens(texts, kind)
