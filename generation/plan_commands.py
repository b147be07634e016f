"""The plan as commands: what starts the same engine by hand, on one node or several. Pure.

Flags as `vllm serve --help=all` of 0.32 has them; a test gives every line to its argument parser.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generation.engine_args import engine_arguments, engine_environment
from generation.plan_machine import Machine
from generation.plan_wish import Planned

_MASTER_PORT = 29501
_RAY_PORT = 6379
_FIRST_PORT = 8001
# The worker's own: offline, quiet, and usage not reported are choices of whoever starts a server by hand.
_ONLY_IN_WORKER = (
    "VLLM_LOGGING_LEVEL",
    "VLLM_LOGGING_STREAM",
    "VLLM_ENGINE_READY_TIMEOUT_S",
    "HF_HUB_OFFLINE",
)


@dataclass(frozen=True, slots=True)
class Command:
    """One process to start.

    Attributes:
        node: counted from 0; `NODE0` in a line stands for the first one's address.
        role: `serve`, `join` (a node without a door of its own) or `ray`.
    """

    node: int
    role: str
    environment: Mapping[str, str]
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        """As a shell takes it."""
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*settings, *map(_quoted, self.words)])


def serve_commands(
    planned: Planned, machine: Machine, *, model: str, first: str = "NODE0", ray: bool = False
) -> tuple[Command, ...]:
    """What starts the engine, or all its replicas.

    Args:
        planned: the plan.
        machine: of the plan.
        model: id or folder, the same on every node.
        first: address of the first node.
        ray: give the ranks to a Ray cluster instead of the engine's own multi-node start.
    """
    assert planned.layout is not None, "a remote server has no commands"
    arguments = engine_arguments(planned, Path(), device=machine.device)
    words = ("vllm", "serve", model, *engine_flags(arguments))
    environment = {
        name: value
        for name, value in engine_environment(planned, machine.core_ids, device=machine.device).items()
        if name not in _ONLY_IN_WORKER
    }
    if planned.layout.nodes == 1:
        return tuple(_replica(planned, machine, environment, words, i) for i in range(planned.replicas))
    if ray:
        return _with_ray(planned, environment, words, first)
    return _native(planned, environment, words, first)


def _native(
    planned: Planned, environment: Mapping[str, str], words: tuple[str, ...], first: str
) -> tuple[Command, ...]:
    """The engine's own multi-node start: the first node serves, the others run without a door."""
    assert planned.layout is not None
    nodes = planned.layout.nodes
    commands: list[Command] = []
    for node in range(nodes):
        place = ("--nnodes", str(nodes), "--node-rank", str(node), "--master-addr", first,
                 "--master-port", str(_MASTER_PORT), "--distributed-executor-backend", "mp")  # fmt: skip
        door = ("--port", str(_FIRST_PORT)) if node == 0 else ("--headless",)
        role = "serve" if node == 0 else "join"
        commands.append(Command(node, role, environment, (*words, *place, *door)))
    return tuple(commands)


def _with_ray(
    planned: Planned, environment: Mapping[str, str], words: tuple[str, ...], first: str
) -> tuple[Command, ...]:
    assert planned.layout is not None
    head = Command(0, "ray", {}, ("ray", "start", "--head", f"--port={_RAY_PORT}"))
    others = tuple(
        Command(node, "ray", {}, ("ray", "start", f"--address={first}:{_RAY_PORT}", "--block"))
        for node in range(1, planned.layout.nodes)
    )
    serve = (*words, "--distributed-executor-backend", "ray", "--port", str(_FIRST_PORT))
    return (head, *others, Command(0, "serve", environment, serve))


def _replica(
    planned: Planned, machine: Machine, environment: Mapping[str, str], words: tuple[str, ...], number: int
) -> Command:
    """One of several engines of the same kind; `engine.url` lists them all."""
    assert planned.layout is not None
    ranks = planned.layout.ranks
    per_node = 1 if machine.on_cpu else max(1, machine.devices // ranks)
    node, place = divmod(number, per_node)
    own = dict(environment)
    if not machine.on_cpu and per_node > 1:
        own["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(place * ranks, (place + 1) * ranks)))
    return Command(node, "serve", own, (*words, "--port", str(_FIRST_PORT + place)))


def engine_flags(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What `engine_arguments` gives as flags of `vllm serve`, without the model, which stands before them."""
    flags: list[str] = []
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        if name in ("model", "disable_log_stats") or (name == "enforce_eager" and not value):
            continue
        if isinstance(value, bool):
            flags.append(flag if value else flag.replace("--", "--no-", 1))
        elif isinstance(value, list):
            flags += [flag, *map(str, value)]
        else:
            flags += [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
    return tuple(flags)


def _quoted(word: str) -> str:
    return word if word.startswith("NODE") else shlex.quote(word)
