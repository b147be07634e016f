"""From a model's config and the machine to an engine plan, or a refusal that names the legal choices.

Pure: facts in, plan out. The launcher asks before it starts anything, so that a size that cannot run is
refused in a sentence and not in a stack trace of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import ConfigError
from core.types import EnginePlan

CPU_BLOCK = 32  # the CPU attention kernels work on multiples of 32 tokens
PROMPT_OVERHEAD = 256  # tokens kept for instructions, chat template and question
SMALLEST_CONTEXT = 128  # tokens of evidence below which an answer cannot be grounded
_RAM_SHARE = 0.85  # of the memory, for weights and KV; the rest is the other processes and the page cache
_PAGE_SHARE = 0.25  # of what is left then, for the cache of vector pages
_STACK_BYTES = 3 << 30  # resident size of the other workers and the API, measured with the default packs
_DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "fp8": 1, "int8": 1}

# Languages that a model family writes well enough for `free`; from the publishers' model cards.
_FAMILY_LANGUAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("smollm", ("en",)),
    ("tinyllama", ("en",)),
    ("phi-", ("en",)),
    ("qwen", ("en", "zh")),
    ("glm", ("en", "zh")),
    ("yi-", ("en", "zh")),
    ("internlm", ("en", "zh")),
    ("deepseek", ("en", "zh")),
    ("minicpm", ("en", "zh")),
)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The numbers of a model's `config.json` that decide what can run.

    Attributes:
        dtype_bytes: bytes per weight and per KV element.
        weight_bytes: size of the weight files, 0 when unknown.
        max_positions: longest sequence the model was trained for.
    """

    name: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_positions: int
    dtype_bytes: int
    weight_bytes: int = 0

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one token over all layers, all tensor-parallel ranks together."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.dtype_bytes


@dataclass(frozen=True, slots=True)
class Machine:
    """What the engine may use.

    Attributes:
        device: `cpu` or `gpu`.
        devices: accelerators in one node (1 on CPU per memory node; ranks share the cores).
        nodes: machines that pipeline stages can spread over.
        memory_bytes: RAM on CPU, memory of one accelerator on GPU.
    """

    device: str
    cores: int
    memory_bytes: int
    devices: int = 1
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Wish:
    """What the settings ask for; see `GenerationSettings`."""

    kv_cache_bytes: int
    max_model_len: int
    max_num_seqs: int
    block_size: int
    answer_reserve: int
    enforce_eager: bool
    tensor_parallel: int = 1
    pipeline_parallel: int = 1


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan that is published, and what only the launcher needs.

    Attributes:
        kv_bytes_per_token: over all ranks.
        max_num_seqs: sequences that may run at once without running out of blocks.
        notes: where the plan is smaller than the wish, and why.
    """

    plan: EnginePlan
    kv_bytes_per_token: int
    max_num_seqs: int
    weight_bytes: int
    enforce_eager: bool
    notes: tuple[str, ...]


def model_shape(config: Mapping[str, Any], *, name: str, weight_bytes: int = 0) -> ModelShape:
    """Read a hub-style `config.json`; multimodal wrappers are looked through (`text_config`).

    Raises:
        ConfigError: a field that decides sizes is missing or not a positive number.
    """
    text = config.get("text_config")
    c: Mapping[str, Any] = text if isinstance(text, Mapping) else config
    heads = _positive(c, name, "num_attention_heads", "n_head")
    hidden = _positive(c, name, "hidden_size", "n_embd")
    dtype = str(c.get("dtype") or c.get("torch_dtype") or "bfloat16").removeprefix("torch.")
    return ModelShape(
        name=name,
        layers=_positive(c, name, "num_hidden_layers", "n_layer"),
        heads=heads,
        kv_heads=int(c.get("num_key_value_heads") or heads),
        head_dim=int(c.get("head_dim") or hidden // heads),
        vocab=_positive(c, name, "vocab_size"),
        max_positions=int(c.get("max_position_embeddings") or c.get("n_positions") or 2048),
        dtype_bytes=_DTYPE_BYTES.get(dtype, 2),
        weight_bytes=weight_bytes,
    )


def _positive(config: Mapping[str, Any], model: str, *names: str) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and value > 0:
            return value
    raise ConfigError(
        f"The config of {model} has no usable {names[0]}; it is not a model the engine can plan for."
    )


def known_languages(model: str) -> tuple[str, ...]:
    """Languages of the model's family; an unknown family counts as writing both."""
    lowered = model.lower()
    for family, languages in _FAMILY_LANGUAGES:
        if family in lowered:
            return languages
    return ("en", "zh")


