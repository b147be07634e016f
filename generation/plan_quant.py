"""Number formats: what the weights are stored in, and which device can compute with them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import ConfigError

DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "fp8": 1, "int8": 1}


@dataclass(frozen=True, slots=True)
class Quantization:
    """How the linear layers of a checkpoint are stored.

    Attributes:
        method: as `quantization_config.quant_method` has it.
        bits: of a weight.
        group: weights that share a scale along the input; 0: a whole channel or tensor.
        block: rows and columns that share a scale (fp8 blocks); 0: none.
        floating: fp4 or fp8 instead of integers.
        activation_bits: 8 where activations are quantized too, else 16.
        experts_only: attention and dense layers are left as they were (mxfp4 of gpt-oss).
    """

    method: str
    bits: int
    group: int = 0
    block: int = 0
    floating: bool = False
    activation_bits: int = 16
    experts_only: bool = False

    @property
    def stored_bits(self) -> float:
        """Bits of a weight with its share of the scales (16 bits, or 8 for mx formats) and zero points."""
        if not self.group:
            return float(self.bits)
        scale = 8 if self.method == "mxfp4" else 16
        zero = self.bits if self.method in ("awq", "gptq") else 0
        return self.bits + (scale + zero) / self.group

    @property
    def divides(self) -> int:
        """A rank's part of a layer's width must be a multiple of this."""
        return self.block or self.group or 1

    @property
    def label(self) -> str:
        """For people: `awq w4a16 g128`."""
        kind = "fp" if self.floating and self.bits == 4 else "w"
        group = f" g{self.group}" if self.group else f" block{self.block}" if self.block else ""
        return f"{self.method} {kind}{self.bits}a{self.activation_bits}{group}"


def quantization_of(config: Mapping[str, Any], model: str) -> Quantization | None:
    """Read `quantization_config` (or `compression_config`); None when weights are plain.

    Raises:
        ConfigError: a method that is not known here, so that no size would be a guess.
    """
    raw = config.get("quantization_config") or config.get("compression_config")
    if not isinstance(raw, Mapping):
        return None
    method = str(raw.get("quant_method") or raw.get("quant_algo") or "").lower()
    bits, group = _number(raw, "bits", "w_bit") or 4, _number(raw, "group_size", "q_group_size")
    if method in ("awq", "gptq", "gptq_marlin", "awq_marlin", "auto-round", "intel/auto-round"):
        base = "awq" if "awq" in method else "gptq"
        return Quantization(base, bits, group or (0 if raw.get("group_size") == -1 else 128))
    if method in ("fp8", "fbgemm_fp8"):
        block = raw.get("weight_block_size")
        size = int(block[0]) if isinstance(block, list) and block else 0
        return Quantization(method, 8, block=size, floating=True, activation_bits=8)
    if method in ("compressed-tensors", "compressed_tensors"):
        return _compressed_tensors(raw)
    if method == "bitsandbytes":
        return Quantization(method, 8 if raw.get("load_in_8bit") else 4, 0 if raw.get("load_in_8bit") else 64)
    if method == "mxfp4":
        return Quantization(method, 4, 32, floating=True, experts_only=True)
    if method in ("modelopt", "modelopt_fp4", "nvfp4"):
        four = "fp4" in f"{method} {raw.get('quant_algo', '')}".lower()
        return (
            Quantization("modelopt_fp4", 4, 16, floating=True, activation_bits=4)
            if four
            else Quantization("modelopt", 8, floating=True, activation_bits=8)
        )
    raise ConfigError(
        f"{model} is quantized by {method or 'an unnamed method'}, which is not planned for. Known: awq, "
        "gptq, fp8, compressed-tensors, bitsandbytes, mxfp4, modelopt. Use such a checkpoint or one without."
    )


def _compressed_tensors(raw: Mapping[str, Any]) -> Quantization:
    groups = raw.get("config_groups")
    first: Mapping[str, Any] = next(iter(groups.values()), {}) if isinstance(groups, Mapping) else {}
    weights = first.get("weights") or {}
    inputs = first.get("input_activations") or {}
    block = weights.get("block_structure")
    return Quantization(
        "compressed-tensors",
        int(weights.get("num_bits") or 8),
        int(weights.get("group_size") or 0) if weights.get("strategy") in ("group", "tensor_group") else 0,
        int(block[0]) if weights.get("strategy") == "block" and isinstance(block, list) and block else 0,
        weights.get("type") == "float",
        int(inputs.get("num_bits") or 16),
    )


def least_capability(quantization: Quantization) -> tuple[int, int]:
    """Compute capability from which vLLM 0.32 has kernels for it (its `get_min_capability`)."""
    return {
        "awq": (7, 5),
        "gptq": (6, 0),
        "fp8": (7, 5),
        "fbgemm_fp8": (8, 0),
        "bitsandbytes": (7, 0),
        "mxfp4": (8, 0),
        "modelopt": (8, 0),
        "modelopt_fp4": (7, 5),
        "compressed-tensors": (7, 5),  # fp8 weights with 8-bit activations below 8.9 become 8-bit with 16
    }[quantization.method]


def cpu_refusal(quantization: Quantization) -> str:
    """Why the CPU engine cannot run it, or empty.

    vLLM on the CPU has kernels for 4-bit AWQ and GPTQ and for compressed-tensors W8A8 and W4A16.
    """
    if quantization.method in ("awq", "gptq") and quantization.bits == 4:
        return ""
    if quantization.method == "compressed-tensors" and not quantization.floating:
        return ""
    return (
        f"{quantization.label} has no CPU kernels; the CPU engine runs bf16, fp16 and fp32 weights, 4-bit "
        "AWQ and GPTQ, and integer compressed-tensors (W8A8, W4A16)"
    )


def compute_dtype(dtype: str, capability: tuple[int, int] | None) -> tuple[str, str]:
    """The type to compute in, and a note where it differs from the stored one.

    Args:
        dtype: stored type.
        capability: of the accelerator; None on a CPU.
    """
    if dtype in ("float32", "float64", "float8_e4m3fn"):
        wanted = "bfloat16"
        note = f"{dtype} weights are read as bfloat16 (half the memory)" if dtype == "float32" else ""
    else:
        wanted, note = dtype, ""
    if wanted == "bfloat16" and capability is not None and capability < (8, 0):
        name = ".".join(map(str, capability))
        return "float16", f"bfloat16 needs compute capability 8.0, this device has {name}: float16 instead"
    return wanted, note


def _number(raw: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = raw.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0
