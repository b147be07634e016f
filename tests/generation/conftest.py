"""The real engine, once per session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from core.errors import ConfigError
from core.packs import pack_path
from core.settings import GenerationSettings
from generation.engine import LocalEngine
from generation.plan_pack import plan_for
from generation.plan_probe import this_machine

PACK = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture(scope="session")
def engine() -> Iterator[LocalEngine]:
    """SmolLM2 on vLLM with 256 MiB of KV cache; starting it takes half a minute."""
    try:
        pack = pack_path(PACK)
    except ConfigError as error:
        pytest.skip(error.detail)
    settings = GenerationSettings(kv_cache_bytes=256 << 20, max_model_len=1024)
    machine = this_machine()
    planned = replace(plan_for(pack, settings, machine, name=PACK), max_num_seqs=16)
    engine = LocalEngine(pack, planned, device=machine.device)
    yield engine
    engine.close()
