from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.plan import make_plan
from generation.plan_bounds import kv_waste
from generation.plan_machine import Machine, machine_from
from generation.plan_memory import sequence_kv_tokens
from generation.plan_model import ModelFacts, model_facts
from generation.plan_parallel import tensor_objections
from generation.plan_ram import memory_shares
from generation.plan_wish import Planned, PlanRefused, Profile, Wish
from tests.generation.plan_models import DEEPSEEK_V3, LLAMA_70B, LLAMA_405B, MISTRAL_7B, MODELS, SMOLLM2

GIB = 1 << 30
MIB = 1 << 20
CPU = Machine("cpu", cores=8, memory_bytes=24 * GIB)
H100 = machine_from({"gpu": "NVIDIA H100 80GB HBM3", "devices": 8, "cores": 96, "ram_gib": 2048})
TWO_NODES = replace(H100, nodes=2)
MACHINES = {
    "2x8 H100": TWO_NODES,
    "8 A100 PCIe": machine_from({"gpu": "NVIDIA A100 80GB PCIe", "devices": 8, "cores": 64, "ram_gib": 1024}),
    "1 L4": machine_from({"gpu": "NVIDIA L4", "cores": 8, "ram_gib": 64}),
    "4 T4": machine_from({"gpu": "Tesla T4", "devices": 4, "cores": 16, "ram_gib": 128}),
    "2-socket Xeon": machine_from(
        {"device": "cpu", "cores": 64, "ram_gib": 512, "numa_nodes": 2, "isa": ["avx512", "amx_bf16"],
         "bandwidth_gb_s": 400, "tflops": 40}
    ),
    "laptop": CPU,
}  # fmt: skip
SMALL = Wish(kv_cache_bytes=GIB, max_model_len=2048, max_num_seqs=16, enforce_eager=True)


def facts(name: str) -> ModelFacts:
    return model_facts(MODELS[name].config, name=name)


def headed(heads: int, kv_heads: int | None = None, **more: Any) -> ModelFacts:
    config = {**SMOLLM2, "num_attention_heads": heads, "num_key_value_heads": kv_heads or heads,
              "head_dim": 128, "intermediate_size": 27720, "vocab_size": 40320, **more}  # fmt: skip
    return model_facts(config, name="m")


def test_the_default_model_fits_a_laptop() -> None:
    planned = make_plan(model_facts(SMOLLM2, name="HuggingFaceTB/SmolLM2-135M-Instruct"), CPU, Wish())
    assert (planned.plan.tp, planned.plan.pp, planned.plan.block_size) == (1, 1, 32)
    assert (planned.plan.max_model_len, planned.plan.context_budget) == (2048, 2048 - 256 - 256)
    assert (planned.max_num_seqs, planned.enforce_eager, planned.profile) == (16, True, Profile.EDGE)
    assert planned.plan.kv_blocks * 32 >= 1.4 * 16 * 2048  # room for finished prompts too
    assert planned.plan.languages == ("en",)
    assert planned.notes == ()


def test_one_plan_divides_the_memory_between_vector_pages_and_kv_blocks() -> None:
    small, large = (
        make_plan(facts("smollm2-135m"), CPU, replace(SMALL, kv_cache_bytes=kv_bytes))
        for kv_bytes in (GIB, 5 * GIB)
    )
    granted = (large.kv_rank_bytes - small.kv_rank_bytes) // 4
    assert small.plan.vector_page_bytes - large.plan.vector_page_bytes == pytest.approx(granted, abs=2)
    shares = memory_shares(small, CPU)
    assert sum(shares.values()) == CPU.memory_bytes
    assert shares["vector_pages"] == small.plan.vector_page_bytes > 0


def test_vector_pages_are_planned_beside_accelerators_too() -> None:
    planned = make_plan(facts("llama-3.1-8b"), H100, Wish())
    shares = memory_shares(planned, H100)
    assert sum(shares.values()) == H100.ram_bytes
    assert shares["kv_blocks"] == 0
    assert shares["vector_pages"] > 300 * GIB
    assert memory_shares(planned, replace(H100, ram_bytes=0)) == {}


