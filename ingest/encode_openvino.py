"""The one door to OpenVINO: an encoder pack's network as a CPU graph, without torch in the process.

`export_network` runs once, when a pack is installed; `OpenVinoNetwork` serves it. The weights lie on the disk
in half precision and are mapped, so processes share them, and a worker that only encodes imports no torch.
Measured against torch in docs/adr/0017-the-encoder-runs-on-openvino.md.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError
from core.memory import return_freed_memory

EXPORT = (
    "openvino"  # folder inside a pack: the network, its tokenizer, and what else a text needs on its way in
)
_NETWORK, _TOKENIZER, _FACTS = "encoder.xml", "tokenizer.json", "encoder.json"
TOKENS, POOLED = "token_embeddings", "sentence_embedding"
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]


def available() -> bool:
    """Whether the library is installed (it is not loaded by this)."""
    return find_spec("openvino") is not None


def exported(folder: Path) -> bool:
    """Whether the pack in this folder has an exported network."""
    return (folder / EXPORT / _FACTS).is_file()


def export_network(folder: Path) -> None:
    """Write a pack's network beside its weights, with the tokenizer and prompts in use.

    Raises:
        ConfigError: the pack is no chain of transformer and pooling that takes ids and a mask.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(folder), device="cpu", model_kwargs={"dtype": torch.float32}, local_files_only=True
    )

    class Traced(torch.nn.Module):
        """The modules as a function of two tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model.eval()

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            output = self.model({"input_ids": input_ids, "attention_mask": attention_mask})
            return output[TOKENS], output[POOLED]

    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None or not all(getattr(module, "include_prompt", True) for module in model):
        raise ConfigError(f"the pack in {folder} needs its own library to tokenize or to pool")
    # Of two lengths: where no text is padded, the mask would be traced as a constant.
    example = model.tokenizer(["One text is longer.", "x"], padding=True, return_tensors="pt")
    ids, mask = example["input_ids"], example["attention_mask"]
    ov = openvino()
    try:
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # tracing tells of every branch; the lengths of two texts took all
            network = ov.convert_model(Traced(), example_input=(ids, mask))
    except (RuntimeError, TypeError, KeyError) as error:
        raise ConfigError(f"the network in {folder} cannot be converted: {error}") from error
    for port, name in zip((*network.inputs, *network.outputs), _PORTS, strict=True):
        port.get_tensor().set_names({name})
    place = folder / EXPORT
    place.mkdir(exist_ok=True)
    ov.save_model(network, str(place / _NETWORK), compress_to_fp16=True)
    tokenizer.save(str(place / _TOKENIZER))
    facts = {
        "window": int(model.max_seq_length or 512),
        "pad_id": int(model.tokenizer.pad_token_id or 0),
        "prompts": dict(model.prompts),
    }
    (place / _FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")


_PORTS = ("input_ids", "attention_mask", TOKENS, POOLED)


class OpenVinoNetwork:
    """A compiled network. Not for use by two threads at once.

    Attributes:
        batch_tokens: padded tokens per call; larger batches gave no more speed, and 85 MB more per doubling.

    Args:
        folder: the pack.
        dtype: `bfloat16` or `float32`: what it computes in; inputs and outputs are the same.
    """

    batch_tokens = 1024

    def __init__(self, folder: Path, dtype: str) -> None:
        from tokenizers import Tokenizer

        place = folder / EXPORT
        facts: dict[str, Any] = json.loads((place / _FACTS).read_text(encoding="utf-8"))
        self.window, self.pad_id = int(facts["window"]), int(facts["pad_id"])
        self.prompts: dict[str, str] = facts["prompts"]
        self.tokenizer: Any = Tokenizer.from_file(str(place / _TOKENIZER))
        gc.collect()
        return_freed_memory()  # building the tokenizer leaves about 280 MB
        network = compiled(place / _NETWORK, dtype)
        self.dimension = int(network.output(POOLED).get_partial_shape()[1].get_length())
        self._request: Any = network.create_infer_request()

    def pooled(self, ids: Int64, mask: Int64) -> Float32:
        """[n, d] vectors of texts: ids and mask [n, t], padded."""
        return self._run(ids, mask, POOLED)[0]

    def tokens(self, ids: Int64, mask: Int64) -> Float32:
        """[n, t, d] vectors of tokens."""
        return self._run(ids, mask, TOKENS)[0]

    def both(self, ids: Int64, mask: Int64) -> tuple[Float32, Float32]:
        """`pooled` and `tokens` of one pass."""
        pooled, tokens = self._run(ids, mask, POOLED, TOKENS)
        return pooled, tokens

    def _run(self, ids: Int64, mask: Int64, *wanted: str) -> list[Float32]:
        self._request.infer({"input_ids": ids, "attention_mask": mask}, share_inputs=True)
        # Copies: the next call overwrites.
        return [np.array(self._request.get_tensor(name).data, np.float32) for name in wanted]


def compiled(network: Path, dtype: str) -> Any:
    """A saved network for this machine's CPU, computing in `bfloat16` or `float32`.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return (
            openvino()
            .Core()
            .compile_model(
                str(network),
                "CPU",
                {
                    "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bfloat16" else "f32",
                    "INFERENCE_NUM_THREADS": _threads(),
                    "NUM_STREAMS": 1,
                    # Pinned to one core it waits for whatever else runs there: a third of the speed.
                    "ENABLE_CPU_PINNING": False,
                },
            )
        )
    except RuntimeError as error:
        raise ConfigError(f"the network {network} cannot be loaded: {error}") from error


def _threads() -> int:
    """Like the other numeric libraries: what `OMP_NUM_THREADS` says, else one per core."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdigit() and int(said) else len(os.sched_getaffinity(0))


def openvino() -> Any:
    """The library, without its telemetry: a process that holds people's documents reports to nobody."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # its import now fails, which it expects
    import openvino

    return openvino
