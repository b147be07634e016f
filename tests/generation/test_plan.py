from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConfigError
from generation.engine_args import omp_binding
from generation.plan import (
    Machine,
    ModelShape,
    Wish,
    known_languages,
    legal_tensor_parallel,
    make_plan,
    memory_shares,
    model_shape,
)

GIB = 1 << 30
SMOL = {
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "dtype": "bfloat16",
}
CPU = Machine("cpu", cores=8, memory_bytes=24 * GIB)
GPU = Machine("gpu", cores=64, memory_bytes=80 * GIB, devices=8, nodes=2)
WISH = Wish(GIB, 2048, 16, 32, 256, True)


def shape(heads: int, kv_heads: int | None = None) -> ModelShape:
    return ModelShape("m", 32, heads, kv_heads or heads, 128, 32000, 8192, 2)


def test_the_default_model_fits_the_default_settings() -> None:
    planned = make_plan(model_shape(SMOL, name="HuggingFaceTB/SmolLM2-135M-Instruct"), CPU, WISH)
    assert planned.kv_bytes_per_token == 2 * 30 * 3 * 64 * 2
    assert planned.plan.kv_blocks == GIB // (23040 * 32)
    assert planned.plan.max_model_len == 2048
    assert planned.plan.context_budget == 2048 - 256 - 256
    assert planned.plan.languages == ("en",)
    assert planned.max_num_seqs == 16
    assert planned.notes == ()


def test_one_plan_divides_the_memory_between_vector_pages_and_kv_blocks() -> None:
    small, large = (
        make_plan(shape(32, 4), CPU, replace(WISH, kv_cache_bytes=kv_bytes)) for kv_bytes in (GIB, 5 * GIB)
    )
    assert small.plan.vector_page_bytes - large.plan.vector_page_bytes == GIB
    shares = memory_shares(small, CPU, GIB)
    assert sum(shares.values()) == CPU.memory_bytes
    assert shares["vector_pages"] == small.plan.vector_page_bytes > 0
    assert memory_shares(small, GPU, GIB) == {}


@pytest.mark.parametrize(
    ("heads", "tp", "legal"),
    [(52, 8, "1, 2, 4"), (40, 3, "1, 2, 4, 5, 8"), (12, 8, "1, 2, 3, 4, 6")],
)
def test_a_tensor_parallel_size_that_does_not_divide_the_heads_is_refused(
    heads: int, tp: int, legal: str
) -> None:
    with pytest.raises(ConfigError, match=f"Legal sizes here: {legal}\\.") as caught:
        make_plan(shape(heads), GPU, replace(WISH, tensor_parallel=tp))
    assert "PIPELINE_PARALLEL" in caught.value.detail


def test_a_tensor_parallel_size_that_divides_is_planned() -> None:
    assert make_plan(shape(64), GPU, replace(WISH, tensor_parallel=4)).plan.tp == 4


def test_key_value_heads_limit_tensor_parallelism_too() -> None:
    assert legal_tensor_parallel(shape(32, 4), 8) == (1, 2, 4)


def test_tensor_parallelism_stays_inside_a_node_and_pipeline_spreads() -> None:
    assert make_plan(shape(64), GPU, replace(WISH, tensor_parallel=8, pipeline_parallel=2)).plan.pp == 2
    with pytest.raises(ConfigError, match="legal pipeline sizes are 1, 2"):
        make_plan(shape(64), GPU, replace(WISH, tensor_parallel=8, pipeline_parallel=3))


def test_eager_pipeline_parallelism_on_cpu_is_refused() -> None:
    with pytest.raises(ConfigError, match="ENFORCE_EAGER=false"):
        make_plan(shape(8), CPU, replace(WISH, pipeline_parallel=2))
    assert make_plan(shape(8), CPU, replace(WISH, pipeline_parallel=2, enforce_eager=False)).plan.pp == 2


def test_cpu_blocks_are_multiples_of_32() -> None:
    with pytest.raises(ConfigError, match="32, 64, 96, 128"):
        make_plan(shape(8), CPU, replace(WISH, block_size=16))
    assert make_plan(shape(8), GPU, replace(WISH, block_size=16)).plan.block_size == 16


def test_a_context_longer_than_the_kv_cache_is_cut_with_a_note() -> None:
    one = shape(8)
    wish = replace(WISH, kv_cache_bytes=one.kv_bytes_per_token * 1024)
    planned = make_plan(one, CPU, wish)
    assert planned.plan.max_model_len == 1024
    assert planned.max_num_seqs == 1
    assert "by the KV cache" in planned.notes[0]


def test_a_context_with_no_room_for_evidence_is_refused_with_the_size_needed() -> None:
    one = shape(8)
    with pytest.raises(ConfigError, match=f"at least {640 * one.kv_bytes_per_token}"):
        make_plan(one, CPU, replace(WISH, kv_cache_bytes=one.kv_bytes_per_token * 512))


def test_weights_and_kv_above_the_memory_are_refused() -> None:
    with pytest.raises(ConfigError, match="KV_CACHE_BYTES to at most"):
        make_plan(shape(8), replace(CPU, memory_bytes=2 * GIB), replace(WISH, kv_cache_bytes=2 * GIB))
    with pytest.raises(ConfigError, match="smaller or quantized model"):
        make_plan(replace(shape(8), weight_bytes=30 * GIB), CPU, WISH)


def test_a_config_without_heads_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="num_attention_heads"):
        model_shape({"hidden_size": 8}, name="m")


def test_an_unknown_family_counts_as_writing_both_languages() -> None:
    assert known_languages("acme/Thing-7B") == ("en", "zh")
    assert known_languages("Qwen/Qwen3-8B") == ("en", "zh")


@given(
    heads=st.integers(1, 128),
    kv=st.integers(1, 128),
    tp=st.integers(1, 16),
    kv_tokens=st.integers(0, 1 << 16),
    length=st.integers(128, 1 << 15),
)
def test_a_plan_never_promises_more_than_it_has(
    heads: int, kv: int, tp: int, kv_tokens: int, length: int
) -> None:
    one = shape(heads, kv)
    wish = replace(
        WISH, kv_cache_bytes=one.kv_bytes_per_token * kv_tokens, max_model_len=length, tensor_parallel=tp
    )
    try:
        planned = make_plan(one, GPU, wish)
    except ConfigError:
        return
    plan = planned.plan
    assert heads % tp == 0
    assert kv % tp == 0
    assert plan.kv_blocks * plan.block_size * planned.kv_bytes_per_token <= wish.kv_cache_bytes
    assert plan.max_model_len <= plan.kv_blocks * plan.block_size
    assert plan.context_budget + plan.answer_reserve < plan.max_model_len
    assert planned.max_num_seqs >= 1


def test_every_core_is_bound_once() -> None:
    assert omp_binding([0, 1], 1) == "0,1"
    assert omp_binding([0, 1], 2) == "0|1"
    assert omp_binding([0, 1, 2, 3, 4], 2) == "0,1|2,3,4"
    assert omp_binding([3], 2) == "3|3"
