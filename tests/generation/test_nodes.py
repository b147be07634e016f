"""The printed lines of a plan over two nodes, run as they are: two servers' processes on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from generation.plan import make_plan
from generation.plan_commands import Command, serve_commands
from generation.plan_machine import Machine, NumaNode
from generation.plan_pack import pack_facts
from generation.plan_wish import Wish
from tests.generation.tiny_generator import greedy, make_tiny_generator

pytestmark = [pytest.mark.engine, pytest.mark.soak, pytest.mark.timeout(900)]

GIB = 1 << 30
PROMPT = "w1 w2 w3 w4"
TOKENS = 12
NODE = Machine("cpu", cores=1, memory_bytes=4 * GIB, nodes=2, numa=(NumaNode((0,), 4 * GIB),))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if (
        len(os.sched_getaffinity(0)) < 2
        or shutil.which("vllm", path=str(Path(sys.executable).parent)) is None
    ):
        pytest.skip("two nodes here need two cores and the vllm command")
    return make_tiny_generator(tmp_path_factory.mktemp("nodes") / "tiny")


@pytest.fixture(scope="module")
def commands(pack: Path) -> tuple[Command, ...]:
    wish = Wish(
        pipeline_parallel=2, tensor_parallel=1, kv_cache_bytes=64 << 20, max_model_len=768, dtype="float32"
    )
    planned = make_plan(pack_facts(pack, name="tiny"), NODE, wish)
    assert planned.layout is not None
    assert planned.layout.nodes == 2
    return serve_commands(planned, NODE, model=str(pack), first="127.0.0.1")


@pytest.fixture(scope="module")
def door(commands: tuple[Command, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start both nodes; the address of the one that serves."""
    logs, nodes = tmp_path_factory.mktemp("logs"), list[subprocess.Popen[bytes]]()
    port, master = _free_port(), _free_port()
    for command in commands:
        words = [str(port) if w == "8001" else str(master) if w == "29501" else w for w in command.words]
        words[0] = str(Path(sys.executable).parent / words[0])
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("VLLM_", "GEO_"))}
        own = {**command.environment, "VLLM_CPU_OMP_THREADS_BIND": str(command.node), "HF_HUB_OFFLINE": "1"}
        with (logs / f"node{command.node}").open("wb") as log:
            nodes.append(subprocess.Popen(words, stdout=log, stderr=log, env={**clean, **own}))
    try:
        until = time.monotonic() + 700
        while time.monotonic() < until:
            ended = [n.returncode for n in nodes if n.poll() is not None]
            assert not ended, "\n".join(p.read_text()[-3000:] for p in sorted(logs.iterdir()))
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(1)
        yield f"http://127.0.0.1:{port}"
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            try:
                node.wait(30)
            except subprocess.TimeoutExpired:
                node.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_pipeline_over_two_nodes_writes_what_one_model_writes(door: str, pack: Path) -> None:
    asked = {"model": "tiny", "prompt": PROMPT, "max_tokens": TOKENS, "min_tokens": TOKENS, "temperature": 0,
             "add_special_tokens": False}  # fmt: skip
    told = httpx.post(f"{door}/v1/completions", json=asked, timeout=120)
    assert told.status_code == 200, told.text
    assert told.json()["choices"][0]["text"].strip() == greedy(pack, [PROMPT], TOKENS)[0]


def test_the_planned_context_is_what_the_first_node_serves(door: str, commands: tuple[Command, ...]) -> None:
    card = httpx.get(f"{door}/v1/models", timeout=30).json()["data"][0]
    words = commands[0].words
    assert card["max_model_len"] == int(words[words.index("--max-model-len") + 1])