@pytest.mark.parametrize(
    ("heads", "tp", "legal"),
    [(52, 8, "1, 2, 4"), (40, 3, "1, 2, 4, 5, 8"), (12, 8, "1, 2, 3, 4, 6")],
)
def test_a_tensor_parallel_size_that_does_not_divide_the_heads_is_refused(
    heads: int, tp: int, legal: str
) -> None:
    with pytest.raises(PlanRefused, match=f"Legal sizes here: {legal}\\.") as caught:
        make_plan(headed(heads), H100, replace(SMALL, tensor_parallel=tp))
    assert "PIPELINE_PARALLEL" in caught.value.detail
    assert f"{heads} heads do not divide by {tp}" in caught.value.reasons[0]
    assert caught.value.alternatives


def test_a_tensor_parallel_size_that_divides_is_planned() -> None:
    assert make_plan(headed(64), H100, replace(SMALL, tensor_parallel=4)).plan.tp == 4


def test_few_key_value_heads_are_replicated_and_the_plan_says_so() -> None:
    wish = replace(SMALL, tensor_parallel=8, pipeline_parallel=1, max_num_seqs=4)
    shared = make_plan(headed(32, 4), H100, wish)
    assert shared.kv_bytes_per_token == 2 * headed(32, 4).kv_bytes_per_token
    assert "kept 2 times" in shared.notes[-1]
    with pytest.raises(PlanRefused, match="neither divide by 8 nor can be replicated"):
        make_plan(headed(48, 3), H100, wish)


def test_a_quantization_group_is_not_cut() -> None:
    odd = {"intermediate_size": 1408, "quantization_config": {"quant_method": "awq", "group_size": 128}}
    with pytest.raises(PlanRefused, match="quantization group 128"):
        make_plan(headed(32, **odd), H100, replace(SMALL, tensor_parallel=2))


def test_tensor_parallelism_stays_inside_a_node_and_pipeline_spreads() -> None:
    wish = replace(SMALL, tensor_parallel=8, pipeline_parallel=2)
    planned = make_plan(headed(64), TWO_NODES, wish)
    assert planned.layout is not None
    assert (planned.layout.nodes, planned.layout.ranks_on_node) == (2, 8)
    with pytest.raises(PlanRefused, match="legal pipeline sizes are 1, 2"):
        make_plan(headed(64), TWO_NODES, replace(wish, pipeline_parallel=3))
    with pytest.raises(PlanRefused, match="stays inside a node"):
        make_plan(headed(64), TWO_NODES, replace(wish, tensor_parallel=16, pipeline_parallel=1))


def test_eager_pipeline_parallelism_on_cpu_is_refused() -> None:
    wish = replace(SMALL, pipeline_parallel=2)
    with pytest.raises(PlanRefused, match="ENFORCE_EAGER=false"):
        make_plan(facts("smollm2-135m"), CPU, wish)
    for eager in (False, None):
        planned = make_plan(facts("smollm2-135m"), CPU, replace(wish, enforce_eager=eager))
        assert (planned.plan.pp, planned.enforce_eager) == (2, False)


def test_cpu_blocks_are_multiples_of_32() -> None:
    with pytest.raises(PlanRefused, match="32, 64, 96, 128"):
        make_plan(facts("smollm2-135m"), CPU, replace(SMALL, block_size=16))
    assert make_plan(facts("smollm2-135m"), H100, replace(SMALL, block_size=16)).plan.block_size == 16


def test_a_context_longer_than_the_kv_cache_is_cut_with_a_note() -> None:
    one = headed(8)
    planned = make_plan(one, CPU, replace(SMALL, kv_cache_bytes=one.kv_bytes_per_token * 1024))
    assert planned.plan.max_model_len == 1024
    assert planned.max_num_seqs == 1
    assert "by the KV cache" in planned.notes[0]


