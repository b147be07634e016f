"""Public configs, cut down to the fields that decide sizes, with their numbers beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

_LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 128256, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "max_position_embeddings": 131072, "num_key_value_heads": 8,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192},
}  # fmt: skip
SMOLLM2: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "num_hidden_layers": 30,
    "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536, "head_dim": 64,
    "tie_word_embeddings": True, "max_position_embeddings": 8192, "dtype": "bfloat16",
}  # fmt: skip
LLAMA_8B = {**_LLAMA, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
            "intermediate_size": 14336}  # fmt: skip
LLAMA_70B = {**_LLAMA, "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
             "intermediate_size": 28672}  # fmt: skip
LLAMA_405B = {**_LLAMA, "hidden_size": 16384, "num_hidden_layers": 126, "num_attention_heads": 128,
              "intermediate_size": 53248}  # fmt: skip
QWEN25_7B: dict[str, Any] = {
    "model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
    "tie_word_embeddings": False, "max_position_embeddings": 32768, "use_sliding_window": False,
    "sliding_window": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN3_8B: dict[str, Any] = {
    "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288,
    "tie_word_embeddings": False, "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN3_30B_A3B: dict[str, Any] = {
    "model_type": "qwen3_moe", "vocab_size": 151936, "hidden_size": 2048, "num_hidden_layers": 48,
    "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144,
    "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "tie_word_embeddings": False, "max_position_embeddings": 40960,
}  # fmt: skip
MISTRAL_7B: dict[str, Any] = {
    "model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "sliding_window": 4096,
    "tie_word_embeddings": False, "max_position_embeddings": 32768, "torch_dtype": "bfloat16",
}  # fmt: skip
MIXTRAL: dict[str, Any] = {
    **MISTRAL_7B, "model_type": "mixtral", "sliding_window": None, "num_local_experts": 8,
    "num_experts_per_tok": 2,
}  # fmt: skip
GEMMA2_9B: dict[str, Any] = {
    "model_type": "gemma2", "vocab_size": 256000, "hidden_size": 3584, "num_hidden_layers": 42,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336,
    "sliding_window": 4096, "max_position_embeddings": 8192, "torch_dtype": "float32",
}  # fmt: skip
DEEPSEEK_V3: dict[str, Any] = {
    "model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168, "num_hidden_layers": 61,
    "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "tie_word_embeddings": False,
    "max_position_embeddings": 163840, "torch_dtype": "bfloat16",
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
GPT_OSS_20B: dict[str, Any] = {
    "model_type": "gpt_oss", "vocab_size": 201088, "hidden_size": 2880, "num_hidden_layers": 24,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
    "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128, "tie_word_embeddings": False,
    "layer_types": ["sliding_attention", "full_attention"] * 12, "max_position_embeddings": 131072,
    "quantization_config": {"quant_method": "mxfp4"},
}  # fmt: skip


class Published(NamedTuple):
    """Billions of parameters as the publisher states them, and what follows from the config by hand.

    Attributes:
        active: billions of weights that a token is multiplied with, the embedding table left out.
        kv_bytes: of a token over all layers, in the stored type.
    """

    config: dict[str, Any]
    parameters: float
    active: float
    kv_bytes: int


MODELS: dict[str, Published] = {
    "smollm2-135m": Published(SMOLLM2, 0.1345, 0.1345, 23040),
    "llama-3.1-8b": Published(LLAMA_8B, 8.03, 7.5, 131072),
    "llama-3.1-70b": Published(LLAMA_70B, 70.55, 69.5, 327680),
    "llama-3.1-405b": Published(LLAMA_405B, 405.85, 403.7, 516096),
    "qwen2.5-7b": Published(QWEN25_7B, 7.615, 7.07, 57344),
    "qwen3-8b": Published(QWEN3_8B, 8.19, 7.57, 147456),
    "qwen3-30b-a3b": Published(QWEN3_30B_A3B, 30.53, 3.04, 98304),
    "mistral-7b": Published(MISTRAL_7B, 7.24, 7.11, 131072),
    "mixtral-8x7b": Published(MIXTRAL, 46.70, 12.75, 131072),
    "gemma-2-9b": Published(GEMMA2_9B, 9.24, 9.24, 688128),
    "deepseek-v3": Published(DEEPSEEK_V3, 671.0, 36.6, 70272),
    "gpt-oss-20b": Published(GPT_OSS_20B, 20.9, 3.6, 49152),
}
