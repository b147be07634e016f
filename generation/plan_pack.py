"""The plan of a model in a folder under the settings. Reads two files, starts nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from core.errors import ConfigError
from core.packs import pack_languages
from core.settings import GenerationSettings
from generation.plan import make_plan
from generation.plan_machine import Machine
from generation.plan_model import ModelFacts, model_facts
from generation.plan_probe import this_machine as this_machine
from generation.plan_wish import Planned, Profile, Wish


def plan_for(pack: Path, settings: GenerationSettings, machine: Machine, *, name: str) -> Planned:
    """The plan of the model in folder `pack` under these settings.

    Raises:
        ConfigError: no model there, or (as `PlanRefused`) it cannot run as wished.
    """
    return make_plan(
        pack_facts(pack, name=name),
        machine,
        wish_of(settings),
        tokenizer=str(pack),
        languages=pack_languages(name),
    )


def pack_facts(pack: Path, *, name: str) -> ModelFacts:
    """Facts of the model in folder `pack`; a folder with nothing but a `config.json` will do.

    Raises:
        ConfigError: no model there.
    """
    try:
        config: Any = json.loads((pack / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{pack} holds no readable model ({error}); run `geo models fetch {name}`."
        ) from error
    if not isinstance(config, dict):
        raise ConfigError(f"The config.json of {name} holds no JSON object; it is not a model's.")
    weights = sum(f.stat().st_size for f in pack.glob("*.safetensors"))
    try:
        return model_facts(cast("dict[str, Any]", config), name=name, weight_bytes=weights)
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ConfigError(
            f"The config.json of {name} has a field of another shape than models have: {error}."
        ) from error


def wish_of(settings: GenerationSettings) -> Wish:
    """What the settings ask of the plan."""
    return Wish(
        kv_cache_bytes=settings.kv_cache_bytes,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        block_size=settings.block_size,
        answer_reserve=settings.answer_reserve,
        enforce_eager=settings.enforce_eager,
        tensor_parallel=settings.tensor_parallel,
        pipeline_parallel=settings.pipeline_parallel,
        profile=Profile(settings.profile),
        target_ttft_ms=settings.target_ttft_ms,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        dtype=settings.dtype,
        kv_cache_dtype=settings.kv_cache_dtype,
        memory_share=settings.memory_share,
    )