def test_a_context_longer_than_the_models_positions_is_cut_with_a_note() -> None:
    planned = make_plan(facts("smollm2-135m"), H100, replace(SMALL, max_model_len=40960, kv_cache_bytes=0))
    assert planned.plan.max_model_len == 8192
    assert "by the model's positions" in planned.notes[0]


def test_a_context_with_no_room_for_evidence_is_refused_with_the_size_needed() -> None:
    one = headed(8)
    with pytest.raises(PlanRefused, match=f"at least {640 * one.kv_bytes_per_token}") as caught:
        make_plan(one, CPU, replace(SMALL, kv_cache_bytes=one.kv_bytes_per_token * 512))
    assert {"kv_cache_bytes": 0} in [dict(a.change) for a in caught.value.alternatives]


def test_weights_and_kv_above_the_memory_are_refused() -> None:
    with pytest.raises(PlanRefused, match="KV_CACHE_BYTES to at most"):
        small = replace(CPU, memory_bytes=3 * GIB)
        make_plan(facts("smollm2-135m"), small, replace(SMALL, kv_cache_bytes=4 * GIB))
    with pytest.raises(PlanRefused, match="smaller or quantized model"):
        make_plan(replace(headed(8), weight_bytes=30 * GIB), CPU, SMALL)


def test_formats_without_kernels_are_refused_on_that_device() -> None:
    fp8 = model_facts({**LLAMA_70B, "quantization_config": {"quant_method": "fp8"}}, name="m")
    with pytest.raises(PlanRefused, match="no CPU kernels"):
        make_plan(fp8, CPU, Wish())
    narrow = replace(facts("smollm2-135m"), head_dim=16, value_dim=16)
    with pytest.raises(PlanRefused, match="has 16 elements per head; the CPU's attention takes 32, 64"):
        make_plan(narrow, CPU, SMALL)
    with pytest.raises(PlanRefused, match=r"needs compute capability 7\.5, Tesla V100 has 7\.0"):
        make_plan(fp8, machine_from({"gpu": "Tesla V100", "devices": 8, "ram_gib": 256}), Wish())
    with pytest.raises(PlanRefused, match=r"fp8 KV cache needs compute capability 8\.9"):
        make_plan(facts("llama-3.1-8b"), MACHINES["8 A100 PCIe"], Wish(kv_cache_dtype="fp8"))
    assert make_plan(facts("qwen2.5-7b"), MACHINES["4 T4"], Wish()).dtype == "float16"


def test_a_model_too_large_for_a_node_is_spread_over_two() -> None:
    big = model_facts(LLAMA_405B, name="llama-3.1-405b")
    planned = make_plan(big, TWO_NODES, Wish())
    assert (planned.plan.tp, planned.plan.pp, planned.profile) == (8, 2, Profile.CLOUD)
    with pytest.raises(PlanRefused) as caught:
        make_plan(big, H100, Wish())
    assert [a.text for a in caught.value.alternatives] == ["a checkpoint in fp8 w8a8 (weights 381.9 GiB)"]


def test_layers_are_divided_by_weight_where_the_tables_would_not_fit() -> None:
    gemma = facts("gemma-2-9b")  # a table of 256,000 rows on the first and on the last stage
    wish = Wish(tensor_parallel=1, pipeline_parallel=4, max_model_len=1024, max_num_seqs=1)
    roomy, tight = (make_plan(gemma, replace(H100, memory_bytes=gib * GIB), wish) for gib in (80, 8))
    assert roomy.layout is not None
    assert tight.layout is not None
    assert roomy.layout.split == (10, 11, 11, 10)  # the engine's own
    assert sum(tight.layout.split) == 42
    assert max(tight.layout.split[0], tight.layout.split[-1]) < 10


