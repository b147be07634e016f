"""Published figures of accelerators: the roofs under which a plan's speed is stated. Pure.

Memory in GiB as the driver reports it (about), bandwidth in GB/s, dense 16-bit and 8-bit (fp8, else int8)
TFLOP/s without sparsity, from the vendor's data sheets.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One kind of device. `bandwidth` in bytes/s, `flops` and `flops8` in operations/s."""

    name: str
    memory_bytes: int
    capability: tuple[int, int]
    bandwidth: float
    flops: float
    flops8: float
    link: str


#: (words that the driver's name holds, memory GiB, capability, GB/s, TFLOP/s 16-bit, TFLOP/s 8-bit, link);
#: the first row whose words are all in the name is taken, so longer names stand first.
_ROWS: tuple[tuple[str, float, tuple[int, int], float, float, float, str], ...] = (
    ("b200", 179, (10, 0), 8000, 2250, 4500, "nvlink"),
    ("h200", 140, (9, 0), 4800, 989, 1979, "nvlink"),
    ("gh200", 95, (9, 0), 4000, 989, 1979, "nvlink"),
    ("h100 nvl", 94, (9, 0), 3900, 835, 1671, "nvlink"),
    ("h100 pcie", 80, (9, 0), 2000, 756, 1513, "pcie"),
    ("h100", 80, (9, 0), 3350, 989, 1979, "nvlink"),
    ("h20", 95, (9, 0), 4000, 148, 296, "nvlink"),
    ("a100 40gb", 40, (8, 0), 1555, 312, 624, "nvlink"),
    ("a100 pcie", 80, (8, 0), 1935, 312, 624, "pcie"),
    ("a100", 80, (8, 0), 2039, 312, 624, "nvlink"),
    ("l40s", 45, (8, 9), 864, 362, 733, "pcie"),
    ("l40", 45, (8, 9), 864, 181, 362, "pcie"),
    ("l4", 22, (8, 9), 300, 121, 242, "pcie"),
    ("a10g", 22, (8, 6), 600, 70, 140, "pcie"),
    ("a10", 22, (8, 6), 600, 125, 250, "pcie"),
    ("rtx 6000 ada", 48, (8, 9), 960, 182, 364, "pcie"),
    ("rtx a6000", 48, (8, 6), 768, 155, 310, "pcie"),
    ("rtx 5090", 32, (12, 0), 1792, 209, 419, "pcie"),
    ("rtx 4090", 24, (8, 9), 1008, 165, 330, "pcie"),
    ("rtx 3090", 24, (8, 6), 936, 71, 142, "pcie"),
    ("v100 32gb", 32, (7, 0), 900, 125, 0, "nvlink"),
    ("v100", 16, (7, 0), 900, 125, 0, "nvlink"),
    ("t4", 15, (7, 5), 320, 65, 130, "pcie"),
)


def accelerator(name: str) -> Accelerator | None:
    """Figures of the accelerator with this name (`NVIDIA H100 80GB HBM3`, `h100`); None: not in the table."""
    words = set(name.lower().replace("-", " ").replace("_", " ").split())
    for key, memory, capability, bandwidth, flops, flops8, link in _ROWS:
        if set(key.split()) <= words:
            return Accelerator(
                key, int(memory * GIB), capability, bandwidth * 1e9, flops * 1e12, flops8 * 1e12, link
            )
    return None


def known_accelerators() -> tuple[str, ...]:
    """Names of the table."""
    return tuple(row[0] for row in _ROWS)
