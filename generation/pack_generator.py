"""Build the default generator pack: a GGUF file in, a safetensors folder with its tokenizer out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.errors import ConfigError

_GGUF_MAGIC = b"GGUF"


def build_generator_pack(weights: Path, folder: Path) -> None:
    """Dequantize a GGUF checkpoint to bfloat16 and save it as vLLM and transformers read it.

    The chat template comes along. Costs about 20 s and 1 GB of memory for 135 M parameters.

    Raises:
        ConfigError: the file is no GGUF file.
    """
    with weights.open("rb") as stream:
        if (magic := stream.read(4)) != _GGUF_MAGIC:
            raise ConfigError(f"{weights.name} is no GGUF file: it begins with {magic!r}")

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()

    source, name = str(weights.parent), weights.name
    model: Any = AutoModelForCausalLM.from_pretrained(source, gguf_file=name, dtype=torch.bfloat16)
    # The weights are plain bfloat16 now; a leftover note that they are quantized would make every
    # loader look for quantized tensors.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.save_pretrained(str(folder))
    tokenizer: Any = AutoTokenizer.from_pretrained(source, gguf_file=name)
    if not tokenizer.chat_template:
        raise ConfigError(f"{weights.name} carries no chat template, so it cannot answer as a chat model")
    tokenizer.save_pretrained(str(folder))
