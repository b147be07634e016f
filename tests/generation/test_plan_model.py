from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError
from generation.plan_languages import known_languages
from generation.plan_model import model_facts
from generation.plan_pack import pack_facts
from generation.plan_quant import compute_dtype, cpu_refusal, least_capability, quantization_of
from tests.generation.plan_models import DEEPSEEK_V3, GPT_OSS_20B, LLAMA_8B, MODELS, QWEN25_7B, SMOLLM2

GIB = 1 << 30
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}
W8A8 = {
    "quant_method": "compressed-tensors",
    "config_groups": {
        "group_0": {
            "weights": {"num_bits": 8, "type": "int", "strategy": "channel"},
            "input_activations": {"num_bits": 8, "type": "int"},
        }
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_parameters_and_cache_agree_with_what_the_publisher_states(name: str) -> None:
    published = MODELS[name]
    facts = model_facts(published.config, name=name)
    assert facts.parameters / 1e9 == pytest.approx(published.parameters, rel=0.01)
    assert facts.active_parameters / 1e9 == pytest.approx(published.active, rel=0.02)
    assert facts.kv_bytes_per_token == published.kv_bytes


@pytest.mark.parametrize(
    ("name", "gib"),
    [("smollm2-135m", 0.25), ("llama-3.1-8b", 14.96), ("deepseek-v3", 626.7), ("gpt-oss-20b", 12.8)],
)
def test_weights_are_counted_before_they_are_downloaded(name: str, gib: float) -> None:
    facts = model_facts(MODELS[name].config, name=name)
    assert not facts.measured
    assert facts.weight_bytes / GIB == pytest.approx(gib, rel=0.03)


def test_files_that_are_there_count_instead() -> None:
    facts = model_facts(SMOLLM2, name="m", weight_bytes=269_060_552)
    assert (facts.measured, facts.weight_bytes) == (True, 269_060_552)


@pytest.mark.parametrize(
    ("quantization", "label", "gib"),
    [
        (AWQ, "awq w4a16 g128", 5.3),
        ({**AWQ, "quant_method": "gptq"}, "gptq w4a16 g128", 5.3),
        ({"quant_method": "fp8"}, "fp8 w8a8", 8.4),
        (W8A8, "compressed-tensors w8a8", 8.4),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes w4a16 g64", 5.4),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt_fp4 fp4a4 g16", 6.0),
    ],
)
def test_a_quantized_checkpoint_weighs_what_its_bits_say(
    quantization: dict[str, Any], label: str, gib: float
) -> None:
    facts = model_facts({**LLAMA_8B, "quantization_config": quantization}, name="m")
    assert facts.quantization is not None
    assert facts.quantization.label == label
    assert facts.weight_bytes / GIB == pytest.approx(gib, rel=0.05)


def test_an_unknown_quantization_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="vqz"):
        model_facts({**LLAMA_8B, "quantization_config": {"quant_method": "vqz"}}, name="m")


def test_the_cpu_runs_what_it_has_kernels_for() -> None:
    runs, refused = (
        [quantization_of({"quantization_config": q}, "m") for q in group]
        for group in ((AWQ, W8A8), ({"quant_method": "fp8"}, {"quant_method": "mxfp4"}))
    )
    assert not any(cpu_refusal(q) for q in runs if q)
    assert all("CPU kernels" in cpu_refusal(q) for q in refused if q)
    assert all(least_capability(q) >= (7, 5) for q in (*runs, *refused) if q)


@pytest.mark.parametrize(
    ("dtype", "capability", "computed"),
    [
        ("bfloat16", None, "bfloat16"),
        ("bfloat16", (7, 5), "float16"),
        ("float32", (9, 0), "bfloat16"),
        ("float16", (7, 5), "float16"),
    ],
)
def test_a_type_that_the_device_lacks_is_replaced_with_a_note(
    dtype: str, capability: tuple[int, int] | None, computed: str
) -> None:
    chosen, note = compute_dtype(dtype, capability)
    assert chosen == computed
    assert bool(note) == (dtype != computed)


def test_latent_attention_keeps_one_vector_for_all_heads() -> None:
    facts = model_facts(DEEPSEEK_V3, name="m")
    assert facts.mla
    assert facts.cached_elements(1) == facts.cached_elements(8) == 512 + 64


