"""What cannot run, whatever the memory: formats, ranks, block sizes. Pure."""

from __future__ import annotations

from generation.plan_machine import Machine
from generation.plan_model import ModelFacts
from generation.plan_parallel import legal_tensor_parallel, nodes_for, tensor_objections
from generation.plan_quant import cpu_refusal, least_capability
from generation.plan_wish import PlanRefused, Wish

CPU_BLOCK = 32  # the CPU attention kernels work on multiples of 32 tokens
CPU_HEADS = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)  # elements per head that they were built for
_GPU_BLOCK = 16
_MLA_BLOCK = 64  # what the latent-attention kernels of Hopper and Blackwell take
_REFERENCE_MLA_BLOCK = 16  # of the CPU's latent attention without AMX
_DTYPES = ("auto", "bfloat16", "float16", "float32")
_KV_DTYPES = ("auto", "fp8")
_FP8_KV_CAPABILITY = (8, 9)


def check_formats(facts: ModelFacts, machine: Machine, wish: Wish) -> None:
    """Number formats against the device.

    Raises:
        PlanRefused: no kernels for the checkpoint's quantization or heads, or for the type asked for.
    """
    reasons: list[str] = []
    if machine.on_cpu and not facts.mla and facts.head_dim not in CPU_HEADS:
        # The engine would start, and die of its first request.
        reasons.append(
            f"{facts.name} has {facts.head_dim} elements per head; the CPU's attention takes "
            + ", ".join(map(str, CPU_HEADS))
        )
    quantization = facts.quantization
    if quantization and machine.on_cpu and (why := cpu_refusal(quantization)):
        reasons.append(why)
    if quantization and machine.capability and machine.capability < least_capability(quantization):
        need, have = (".".join(map(str, c)) for c in (least_capability(quantization), machine.capability))
        reasons.append(f"{quantization.label} needs compute capability {need}, {machine.name} has {have}")
    if wish.dtype not in _DTYPES:
        reasons.append(f"dtype {wish.dtype} is none of {', '.join(_DTYPES)}")
    elif wish.dtype == "bfloat16" and machine.capability and machine.capability < (8, 0):
        reasons.append(
            f"bfloat16 needs compute capability 8.0, {machine.name} has no such units; use float16"
        )
    if wish.kv_cache_dtype not in _KV_DTYPES:
        reasons.append(f"kv_cache_dtype {wish.kv_cache_dtype} is none of {', '.join(_KV_DTYPES)}")
    elif wish.kv_cache_dtype == "fp8" and not _has_fp8_cache(machine):
        reasons.append("an fp8 KV cache needs compute capability 8.9, or AVX-512 on a CPU; use auto")
    if reasons:
        raise PlanRefused(
            tuple(reasons), hint="Plain bf16 or fp16 weights run everywhere." if quantization else ""
        )


def _has_fp8_cache(machine: Machine) -> bool:
    if machine.on_cpu:
        return bool({"avx512", "amx_bf16"} & set(machine.isa))
    return machine.capability is None or machine.capability >= _FP8_KV_CAPABILITY


def check_ranks(facts: ModelFacts, machine: Machine, wish: Wish) -> None:
    """The tensor and pipeline sizes that were asked for, against the model and the machine.

    Raises:
        PlanRefused: a size does not divide the model, does not fit a node, or needs more than there is.
    """
    tp, pp = wish.tensor_parallel or 1, wish.pipeline_parallel or 1
    unit = "cores" if machine.on_cpu else "accelerators"
    here = machine.ranks_per_node
    objections = list(tensor_objections(facts, tp))
    if tp > here:
        objections.append(f"one node has {here} {unit}, and tensor parallelism stays inside a node")
    if objections:
        legal = ", ".join(map(str, legal_tensor_parallel(facts, here)))
        raise PlanRefused(
            (f"Tensor parallel size {tp} cannot run {facts.name}: {'; '.join(objections)}",),
            hint=f"Legal sizes here: {legal}. To spread over more machines use "
            "GEO_GENERATION__PIPELINE_PARALLEL.",
        )
    if pp > facts.layers:
        raise PlanRefused(
            (f"Pipeline parallel size {pp} cannot run {facts.name}: it has {facts.layers} layers",),
            hint=f"Legal sizes: 1 to {facts.layers}.",
        )
    if not nodes_for(tp, pp, machine):
        total = here * machine.nodes
        fits = [n for n in range(1, min(facts.layers, total) + 1) if nodes_for(tp, n, machine)]
        raise PlanRefused(
            (f"{tp} × {pp} ranks need {tp * pp} {unit}, as many on each node; there are {total} on "
             f"{machine.nodes}",),
            hint=f"With tensor parallel size {tp} legal pipeline sizes are "
            f"{', '.join(map(str, fits)) or 'none'}.",
        )  # fmt: skip
    if machine.on_cpu and pp > 1 and wish.enforce_eager:
        raise PlanRefused(
            ("Pipeline parallelism with eager execution fails on the CPU engine",),
            hint="Set GEO_GENERATION__ENFORCE_EAGER=false, or GEO_GENERATION__PIPELINE_PARALLEL=1.",
        )


def block_size_for(facts: ModelFacts, machine: Machine, wish: Wish) -> int:
    """Tokens per KV block: by default the smallest of the kernels, for half a block per sequence is lost.

    Raises:
        PlanRefused: the size asked for is none of theirs.
    """
    if reference_latent(facts, machine):
        return _REFERENCE_MLA_BLOCK
    wanted = wish.block_size
    if machine.on_cpu:
        if wanted % CPU_BLOCK:
            raise PlanRefused(
                (f"KV blocks of {wanted} tokens do not fit the CPU kernels",),
                hint="Legal sizes: 32, 64, 96, 128 and further multiples of 32 (GEO_GENERATION__BLOCK_SIZE).",
            )
        return wanted or CPU_BLOCK
    step = _MLA_BLOCK if facts.mla else _GPU_BLOCK
    if wanted % step:
        raise PlanRefused(
            (f"KV blocks of {wanted} tokens do not fit the kernels of this model",),
            hint=f"Legal sizes: multiples of {step} (GEO_GENERATION__BLOCK_SIZE).",
        )
    return wanted or step


def prefix_caching_for(facts: ModelFacts, machine: Machine) -> bool:
    """Whether cached prefixes and prompts in pieces work; not on the CPU's reference latent attention."""
    return not reference_latent(facts, machine)


def reference_latent(facts: ModelFacts, machine: Machine) -> bool:
    """Latent attention on a CPU without AMX runs on the reference kernels."""
    return facts.mla and machine.on_cpu and "amx_bf16" not in machine.isa
