from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from api.cli import make_cli
from core.errors import ConfigError
from generation.engine_args import computes_in_core, engine_arguments, engine_environment, omp_binding
from generation.plan import make_plan
from generation.plan_check import EngineReport, drifts
from generation.plan_commands import Command, engine_flags, serve_commands
from generation.plan_machine import Machine, machine_from
from generation.plan_model import model_facts
from generation.plan_wish import Planned, Wish
from tests.generation.plan_models import GPT_OSS_20B, LLAMA_8B, LLAMA_405B, SMOLLM2

GIB = 1 << 30
NODES: dict[str, object] = {
    "gpu": "NVIDIA H100 80GB HBM3", "devices": 8, "nodes": 2, "cores": 96, "ram_gib": 2048,
}  # fmt: skip
CPU = machine_from({"device": "cpu", "cores": 4, "ram_gib": 24})


def planned(config: dict[str, object], machine: Machine, **wish: object) -> Planned:
    return make_plan(model_facts(config, name="m"), machine, Wish(**wish))  # type: ignore[arg-type]


def commands(config: dict[str, object], *, ray: bool = False) -> tuple[Command, ...]:
    machine = machine_from(NODES)
    return serve_commands(planned(config, machine), machine, model="acme/Model", first="10.0.0.1", ray=ray)


def test_two_nodes_get_a_line_each_and_only_the_first_has_a_door() -> None:
    first, second = commands(LLAMA_405B)
    assert (first.role, second.role) == ("serve", "join")
    for rank, command in enumerate((first, second)):
        assert f"--nnodes 2 --node-rank {rank} --master-addr 10.0.0.1" in command.line
        assert "--tensor-parallel-size 8 --pipeline-parallel-size 2" in command.line
    assert "--port" in first.words
    assert "--headless" in second.words


def test_a_ray_site_joins_the_nodes_first_and_serves_once() -> None:
    head, join, serve = commands(LLAMA_405B, ray=True)
    assert head.line == "ray start --head --port=6379"
    assert join.line == "ray start --address=10.0.0.1:6379 --block"
    assert "--distributed-executor-backend ray" in serve.line
    assert "--nnodes" not in serve.words


def test_replicas_share_out_the_accelerators() -> None:
    lines = commands(LLAMA_8B)
    assert len(lines) == 16
    assert {(c.node, c.environment["CUDA_VISIBLE_DEVICES"]) for c in lines} == {
        (node, str(device)) for node in (0, 1) for device in range(8)
    }
    assert len({(c.node, c.words[-1]) for c in lines}) == 16


@pytest.mark.engine
def test_the_engines_own_parser_takes_every_line() -> None:
    lines = [
        command.words[2:]
        for config, ray in ((LLAMA_405B, False), (LLAMA_405B, True), (LLAMA_8B, False))
        for command in commands(config, ray=ray)
        if command.words[0] == "vllm"
    ]
    lines += [c.words[2:] for c in serve_commands(planned(SMOLLM2, CPU), CPU, model="acme/Model")]
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm"))
    parsed = [parser.parse_args(["acme/Model", *words[1:]]) for words in lines]
    shapes = [(p.tensor_parallel_size, p.pipeline_parallel_size, p.nnodes, p.headless) for p in parsed]
    assert shapes[:3] == [(8, 2, 2, False), (8, 2, 2, True), (8, 2, 1, False)]
    assert parsed[-1].kv_cache_memory_bytes > GIB


def test_the_kv_cache_is_given_per_rank() -> None:
    one, two = (
        engine_arguments(
            planned({**SMOLLM2, "num_attention_heads": 8, "num_key_value_heads": 2}, CPU, tensor_parallel=tp,
                    kv_cache_bytes=GIB),
            Path("m"), device="cpu",
        )
        for tp in (1, 2)
    )  # fmt: skip
    assert one["kv_cache_memory_bytes"] == 2 * two["kv_cache_memory_bytes"] == pytest.approx(GIB, rel=0.01)


def test_a_gpu_measures_what_is_left_unless_a_size_is_asked_for() -> None:
    machine = machine_from(NODES)
    free = engine_arguments(planned(LLAMA_8B, machine), Path("m"), device="gpu")
    assert free["gpu_memory_utilization"] == 0.9
    assert "kv_cache_memory_bytes" not in free
    fixed = engine_arguments(planned(LLAMA_8B, machine, kv_cache_bytes=8 * GIB), Path("m"), device="gpu")
    assert fixed["kv_cache_memory_bytes"] <= 8 * GIB


