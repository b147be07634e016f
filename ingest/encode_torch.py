"""The one door to sentence-transformers for encoding: for GPUs, and for packs without an exported network."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.memory import return_freed_memory

Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]


class TorchNetwork:
    """A sentence-transformers pack. Not for use by two threads at once.

    Weights that lie on the disk in the type that it computes in are mapped, not copied.

    Args:
        folder: the pack.
        dtype: `bfloat16` or `float32`.
    """

    batch_tokens = 4096  # padded tokens per call: about 60 MB of activations for a 384-wide model

    def __init__(self, folder: Path, dtype: str) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        self._torch = torch
        self._model: Any = SentenceTransformer(
            str(folder),
            device="cuda" if torch.cuda.is_available() else "cpu",
            model_kwargs={"dtype": getattr(torch, dtype)},
            local_files_only=True,
        )
        self._model.eval()
        gc.collect()
        return_freed_memory()  # building the tokenizer leaves about 280 MB
        self.tokenizer: Any = self._model.tokenizer.backend_tokenizer
        self.pad_id = int(self._model.tokenizer.pad_token_id or 0)
        self.prompts: dict[str, str] = dict(self._model.prompts)
        self.window = int(self._model.max_seq_length or 512)
        self.dimension = int(self._model.get_embedding_dimension())

    def pooled(self, ids: Int64, mask: Int64) -> Float32:
        """[n, d] vectors of texts: ids and mask [n, t], padded."""
        return self._run(ids, mask)["sentence_embedding"].float().cpu().numpy()

    def tokens(self, ids: Int64, mask: Int64) -> Float32:
        """[n, t, d] vectors of tokens."""
        return self._run(ids, mask)["token_embeddings"].float().cpu().numpy()

    def both(self, ids: Int64, mask: Int64) -> tuple[Float32, Float32]:
        """`pooled` and `tokens` of one pass."""
        output = self._run(ids, mask)
        return (
            output["sentence_embedding"].float().cpu().numpy(),
            output["token_embeddings"].float().cpu().numpy(),
        )

    def _run(self, ids: Int64, mask: Int64) -> dict[str, Any]:
        torch, device = self._torch, self._model.device
        with torch.inference_mode():
            return self._model(
                {
                    "input_ids": torch.from_numpy(ids).to(device),
                    "attention_mask": torch.from_numpy(mask).to(device),
                }
            )


def plain_model(folder: Path) -> Any:
    """The pack as the library itself runs it, in float32 on the CPU: what our encoder is measured against."""
    import torch
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(
        str(folder), device="cpu", model_kwargs={"dtype": torch.float32}, local_files_only=True
    )
