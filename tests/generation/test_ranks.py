"""The engine over two ranks on the CPU: the same weights write the same words, however they are cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.generation.tiny_generator import greedy, make_tiny_generator

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
PROMPTS = ["w1 w2 w3 w4", "w7 " * 80]
TOKENS = 12


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_generator(tmp_path_factory.mktemp("ranks") / "tiny")


def written(pack: Path, tp: int, pp: int) -> dict[str, Any]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("VLLM_", "GEO_"))}
    words = [str(pack), str(tp), str(pp), str(TOKENS), *PROMPTS]
    done = subprocess.run(
        [sys.executable, "-m", "tests.generation.two_ranks", *words],
        capture_output=True, text=True, timeout=500, cwd=ROOT, env={**clean, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_two_tensor_parallel_ranks_write_what_one_model_writes(pack: Path) -> None:
    two = written(pack, 2, 1)
    assert two["texts"] == greedy(pack, PROMPTS, TOKENS)
    assert two["eager"] is True
    assert two["processes"] >= 3  # the core and a process per rank


@pytest.mark.soak
def test_two_pipeline_stages_write_what_one_model_writes(pack: Path) -> None:
    two = written(pack, 1, 2)  # three layers: two stages of unequal depth
    assert two["texts"] == greedy(pack, PROMPTS, TOKENS)
    assert two["eager"] is False