def test_sliding_windows_let_longer_sequences_in() -> None:
    windowed = model_facts(MISTRAL_7B, name="m")
    assert sequence_kv_tokens(windowed, 32768) == 4096
    gemma = facts("gemma-2-9b")
    assert sequence_kv_tokens(gemma, 8192) == (8192 + 4096) / 2


@pytest.mark.parametrize(
    ("profile", "tp", "replicas"), [("realtime", 4, 2), ("batch", 4, 2), ("edge", 2, 4), ("cloud", 4, 2)]
)
def test_each_profile_explains_itself(profile: str, tp: int, replicas: int) -> None:
    planned = make_plan(facts("llama-3.1-70b"), H100, Wish(profile=Profile(profile), max_model_len=2048))
    assert planned.plan.tp >= tp
    assert planned.replicas <= replicas
    assert planned.branches[0].answer == profile
    assert planned.branches[-1].question == "Which ranks?"
    assert all(branch.answer and branch.follows for branch in planned.branches)


def test_realtime_takes_the_smallest_tensor_size_that_reaches_the_target() -> None:
    sizes = [
        make_plan(facts("llama-3.1-8b"), H100, Wish(profile=Profile.REALTIME, target_ttft_ms=target)).plan.tp
        for target in (2000, 500, 200, 100)
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    assert sizes[-1] > 1


def test_batch_has_larger_steps_and_more_engines_than_realtime() -> None:
    batch, realtime = (
        make_plan(facts("qwen3-8b"), H100, Wish(profile=p, max_model_len=2048))
        for p in (Profile.BATCH, Profile.REALTIME)
    )
    assert batch.max_num_batched_tokens > realtime.max_num_batched_tokens
    assert batch.replicas == 8 >= realtime.replicas


def test_ranks_of_a_two_socket_machine_sit_on_one_memory_each() -> None:
    xeon = MACHINES["2-socket Xeon"]
    planned = make_plan(facts("qwen3-8b"), xeon, Wish())
    assert planned.plan.tp == 2
    assert planned.cores == (tuple(range(32)), tuple(range(32, 64)))


def test_latent_attention_takes_the_blocks_of_its_kernels() -> None:
    small = {**DEEPSEEK_V3, "num_hidden_layers": 4, "n_routed_experts": 4, "quantization_config": None}
    latent = model_facts(small, name="m")
    assert make_plan(latent, H100, Wish()).plan.block_size == 64
    amx = MACHINES["2-socket Xeon"]
    assert make_plan(latent, amx, Wish()).prefix_caching
    plain = make_plan(latent, replace(amx, isa=("avx512",)), Wish())
    assert (plain.plan.block_size, plain.prefix_caching) == (16, False)


@pytest.mark.parametrize(("block", "tokens", "most"), [(32, 400, 0.04), (16, 200, 0.04), (128, 400, 0.14)])
def test_half_a_block_per_sequence_is_wasted(block: int, tokens: int, most: float) -> None:
    assert kv_waste(block, tokens) == pytest.approx(block / 2 / (tokens + block / 2))
    assert kv_waste(block, tokens) < most


def test_the_roofs_of_a_known_card_are_those_of_its_data_sheet() -> None:
    planned = make_plan(facts("llama-3.1-8b"), replace(H100, devices=1), Wish(max_model_len=2048))
    assert planned.bounds is not None
    one = planned.bounds.tokens_per_s_one
    assert one is not None
    assert one == pytest.approx(3350 / (16.06 - 1.05 + 0.25), rel=0.02)  # GB/s over GB of weights and KV
    assert planned.bounds.first_token_ms is not None
    assert planned.bounds.first_token_ms == pytest.approx(2 * 6.98e9 * 1792 / 989e12 * 1000, rel=0.05)
    unknown = make_plan(facts("llama-3.1-8b"), replace(H100, devices=1, bandwidth=0), Wish())
    assert unknown.bounds is not None
    assert unknown.bounds.tokens_per_s_one is None


def _checked(one: ModelFacts, machine: Machine, wish: Wish) -> Planned | None:
    """Plan, and prove that what is planned is legal and fits; None: refused with reasons."""
    try:
        planned = make_plan(one, machine, wish)
    except PlanRefused as refused:
        for alternative in refused.alternatives:
            if set(alternative.change) - {"nodes"}:
                make_plan(one, machine, replace(wish, **alternative.change))
        return None
    plan, layout, rank = planned.plan, planned.layout, planned.rank
    assert layout is not None
    assert rank is not None
    assert not tensor_objections(one, plan.tp)
    assert plan.tp <= machine.ranks_per_node
    assert layout.ranks_on_node <= machine.ranks_per_node
    assert layout.nodes <= machine.nodes
    assert layout.ranks_on_node * layout.nodes == layout.ranks
    assert sum(layout.split) == one.layers
    assert min(layout.split) >= 1
    assert not (machine.on_cpu and plan.pp > 1 and planned.enforce_eager)
    assert rank.weights + rank.activations + rank.fixed + rank.kv <= rank.budget
    whole = plan.kv_blocks * plan.block_size * planned.kv_bytes_per_token
    assert whole <= layout.ranks * machine.memory_bytes
    if wish.kv_cache_bytes:
        assert whole <= wish.kv_cache_bytes
    if machine.on_cpu:
        assert planned.host_bytes <= machine.memory_bytes
        assert sum(memory_shares(planned, machine).values()) >= machine.memory_bytes
    assert plan.max_model_len <= one.max_positions
    assert plan.context_budget + plan.answer_reserve < plan.max_model_len
    kept = sequence_kv_tokens(one, plan.max_model_len, planned.max_num_batched_tokens)
    assert planned.max_num_seqs == 1 or planned.max_num_seqs * kept <= plan.kv_blocks * plan.block_size
    assert kept <= plan.kv_blocks * plan.block_size + 1
    assert planned.max_num_batched_tokens >= planned.max_num_seqs
    return planned


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", MODELS)
def test_no_size_of_any_model_on_any_machine_is_planned_illegally(name: str, machine: str) -> None:
    one = facts(name)
    for tp in (0, 1, 3, 4, 8):
        for pp in (0, 1, 2, 3):
            _checked(one, MACHINES[machine], Wish(tensor_parallel=tp, pipeline_parallel=pp))


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(sorted(MODELS)),
    machine=st.sampled_from(sorted(MACHINES)),
    tp=st.integers(0, 9),
    pp=st.integers(0, 4),
    kv_mib=st.integers(0, 1 << 17),
    length=st.integers(0, 1 << 17),
    sequences=st.integers(0, 512),
    profile=st.sampled_from(Profile),
)
def test_a_plan_never_promises_more_than_it_has(
    name: str, machine: str, tp: int, pp: int, kv_mib: int, length: int, sequences: int, profile: Profile
) -> None:
    wish = Wish(kv_cache_bytes=kv_mib * MIB, max_model_len=length, max_num_seqs=sequences,
                tensor_parallel=tp, pipeline_parallel=pp, profile=profile)  # fmt: skip
    _checked(facts(name), MACHINES[machine], wish)


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(sorted(MODELS)),
    tp=st.sampled_from([1, 2, 4, 8]),
    gib=st.integers(8, 160),
    more=st.integers(1, 64),
)
def test_more_memory_never_means_less(name: str, tp: int, gib: int, more: int) -> None:
    wish = Wish(tensor_parallel=tp, pipeline_parallel=1)
    small, large = (
        _checked(facts(name), replace(H100, memory_bytes=size * GIB), wish) for size in (gib, gib + more)
    )
    if small is None:
        return
    assert large is not None
    assert large.plan.kv_blocks >= small.plan.kv_blocks
    assert large.plan.max_model_len >= small.plan.max_model_len
    assert large.max_num_seqs >= small.max_num_seqs or large.plan.max_model_len > small.plan.max_model_len