def legal_tensor_parallel(shape: ModelShape, devices: int) -> tuple[int, ...]:
    """Sizes up to `devices` that split query and KV heads evenly, ascending."""
    return tuple(n for n in range(1, devices + 1) if shape.heads % n == 0 and shape.kv_heads % n == 0)


def make_plan(
    shape: ModelShape,
    machine: Machine,
    wish: Wish,
    *,
    tokenizer: str = "",
    languages: tuple[str, ...] = (),
) -> Planned:
    """Work out what the engine runs with.

    Args:
        shape: the model.
        machine: where it runs.
        wish: what was asked for; lengths and sequence counts are cut to what fits, sizes that cannot run
            are refused.
        tokenizer: where the tokenizer lives; default the model's name.
        languages: default `known_languages`.

    Raises:
        ConfigError: tensor or pipeline size, block size or memory cannot work; the detail has the legal
            choices.
    """
    _check_parallel(shape, machine, wish)
    _check_block(machine, wish)
    _check_memory(shape, machine, wish)
    notes: list[str] = []
    kv_blocks = wish.kv_cache_bytes // (shape.kv_bytes_per_token * wish.block_size)
    kv_tokens = kv_blocks * wish.block_size
    max_model_len = min(wish.max_model_len, shape.max_positions, kv_tokens)
    if max_model_len < wish.max_model_len:
        why = "the model's positions" if max_model_len == shape.max_positions else "the KV cache"
        notes.append(f"max_model_len cut from {wish.max_model_len} to {max_model_len} by {why}")
    context = max_model_len - wish.answer_reserve - PROMPT_OVERHEAD
    if context < SMALLEST_CONTEXT:
        need = SMALLEST_CONTEXT + wish.answer_reserve + PROMPT_OVERHEAD
        raise ConfigError(
            f"{max_model_len} tokens leave {context} for evidence; {need} are needed. Raise "
            f"GEO_GENERATION__KV_CACHE_BYTES to at least {need * shape.kv_bytes_per_token} and "
            f"GEO_GENERATION__MAX_MODEL_LEN to at least {need}, or lower GEO_GENERATION__ANSWER_RESERVE."
        )
    max_num_seqs = max(1, min(wish.max_num_seqs, kv_tokens // max_model_len))
    if max_num_seqs < wish.max_num_seqs:
        notes.append(
            f"max_num_seqs cut from {wish.max_num_seqs} to {max_num_seqs}: {kv_tokens} KV tokens hold no "
            f"more sequences of {max_model_len}"
        )
    pages = _vector_pages(shape, machine, wish)
    plan = EnginePlan(
        model=shape.name,
        tokenizer=tokenizer or shape.name,
        languages=languages or known_languages(shape.name),
        max_model_len=max_model_len,
        answer_reserve=wish.answer_reserve,
        context_budget=context,
        block_size=wish.block_size,
        kv_blocks=kv_blocks,
        kv_free_share=1.0,
        tp=wish.tensor_parallel,
        pp=wish.pipeline_parallel,
        vector_page_bytes=pages,
    )
    return Planned(
        plan, shape.kv_bytes_per_token, max_num_seqs, shape.weight_bytes, wish.enforce_eager, tuple(notes)
    )


def _check_parallel(shape: ModelShape, machine: Machine, wish: Wish) -> None:
    devices = machine.cores if machine.device == "cpu" else machine.devices
    legal = legal_tensor_parallel(shape, devices)
    tp, pp = wish.tensor_parallel, wish.pipeline_parallel
    if tp not in legal:
        raise ConfigError(
            f"Tensor parallel size {tp} cannot run {shape.name}: {shape.heads} heads and {shape.kv_heads} KV "
            f"heads must divide by it, and one node has {devices} {_unit(machine)}. Legal sizes here: "
            f"{_listed(legal)}. To spread over more machines use GEO_GENERATION__PIPELINE_PARALLEL."
        )
    if not 1 <= pp <= shape.layers:
        raise ConfigError(
            f"Pipeline parallel size {pp} cannot run {shape.name}: it has {shape.layers} layers. "
            f"Legal sizes: 1 to {shape.layers}."
        )
    if tp * pp > devices * machine.nodes:
        fits = tuple(n for n in range(1, shape.layers + 1) if tp * n <= devices * machine.nodes)
        raise ConfigError(
            f"{tp} × {pp} ranks need {tp * pp} {_unit(machine)}; there are {devices * machine.nodes}. "
            f"With tensor parallel size {tp} legal pipeline sizes are {_listed(fits)}."
        )
    if machine.device == "cpu" and pp > 1 and wish.enforce_eager:
        raise ConfigError(
            "Pipeline parallelism with eager execution fails on the CPU engine. Set "
            "GEO_GENERATION__ENFORCE_EAGER=false, or GEO_GENERATION__PIPELINE_PARALLEL=1."
        )


def _check_block(machine: Machine, wish: Wish) -> None:
    if machine.device == "cpu" and wish.block_size % CPU_BLOCK:
        raise ConfigError(
            f"KV blocks of {wish.block_size} tokens do not fit the CPU kernels. Legal sizes: 32, 64, 96, 128 "
            "and further multiples of 32 (GEO_GENERATION__BLOCK_SIZE)."
        )


def _check_memory(shape: ModelShape, machine: Machine, wish: Wish) -> None:
    ranks = wish.tensor_parallel * wish.pipeline_parallel
    ranks_per_memory = ranks if machine.device == "cpu" else 1
    share = ranks_per_memory / ranks
    need = (shape.weight_bytes + wish.kv_cache_bytes) * share
    have = machine.memory_bytes * _RAM_SHARE
    if need > have:
        spare = int(have / share) - shape.weight_bytes
        choice = (
            f"set GEO_GENERATION__KV_CACHE_BYTES to at most {spare}"
            if spare > 0
            else "use a smaller or quantized model, or more ranks"
        )
        raise ConfigError(
            f"{shape.name} needs {int(need) >> 20} MiB for weights and KV per memory; {int(have) >> 20} "
            f"MiB of {machine.memory_bytes >> 20} MiB may be used: {choice}."
        )


def _vector_pages(shape: ModelShape, machine: Machine, wish: Wish) -> int:
    """The vector page cache's part of what weights, KV blocks and the other processes leave.

    The rest is for search structures and the system's own file cache, from which missed pages are read. A
    larger KV cache shrinks the page cache and the other way round, so one number divides the machine.
    """
    if machine.device != "cpu":
        return 0  # vector pages live in RAM, which the accelerator's memory does not tell
    left = int(machine.memory_bytes * _RAM_SHARE) - shape.weight_bytes - wish.kv_cache_bytes - _STACK_BYTES
    return max(0, int(left * _PAGE_SHARE))


def memory_shares(planned: Planned, machine: Machine, kv_cache_bytes: int) -> dict[str, int]:
    """Bytes of the RAM that each part of one machine gets; empty where the engine has memory of its own.

    `rest` is for search structures, tokenizers, parsers and the system's file cache.
    """
    if machine.device != "cpu":
        return {}
    parts = {
        "weights": planned.weight_bytes,
        "kv_blocks": kv_cache_bytes,
        "other_processes": _STACK_BYTES,
        "vector_pages": planned.plan.vector_page_bytes,
    }
    return {**parts, "rest": max(0, machine.memory_bytes - sum(parts.values()))}


def _unit(machine: Machine) -> str:
    return "cores" if machine.device == "cpu" else "accelerators"


def _listed(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes)) or "none"
