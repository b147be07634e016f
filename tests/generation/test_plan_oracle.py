"""The plan's copies of the engine's rules, against the engine's own code."""

from __future__ import annotations

import pytest

from generation.plan_memory import grouped_layers
from generation.plan_model import VOCAB_PADDING, model_facts
from generation.plan_parallel import engine_split
from generation.plan_quant import Quantization, least_capability
from generation.plan_rules import CPU_HEADS
from tests.generation.plan_models import GEMMA2_9B, GPT_OSS_20B, LLAMA_8B, MISTRAL_7B

pytestmark = pytest.mark.engine

_GEMMA3 = {**GEMMA2_9B, "model_type": "gemma3_text", "num_hidden_layers": 26, "sliding_window": 512}
_NEARLY_EVEN = {**GPT_OSS_20B, "num_hidden_layers": 25,
                "layer_types": ["sliding_attention"] * 12 + ["full_attention"] * 13}  # fmt: skip


@pytest.mark.parametrize("layers", [1, 2, 7, 30, 32, 61, 80, 126])
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5, 8, 16])
def test_layers_are_divided_as_the_engine_divides_them(
    layers: int, stages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.distributed.utils import get_pp_indices

    monkeypatch.delenv("VLLM_PP_LAYER_PARTITION", raising=False)
    if layers < stages:
        return
    bounds = [get_pp_indices(layers, rank, stages) for rank in range(stages)]
    assert engine_split(layers, stages) == tuple(end - start for start, end in bounds)


def test_the_cpu_takes_the_head_sizes_that_the_engine_has_kernels_for() -> None:
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    assert list(CPU_HEADS) == CPUAttentionBackend.get_supported_head_sizes()


def test_the_vocabulary_is_padded_as_the_engine_pads_it() -> None:
    from vllm.model_executor.layers.vocab_parallel_embedding import pad_vocab_size

    assert [pad_vocab_size(n) for n in (1, 64, 65, 151936)] == [
        -(-n // VOCAB_PADDING) * VOCAB_PADDING for n in (1, 64, 65, 151936)
    ]


@pytest.mark.parametrize("config", [LLAMA_8B, GEMMA2_9B, _GEMMA3, GPT_OSS_20B, _NEARLY_EVEN, MISTRAL_7B])
def test_layers_of_two_kinds_are_grouped_as_the_engine_groups_them(config: dict[str, object]) -> None:
    import torch
    from vllm.v1.core.kv_cache_utils import _get_kv_cache_groups_uniform_page_size
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheSpec, SlidingWindowSpec

    facts = model_facts(config, name="m")
    sizes = {"block_size": 16, "num_kv_heads": 2, "head_size": 64, "dtype": torch.bfloat16}
    specs: dict[str, KVCacheSpec] = {
        f"layer.{i}": SlidingWindowSpec(**sizes, sliding_window=facts.window)
        if i < facts.window_layers
        else FullAttentionSpec(**sizes)
        for i in range(facts.layers)
    }
    groups = _get_kv_cache_groups_uniform_page_size(specs)
    assert max(len(group.layer_names) for group in groups) == grouped_layers(facts)


@pytest.mark.parametrize("method", ["awq", "gptq", "fp8", "fbgemm_fp8", "mxfp4", "modelopt", "modelopt_fp4"])
def test_a_format_needs_the_capability_that_the_engine_asks_for(method: str) -> None:
    from vllm.model_executor.layers.quantization import get_quantization_config

    name = {"awq": "auto_awq", "gptq": "auto_gptq"}.get(method, method)
    major, minor = least_capability(Quantization(method, 4))
    assert get_quantization_config(name).get_min_capability() == 10 * major + minor