def test_kv_heads_are_divided_and_then_replicated() -> None:
    facts = model_facts(QWEN25_7B, name="m")  # 4 KV heads of 128
    assert [facts.cached_elements(tp) for tp in (1, 2, 4, 8)] == [1024, 512, 256, 256]


def test_layers_that_look_at_a_window_are_told_apart() -> None:
    assert model_facts(QWEN25_7B, name="m").window_layers == 0  # use_sliding_window is off
    oss = model_facts(GPT_OSS_20B, name="m")
    assert (oss.window, oss.window_layers) == (128, 12)
    gemma = model_facts(MODELS["gemma-2-9b"].config, name="m")
    assert (gemma.window, gemma.window_layers) == (4096, 21)


@pytest.mark.parametrize(
    ("rope", "positions"),
    [
        (None, 32768),
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        ({"rope_type": "linear", "factor": 2.0}, 65536),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 32768),
        ({"rope_type": "linear", "factor": float("nan")}, 32768),
        ({"rope_type": "linear", "factor": 1e308}, 32768),
        ({"rope_type": "linear", "factor": -3}, 32768),
    ],
)
def test_rope_scaling_lengthens_what_it_says(rope: dict[str, Any] | None, positions: int) -> None:
    assert model_facts({**QWEN25_7B, "rope_scaling": rope}, name="m").max_positions == positions


def test_a_multimodal_wrapper_is_looked_through() -> None:
    wrapped = {"model_type": "gemma3", "text_config": SMOLLM2}
    assert model_facts(wrapped, name="m").kv_bytes_per_token == 23040


def test_linear_attention_keeps_no_tokens() -> None:
    mixed = {**QWEN25_7B, "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 7}
    assert model_facts(mixed, name="m").kv_bytes_per_token == 57344 // 4


def test_a_config_without_heads_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="num_attention_heads"):
        model_facts({"hidden_size": 8}, name="m")


@pytest.mark.parametrize(
    "config",
    [
        [],
        None,
        "model",
        {**SMOLLM2, "quantization_config": {"quant_method": "fp8", "weight_block_size": ["x"]}},
    ],
)
def test_a_config_of_another_shape_is_refused_by_name(tmp_path: Path, config: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"config\.json of acme/thing"):
        pack_facts(tmp_path, name="acme/thing")


@pytest.mark.parametrize("sizes", [{"hidden_size": 2, "head_dim": None}, {"num_key_value_heads": 5}])
def test_heads_that_divide_nothing_are_refused_by_name(sizes: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="acme/thing has 9 heads"):
        model_facts({**SMOLLM2, **sizes}, name="acme/thing")


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["BertModel"]},
        {"architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta"},
        {"architectures": ["ModernBertForMaskedLM"], "model_type": "modernbert"},
        {"architectures": ["Qwen2ForSequenceClassification"], "model_type": "qwen2"},
        {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "is_encoder_decoder": True},
        {"model_type": "bert"},
    ],
)
def test_a_model_that_does_not_write_is_refused_with_what_to_do(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"acme/thing is an encoder.*ForCausalLM.*GEO_PACKS__ENCODER"):
        model_facts({**SMOLLM2, **config}, name="acme/thing")


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["LlamaForCausalLM"]},
        {"architectures": ["RobertaForCausalLM"], "model_type": "roberta"},
        {"architectures": ["ChatGLMModel"], "model_type": "chatglm"},
        {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3"},
    ],
)
def test_a_model_that_writes_is_planned(config: dict[str, Any]) -> None:
    assert model_facts({**SMOLLM2, **config}, name="m").layers == 30


def test_an_unknown_dtype_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"acme/thing.*'float7'; known: float32, float16, bfloat16"):
        model_facts({**SMOLLM2, "dtype": "float7"}, name="acme/thing")
    assert model_facts({**SMOLLM2, "dtype": "torch.half"}, name="m").dtype == "float16"


def test_an_unknown_family_counts_as_writing_both_languages() -> None:
    assert known_languages("acme/Thing-7B") == ("en", "zh")
    assert known_languages("Qwen/Qwen3-8B") == ("en", "zh")
