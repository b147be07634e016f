"""`geo plan`: what the generation engine would run with, here or on a described machine, or why it cannot."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.output import Json, emit, note
from core.errors import ConfigError

if TYPE_CHECKING:
    from generation.plan_commands import Command
    from generation.plan_machine import Machine
    from generation.plan_wish import Planned

_APART = frozenset({"refused", "rank", "bounds", "memory", "branches", "notes", "machine", "commands"})
_REFUSED = 2  # as for other settings that cannot work


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan_command)


def plan_command(
    model: Annotated[str, typer.Option(help="Pack id, or a folder with a config.json.")] = "",
    machine_file: Annotated[
        Path | None,
        typer.Option(
            "--machine",
            exists=True,
            dir_okay=False,
            readable=True,
            help="JSON of another machine; see docs/engine.md.",
        ),
    ] = None,
    nodes: Annotated[int, typer.Option(min=0, help="Machines of this kind; 0: as described.")] = 0,
    profile: Annotated[str, typer.Option(help="auto, edge, realtime, batch or cloud.")] = "",
    tensor_parallel: Annotated[
        int | None, typer.Option("--tp", min=0, help="Tensor parallel ranks; 0: chosen.")
    ] = None,
    pipeline_parallel: Annotated[
        int | None, typer.Option("--pp", min=0, help="Pipeline stages; 0: chosen.")
    ] = None,
    max_model_len: Annotated[int | None, typer.Option(min=0, help="Tokens of prompt and answer.")] = None,
    kv_cache_bytes: Annotated[int | None, typer.Option(min=0, help="KV blocks of all ranks.")] = None,
    ray: Annotated[bool, typer.Option("--ray", help="Command lines for a Ray cluster.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Name each branch taken and why.")] = False,
    json: Json = False,
) -> None:
    """Work out ranks, KV blocks, context and batch, their roofs and command lines; starts nothing."""
    from core.packs import pack_languages
    from core.settings import get_settings
    from generation.plan import make_plan
    from generation.plan_commands import serve_commands
    from generation.plan_pack import pack_facts, wish_of
    from generation.plan_wish import PlanRefused, Profile

    settings = get_settings()
    name = model or settings.packs.generator
    machine = _machine(machine_file, nodes)
    asked = {"tensor_parallel": tensor_parallel, "pipeline_parallel": pipeline_parallel,
             "max_model_len": max_model_len, "kv_cache_bytes": kv_cache_bytes}  # fmt: skip
    wish = replace(wish_of(settings.generation), **{k: v for k, v in asked.items() if v is not None})
    if profile:
        if profile not in list(Profile):
            raise ConfigError(f"--profile {profile} is none of {', '.join(Profile)}.")
        wish = replace(wish, profile=Profile(profile))
    folder = _folder(name)
    try:
        planned = make_plan(
            pack_facts(folder, name=name),
            machine,
            wish,
            tokenizer=str(folder),
            languages=pack_languages(name),
        )
    except PlanRefused as refused:
        _refuse(refused, json=json)
        raise typer.Exit(_REFUSED) from None
    commands = serve_commands(planned, machine, model=name, ray=ray)
    figures = _figures(planned, machine, commands)
    if json:
        emit(figures)
        return
    _show(figures, planned, explain=explain)


def _folder(name: str) -> Path:
    from core.packs import pack_path

    return Path(name) if (Path(name) / "config.json").is_file() else pack_path(name)


def _machine(path: Path | None, nodes: int) -> Machine:
    from generation.plan_machine import machine_from
    from generation.plan_probe import measured, this_machine

    if path is None:
        machine = measured(this_machine())
    else:
        try:
            described: Any = json_module.loads(path.read_text())
        except ValueError as error:
            raise ConfigError(f"{path} is no JSON: {error}.") from error
        if not isinstance(described, dict):
            raise ConfigError(f"{path} holds no JSON object; docs/engine.md shows one.")
        machine = machine_from(described)
    return replace(machine, nodes=nodes) if nodes else machine


def _refuse(refused: Any, *, json: bool) -> None:
    if json:
        alternatives = [{"change": dict(a.change), "text": a.text} for a in refused.alternatives]
        emit({"refused": True, "reasons": list(refused.reasons), "hint": refused.hint,
              "alternatives": alternatives})  # fmt: skip
        return
    for reason in refused.reasons:
        note(f"refused: {reason}")
    if refused.hint:
        note(refused.hint)
    for alternative in refused.alternatives:
        note(f"runs: {alternative.text}")


def _figures(planned: Planned, machine: Machine, commands: tuple[Command, ...]) -> dict[str, Any]:
    from generation.plan_machine import as_described
    from generation.plan_ram import memory_shares

    return {
        "refused": False,
        **asdict(planned.plan),
        "profile": planned.profile.value,
        "kv_bytes_per_token": planned.kv_bytes_per_token,
        "max_num_seqs": planned.max_num_seqs,
        "max_num_batched_tokens": planned.max_num_batched_tokens,
        "enforce_eager": planned.enforce_eager,
        "prefix_caching": planned.prefix_caching,
        "dtype": planned.dtype,
        "quantization": planned.quantization,
        "weight_bytes": planned.weight_bytes,
        "layers_by_stage": list(planned.layout.split) if planned.layout else [],
        "replicas": planned.replicas,
        "rank": asdict(planned.rank) if planned.rank else {},
        "bounds": asdict(planned.bounds) if planned.bounds else {},
        "memory": memory_shares(planned, machine),
        "branches": [asdict(branch) for branch in planned.branches],
        "notes": list(planned.notes),
        "machine": as_described(machine),
        "commands": [{"node": c.node, "role": c.role, "line": c.line} for c in commands],
    }


def _show(figures: dict[str, Any], planned: Planned, *, explain: bool) -> None:
    shown = {key: value for key, value in figures.items() if key not in _APART}
    for key in ("languages", "layers_by_stage"):
        shown[key] = ", ".join(map(str, shown[key]))
    for key, value in shown.items():
        if value not in ("", 0, None):
            print(f"{key:24} {_human(key, value)}")
    for title in ("rank", "memory", "bounds"):
        for key, value in figures[title].items():
            print(f"{title + ' ' + key:24} {_human(key if title == 'bounds' else 'bytes', value)}")
    for text in planned.notes:
        print(f"note: {text}")
    for branch in planned.branches if explain else ():
        print(f"{branch.question} {branch.answer}: {branch.follows}")
    print()
    for command in figures["commands"]:
        print(f"node {command['node']} {command['role']}: {command['line']}")


def _human(key: str, value: Any) -> str:
    if value is None:
        return "not known for this device"
    if "bytes" in key and "per_token" not in key:
        return f"{value / (1 << 20):,.0f} MiB"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return str(value)