def test_the_environment_binds_cores_and_divides_layers_only_where_the_engine_would_not() -> None:
    small = planned(SMOLLM2, CPU)
    assert computes_in_core(small, device="cpu")
    environment = engine_environment(small, (0, 1), device="cpu")
    assert environment["VLLM_CPU_OMP_THREADS_BIND"] == "0,1,2,3"
    assert "VLLM_PP_LAYER_PARTITION" not in environment
    assert small.layout is not None
    layout = replace(small.layout, split=(14, 16), pp=2)
    divided = replace(small, layout=layout, plan=replace(small.plan, pp=2), cores=())
    environment = engine_environment(divided, (0, 1), device="cpu")
    assert environment["VLLM_PP_LAYER_PARTITION"] == "14,16"
    assert omp_binding([(0, 1), (2,)]) == "0,1|2"


def test_an_engine_that_differs_from_its_plan_is_told_of() -> None:
    plan = planned(SMOLLM2, CPU)
    same = EngineReport(plan.engine_blocks, 32, 2048, "bfloat16", plan.host_bytes)
    assert drifts(plan, same) == ()
    assert drifts(plan, EngineReport()) == ()
    other = replace(same, kv_blocks=plan.engine_blocks // 2, block_size=128, max_model_len=1024)
    assert [d.what for d in drifts(plan, other)] == ["kv_blocks", "block_size", "max_model_len"]
    assert "planned 2048, the engine reports 1024" in str(drifts(plan, other)[2])
    assert drifts(plan, replace(same, resident_bytes=plan.host_bytes + 4 * GIB))[0].what == "resident_bytes"


def test_an_accelerators_measured_blocks_may_differ_a_little() -> None:
    plan = planned(LLAMA_8B, machine_from(NODES))
    near, far = (EngineReport(kv_blocks=int(plan.engine_blocks * share)) for share in (0.9, 0.8))
    assert drifts(plan, near) == ()
    assert drifts(plan, far)[0].share == pytest.approx(-0.2, abs=0.01)


def test_blocks_are_counted_as_the_engine_groups_its_layers() -> None:
    plan = planned(GPT_OSS_20B, machine_from(NODES))  # 12 layers with a window, 12 without
    assert plan.engine_blocks == 2 * plan.plan.kv_blocks


def _folder(path: Path, config: dict[str, object]) -> str:
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    return str(path)


def test_geo_plan_prints_the_plan_of_a_described_machine(tmp_path: Path) -> None:
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps(NODES))
    words = ["plan", "--machine", str(machine), "--model", _folder(tmp_path / "m", LLAMA_405B)]
    done = CliRunner().invoke(make_cli(), [*words, "--json"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert (figures["tp"], figures["pp"], figures["profile"], figures["refused"]) == (8, 2, "cloud", False)
    assert [c["role"] for c in figures["commands"]] == ["serve", "join"]
    assert figures["bounds"]["first_token_ms"] > 0
    explained = CliRunner().invoke(make_cli(), [*words, "--explain"])
    assert "What is the engine for? cloud: 2 nodes are given" in explained.stdout


def test_geo_plan_refuses_with_what_would_run(tmp_path: Path) -> None:
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps({**NODES, "nodes": 1}))
    words = ["plan", "--machine", str(machine), "--model", _folder(tmp_path / "m", LLAMA_405B)]
    done = CliRunner().invoke(make_cli(), [*words, "--json"])
    assert done.exit_code == 2
    refused = json.loads(done.stdout)
    assert refused["refused"] is True
    assert refused["alternatives"][0]["text"].startswith("a checkpoint in fp8")
    told = CliRunner().invoke(make_cli(), [*words, "--tp", "6"])
    assert told.exit_code == 2
    assert "Legal sizes here: 1, 2, 4, 8" in told.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--profile", "mainframe"], "none of auto, edge"),
        (["--machine", "list"], "holds no JSON object"),
        (["--machine", "broken"], "is no JSON"),
        (["--machine", "nowhere"], "does not exist"),
    ],
)
def test_geo_plan_names_a_wrong_option(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "list").write_text("[]")
    (tmp_path / "broken").write_text("{")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(make_cli(), ["plan", "--model", _folder(tmp_path / "m", SMOLLM2), *words])
    assert done.exit_code != 0
    assert told in (done.exception.detail if isinstance(done.exception, ConfigError) else done.stderr)


def test_engine_arguments_become_flags() -> None:
    arguments: dict[str, Any] = {
        "model": "/m", "enforce_eager": True, "disable_log_stats": False, "block_size": 32,
        "enable_prefix_caching": False, "served_model_name": ["a/b"],
        "structured_outputs_config": {"backend": "xgrammar"},
    }  # fmt: skip
    assert engine_flags(arguments) == (
        "--enforce-eager", "--block-size", "32", "--no-enable-prefix-caching", "--served-model-name", "a/b",
        "--structured-outputs-config", '{"backend": "xgrammar"}',
    )  # fmt: skip
    assert engine_flags({"enforce_eager": False}) == ()
