"""A cross-encoder pack: (question, passage) pairs → one score each, on OpenVINO or on torch.

`export_pairs` runs once, when a pack is installed. On a CPU the exported network computes in bfloat16 where
the machine has the instructions; the pack as it is runs on torch elsewhere.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError
from ingest.encode import fast_dtype, has_gpu
from ingest.encode_openvino import available, compiled, openvino

EXPORT = "openvino-pairs"
_NETWORK, _TOKENIZER, _FACTS = "pairs.xml", "tokenizer.json", "pairs.json"
_MAX_TOKENS = 512
Floats = npt.NDArray[np.float32]


class PairScorer:
    """A loaded cross-encoder. Safe to share between threads; one pass at a time.

    Args:
        folder: a transformers checkpoint of a sequence classifier with one label, with its tokenizer.
        dtype: `bfloat16`, `float32` or empty for the faster one on this machine.

    Raises:
        ConfigError: no readable checkpoint, or it has more labels than one.
    """

    def __init__(self, folder: Path, dtype: str = "") -> None:
        exported = not has_gpu() and available() and (folder / EXPORT / _FACTS).is_file()
        self._network = _Exported(folder, dtype or fast_dtype()) if exported else _Torch(folder)
        self._lock = threading.Lock()

    def __call__(self, question: str, texts: Sequence[str]) -> Floats:
        """Raw scores [n], higher is better; a text too long for the window is cut at its end."""
        if not texts:
            return np.empty(0, np.float32)
        with self._lock:
            scores = self._network.scores([(question, text) for text in texts])
        return np.nan_to_num(scores.astype(np.float32), nan=-1e4, posinf=1e4, neginf=-1e4)


def export_pairs(folder: Path) -> None:
    """Write a pack's network beside its weights.

    Raises:
        ConfigError: it cannot be read or converted, or has more labels than one.
    """
    import torch

    model, tokenizer = _checkpoint(folder)
    names = [name for name in tokenizer.model_input_names if name != "position_ids"]
    example = tokenizer(["one", "two three"], ["a longer text", "b"], padding=True, return_tensors="pt")

    class Traced(torch.nn.Module):
        """The classifier as a function of tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: Any) -> Any:
            return self.model(**dict(zip(names, tensors, strict=True))).logits

    ov = openvino()
    try:
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tracing tells of every branch
            network = ov.convert_model(Traced(), example_input=tuple(example[name] for name in names))
    except (RuntimeError, TypeError, KeyError) as error:
        raise ConfigError(f"the network in {folder} cannot be converted: {error}") from error
    for port, name in zip(network.inputs, names, strict=True):
        port.get_tensor().set_names({name})
    place = folder / EXPORT
    place.mkdir(exist_ok=True)
    ov.save_model(network, str(place / _NETWORK), compress_to_fp16=True)
    tokenizer.backend_tokenizer.save(str(place / _TOKENIZER))
    facts = {"inputs": names, "window": _window(tokenizer), "pad_id": int(tokenizer.pad_token_id or 0)}
    (place / _FACTS).write_text(json.dumps(facts), encoding="utf-8")


class _Exported:
    """The exported network."""

    def __init__(self, folder: Path, dtype: str) -> None:
        from tokenizers import Tokenizer

        place = folder / EXPORT
        self._facts: dict[str, Any] = json.loads((place / _FACTS).read_text(encoding="utf-8"))
        self._tokenizer: Any = Tokenizer.from_file(str(place / _TOKENIZER))
        self._tokenizer.enable_truncation(self._facts["window"], strategy="only_second")
        self._tokenizer.no_padding()
        self._request = compiled(place / _NETWORK, dtype).create_infer_request()

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        encoded = self._tokenizer.encode_batch(list(pairs))
        width = max(len(e.ids) for e in encoded)
        rows = {
            "input_ids": np.full((len(encoded), width), self._facts["pad_id"], np.int64),
            "attention_mask": np.zeros((len(encoded), width), np.int64),
            "token_type_ids": np.zeros((len(encoded), width), np.int64),
        }
        for row, e in enumerate(encoded):
            rows["input_ids"][row, : len(e.ids)] = e.ids
            rows["attention_mask"][row, : len(e.ids)] = 1
            rows["token_type_ids"][row, : len(e.ids)] = e.type_ids
        self._request.infer({name: rows[name] for name in self._facts["inputs"]}, share_inputs=True)
        return np.array(self._request.get_output_tensor(0).data, np.float32)[:, 0]


class _Torch:
    """The checkpoint as it is."""

    def __init__(self, folder: Path) -> None:
        import torch

        self._torch: Any = torch
        self._model, self._tokenizer = _checkpoint(folder)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model.to(self._device)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        questions, texts = zip(*pairs, strict=True)
        batch = self._tokenizer(
            list(questions),
            list(texts),
            truncation="only_second",
            max_length=_window(self._tokenizer),
            padding=True,
            return_tensors="pt",
        ).to(self._device)
        with self._torch.inference_mode():
            return self._model(**batch).logits[:, 0].float().cpu().numpy()


def _checkpoint(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        model: Any = AutoModelForSequenceClassification.from_pretrained(str(folder)).eval()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} holds no readable cross-encoder: {error}") from error
    if int(model.config.num_labels) != 1:
        raise ConfigError(f"The model in {folder} has {model.config.num_labels} labels; a reranker has one.")
    return model, tokenizer


def _window(tokenizer: Any) -> int:
    return min(_MAX_TOKENS, int(tokenizer.model_max_length))
