"""The plan of a model in a folder under the settings, and the probe of this machine; starts nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import psutil

from core.errors import ConfigError
from core.packs import pack_languages
from core.settings import GenerationSettings
from generation.plan import Machine, Planned, Wish, make_plan, model_shape


def this_machine() -> Machine:
    """Facts of this machine for `generation/plan.py`; an accelerator counts when vLLM would use it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    import torch

    if torch.cuda.is_available():
        return Machine(
            "gpu", cores, int(torch.cuda.get_device_properties(0).total_memory), torch.cuda.device_count()
        )
    return Machine("cpu", cores, psutil.virtual_memory().total)


def plan_for(pack: Path, settings: GenerationSettings, machine: Machine, *, name: str) -> Planned:
    """The plan of the model in folder `pack` under these settings.

    Raises:
        ConfigError: no model there, or it cannot run as wished.
    """
    try:
        config: dict[str, Any] = json.loads((pack / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{pack} holds no readable model ({error}); run `geo models fetch {name}`."
        ) from error
    weights = sum(f.stat().st_size for f in pack.glob("*.safetensors"))
    shape = model_shape(config, name=name, weight_bytes=weights)
    wish = Wish(
        kv_cache_bytes=settings.kv_cache_bytes,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        block_size=settings.block_size,
        answer_reserve=settings.answer_reserve,
        enforce_eager=settings.enforce_eager,
        tensor_parallel=settings.tensor_parallel,
        pipeline_parallel=settings.pipeline_parallel,
    )
    return make_plan(shape, machine, wish, tokenizer=str(pack), languages=pack_languages(name))
