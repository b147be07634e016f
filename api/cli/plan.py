"""`geo plan`: what the generation engine would run with here, or why it cannot."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from api.cli.output import Json, emit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan_command)


def plan_command(
    model: Annotated[str, typer.Option(help="A pack id or a folder; default: the configured one.")] = "",
    tensor_parallel: Annotated[int | None, typer.Option("--tp", min=1)] = None,
    pipeline_parallel: Annotated[int | None, typer.Option("--pp", min=1)] = None,
    max_model_len: Annotated[int | None, typer.Option(min=128)] = None,
    json: Json = False,
) -> None:
    """Work out heads, KV blocks, context and batch for a model on this machine; starts nothing."""
    from core.packs import pack_path
    from core.settings import get_settings
    from generation.plan import memory_shares
    from generation.plan_pack import plan_for, this_machine

    settings = get_settings()
    name = model or settings.packs.generator
    wishes = {
        "tensor_parallel": tensor_parallel,
        "pipeline_parallel": pipeline_parallel,
        "max_model_len": max_model_len,
    }
    wished = settings.generation.model_copy(update={k: v for k, v in wishes.items() if v is not None})
    machine = this_machine()
    planned = plan_for(pack_path(name), wished, machine, name=name)
    figures: dict[str, Any] = {
        **asdict(planned.plan),
        "kv_bytes_per_token": planned.kv_bytes_per_token,
        "max_num_seqs": planned.max_num_seqs,
        "weight_bytes": planned.weight_bytes,
        "memory": memory_shares(planned, machine, wished.kv_cache_bytes),
        "notes": list(planned.notes),
        "machine": asdict(machine),
    }
    if json:
        emit(figures)
        return
    for key, value in figures.items():
        print(f"{key:20} {value}")
