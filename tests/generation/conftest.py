"""The real engine, once per session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.settings import GenerationSettings
from generation.engine import LocalEngine
from generation.plan_pack import plan_for
from generation.plan_probe import this_machine

PACK = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture(scope="session")
def engine(generator_pack: Path) -> Iterator[LocalEngine]:
    """SmolLM2 on vLLM with 256 MiB of KV cache; starting it takes half a minute."""
    settings = GenerationSettings(kv_cache_bytes=256 << 20, max_model_len=1024)
    machine = this_machine()
    planned = replace(plan_for(generator_pack, settings, machine, name=PACK), max_num_seqs=16)
    engine = LocalEngine(generator_pack, planned, device=machine.device)
    yield engine
    engine.close()
