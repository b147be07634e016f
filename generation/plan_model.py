"""What a model's `config.json` says about sizes: heads, cache, weights, lengths, quantization.

Pure. Weights are counted from the config, so that a model can be planned before it is downloaded; where the
weight files are there, their size counts instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from core.errors import ConfigError
from generation.plan_family import require_decoder, stored_dtype
from generation.plan_quant import DTYPE_BYTES, Quantization, quantization_of

VOCAB_PADDING = 64  # the engine rounds the vocabulary up to this many rows
_DEFAULT_POSITIONS = 2048
_MOST_SCALED = 1e6  # by a rope's factor; what is above is no length that a model was made for

# Families whose MLP has two matrices instead of three (no gate).
_PLAIN_MLP = frozenset({"gpt2", "gpt_neox", "gptj", "opt", "bloom", "falcon", "phi", "starcoder2", "mpt"})
_TIED_BY_DEFAULT = frozenset({"gemma", "gemma2", "gemma3", "gemma3_text", "gpt2"})
_WINDOW_PATTERN = {"gemma2": 2, "gemma3_text": 6, "cohere2": 4}  # every n-th layer looks at everything
# Layer kinds (`layer_types`) that keep no keys and values per token.
_STATEFUL = frozenset({"linear_attention", "mamba", "recurrent", "conv", "ssm"})


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The numbers that decide what can run.

    Attributes:
        heads, kv_heads: query heads, and heads of keys and values (before any replication).
        head_dim, value_dim: elements per head of keys and of values.
        latent: elements of the compressed key-value latent per token and layer (MLA); 0: there is none.
        intermediate: width of a dense MLP; expert_intermediate: of one expert.
        experts, experts_per_token: routed experts of a layer and how many a token visits; 0: dense.
        moe_layers: layers with experts.
        window, window_layers: tokens that a sliding-window layer looks back, and how many layers do.
        stateful_layers: layers without per-token cache (linear attention).
        max_positions: longest sequence by the config, rope scaling included.
        dtype: of the stored, not quantized weights (`bfloat16` …).
        attention_parameters, dense_parameters, expert_parameters, embedding_parameters: numbers of one
            layer's attention, one dense MLP, one MoE layer with all experts, one embedding table.
        weight_bytes: of all weights; `measured` when taken from the files.
    """

    name: str
    family: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    hidden: int
    intermediate: int
    vocab: int
    max_positions: int
    dtype: str
    tied: bool
    quantization: Quantization | None
    latent: int
    experts: int
    experts_per_token: int
    expert_intermediate: int
    moe_layers: int
    window: int
    window_layers: int
    stateful_layers: int
    attention_parameters: int
    dense_parameters: int
    expert_parameters: int
    active_expert_parameters: int
    embedding_parameters: int
    weight_bytes: int
    measured: bool

    @property
    def mla(self) -> bool:
        """Whether keys and values are kept as one latent that every tensor-parallel rank holds whole."""
        return self.latent > 0

    @property
    def cached_layers(self) -> int:
        """Layers that keep keys and values of every token."""
        return self.layers - self.stateful_layers

    @property
    def dtype_bytes(self) -> int:
        """Bytes of a weight that is not quantized, and of a cached element unless the cache is quantized."""
        return DTYPE_BYTES.get(self.dtype, 2)

    @property
    def parameters(self) -> int:
        """All weights, norms and biases left out (below 0.1 %)."""
        tables = self.embedding_parameters * (1 if self.tied else 2)
        dense = (self.layers - self.moe_layers) * self.dense_parameters
        return (
            tables
            + dense
            + self.layers * self.attention_parameters
            + self.moe_layers * self.expert_parameters
        )

    @property
    def active_parameters(self) -> int:
        """Weights that one token is multiplied with; the embedding table is only looked up."""
        dense = (self.layers - self.moe_layers) * self.dense_parameters
        experts = self.moe_layers * self.active_expert_parameters
        return self.embedding_parameters + dense + self.layers * self.attention_parameters + experts

    def computed_in(self, dtype: str) -> ModelFacts:
        """The facts in memory, where weights that are not quantized have the type that is computed in."""
        if self.quantization is not None:
            return replace(self, dtype=dtype)
        scaled = self.weight_bytes * DTYPE_BYTES.get(dtype, 2) // self.dtype_bytes
        return replace(self, dtype=dtype, weight_bytes=scaled)

    def cached_elements(self, tp: int = 1) -> int:
        """Elements of one token in one layer's cache on one tensor-parallel rank.

        KV heads are divided, or replicated where there are fewer than ranks; a latent is always whole.
        """
        if self.mla:
            return self.latent
        return max(1, self.kv_heads // tp) * (self.head_dim + self.value_dim)

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one token over all layers without any replication, in the weights' type."""
        return self.cached_layers * self.cached_elements() * self.dtype_bytes


def model_facts(config: Mapping[str, Any], *, name: str, weight_bytes: int = 0) -> ModelFacts:
    """Read a hub-style `config.json`; multimodal wrappers are looked through (`text_config`).

    Args:
        config: the file's object.
        name: for messages and for the plan.
        weight_bytes: size of the weight files; 0 counts them from the config.

    Raises:
        ConfigError: a field that decides sizes is missing or not a positive number, the weights' type is
            unknown, or the model does not write text.
    """
    text = config.get("text_config") or config.get("llm_config")
    c: Mapping[str, Any] = {**config, **text} if isinstance(text, Mapping) else config
    require_decoder(c, name)
    family = str(c.get("model_type") or "").lower()
    heads = _positive(c, name, "num_attention_heads", "n_head", "n_heads")
    hidden = _positive(c, name, "hidden_size", "n_embd", "d_model")
    layers = _positive(c, name, "num_hidden_layers", "n_layer", "n_layers")
    vocab = _positive(c, name, "vocab_size")
    kv_heads = _kv_heads(c, heads)
    head_dim = _int(c, "head_dim") or hidden // heads
    if not head_dim or heads % kv_heads:
        raise ConfigError(
            f"The config of {name} has {heads} heads over a hidden size of {hidden} and {kv_heads} KV heads, "
            "which do not divide; it is not a model the engine can plan for."
        )
    value_dim = _int(c, "v_head_dim") or head_dim
    latent = _int(c, "kv_lora_rank") + _int(c, "qk_rope_head_dim") if _int(c, "kv_lora_rank") else 0
    intermediate = _int(c, "intermediate_size", "ffn_hidden_size", "n_inner") or 4 * hidden
    experts = _int(c, "num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
    per_token = _int(c, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k") or min(
        1, experts
    )
    expert_width = _int(c, "moe_intermediate_size") or (intermediate if experts else 0)
    window, window_layers, stateful = _layer_kinds(c, layers, family)
    matrices = 2 if family in _PLAIN_MLP else 3
    routed = matrices * hidden * expert_width
    shared = _shared_expert(c, hidden, expert_width, matrices)
    attention = (
        _latent_attention(c, hidden, heads)
        if latent
        else hidden * (heads * head_dim + kv_heads * (head_dim + value_dim)) + heads * value_dim * hidden
    )
    quantization = quantization_of(c, name)
    facts = ModelFacts(
        name=name,
        family=family,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=value_dim,
        hidden=hidden,
        intermediate=intermediate,
        vocab=vocab,
        max_positions=_positions(c),
        dtype=stored_dtype(c, name),
        tied=bool(c.get("tie_word_embeddings", family in _TIED_BY_DEFAULT)),
        quantization=quantization,
        latent=latent,
        experts=experts,
        experts_per_token=per_token,
        expert_intermediate=expert_width,
        moe_layers=_moe_layers(c, layers) if experts else 0,
        window=window,
        window_layers=window_layers,
        stateful_layers=stateful,
        attention_parameters=attention,
        dense_parameters=matrices * hidden * intermediate,
        expert_parameters=experts * routed + shared + hidden * experts,
        active_expert_parameters=per_token * routed + shared + hidden * experts,
        embedding_parameters=vocab * hidden,
        weight_bytes=weight_bytes,
        measured=weight_bytes > 0,
    )
    return facts if weight_bytes else _with_counted_weights(facts)


def _with_counted_weights(facts: ModelFacts) -> ModelFacts:
    tables = facts.embedding_parameters * (1 if facts.tied else 2)
    rest = facts.parameters - tables
    quantization = facts.quantization
    if quantization is None:
        return replace(facts, weight_bytes=facts.parameters * facts.dtype_bytes)
    small = rest - facts.moe_layers * facts.expert_parameters if quantization.experts_only else 0
    packed = (rest - small) * quantization.stored_bits / 8
    return replace(facts, weight_bytes=int(packed) + (tables + small) * facts.dtype_bytes)


def _kv_heads(c: Mapping[str, Any], heads: int) -> int:
    if c.get("multi_query") is True and not c.get("new_decoder_architecture"):
        return 1
    return _int(c, "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num") or heads


def _latent_attention(c: Mapping[str, Any], hidden: int, heads: int) -> int:
    """Matrices of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1)."""
    rank, rope = _int(c, "kv_lora_rank"), _int(c, "qk_rope_head_dim")
    nope, value = _int(c, "qk_nope_head_dim"), _int(c, "v_head_dim")
    query_rank = _int(c, "q_lora_rank")
    query = (query_rank or hidden) * heads * (nope + rope) + query_rank * hidden
    return query + hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden


def _shared_expert(c: Mapping[str, Any], hidden: int, width: int, matrices: int) -> int:
    shared = _int(c, "shared_expert_intermediate_size") or _int(c, "n_shared_experts") * width
    return matrices * hidden * shared


def _moe_layers(c: Mapping[str, Any], layers: int) -> int:
    dense_first = _int(c, "first_k_dense_replace")
    step = _int(c, "decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step") or 1
    dense_only = c.get("mlp_only_layers")
    left_out = len(dense_only) if isinstance(dense_only, list) else 0
    return max(0, (layers - dense_first) // step - left_out)


def _layer_kinds(c: Mapping[str, Any], layers: int, family: str) -> tuple[int, int, int]:
    """Window in tokens, layers that have it, layers without a cache."""
    window = _int(c, "sliding_window")
    if c.get("use_sliding_window") is False:
        window = 0
    kinds = c.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        windowed = sum(kind == "sliding_attention" for kind in kinds) if window else 0
        return (window if windowed else 0), windowed, sum(kind in _STATEFUL for kind in kinds)
    if interval := _int(c, "full_attention_interval"):  # linear attention but for every n-th layer
        return 0, 0, layers - layers // interval
    if not window:
        return 0, 0, 0
    if pattern := _int(c, "sliding_window_pattern") or _WINDOW_PATTERN.get(family, 0):
        return window, layers - layers // pattern, 0
    return window, layers, 0


def _positions(c: Mapping[str, Any]) -> int:
    """The longest sequence that the engine accepts by itself.

    Scaled ropes of the kinds yarn and the older linear and dynamic ones state the length before scaling
    in `max_position_embeddings` unless `original_max_position_embeddings` stands beside it.
    """
    stated = _int(c, "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
    length = stated or _DEFAULT_POSITIONS
    rope = c.get("rope_parameters") or c.get("rope_scaling")
    if not isinstance(rope, Mapping):
        return length
    kind = str(rope.get("rope_type") or rope.get("type") or "default")
    factor = rope.get("factor")
    if kind in ("default", "mrope", "llama3", "longrope", "su") or not _scales(factor):
        return length
    original = rope.get("original_max_position_embeddings")
    if isinstance(original, int) and original > 0:
        return max(length, int(original * factor)) if kind == "yarn" else length
    return int(length * factor)


def _scales(factor: object) -> TypeGuard[float]:
    return isinstance(factor, int | float) and not isinstance(factor, bool) and 1 <= factor <= _MOST_SCALED


def _int(c: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = c.get(name)
        if isinstance(value, list) and value and isinstance(value[0], int):
            value = value[0]  # one number per modality or layer, all the same
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0


def _positive(c: Mapping[str, Any], model: str, *names: str) -> int:
    if value := _int(c, *names):
        return value
    raise ConfigError(
        f"The config of {model} has no usable {names[0]}; it is not a model the engine can plan for."
    )
