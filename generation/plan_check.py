"""The plan against what the engine reports once it runs. Pure.

A plan is arithmetic; an engine measures. Where they differ by more than a bound, budgets that were made from
the plan are wrong, and an operator should hear of it before a user does.
"""

from __future__ import annotations

from dataclasses import dataclass

from generation.plan_wish import Planned

_EXACT = 0.02  # of blocks that the engine was told to make; the rest of a page is lost
_MEASURED = 0.15  # of blocks that it makes from what is left of an accelerator's memory
_PROCESS_BYTES = 1 << 30  # interpreter, libraries and buffers of a rank, on top of weights and KV blocks


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What a running engine says of itself; None where it does not say.

    Attributes:
        kv_blocks: as the engine counts them.
        dtype: it computes in.
        resident_bytes: RAM of its processes (CPU).
    """

    kv_blocks: int | None = None
    block_size: int | None = None
    max_model_len: int | None = None
    dtype: str | None = None
    resident_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference. `share` is relative to the plan, positive where the engine has more."""

    what: str
    planned: int | str
    reported: int | str
    share: float

    def __str__(self) -> str:
        """For a log and for readiness."""
        return f"{self.what}: planned {self.planned}, the engine reports {self.reported}"


def drifts(planned: Planned, report: EngineReport) -> tuple[Drift, ...]:
    """What differs by more than its bound, in the order of `EngineReport`."""
    plan, found = planned.plan, list[Drift]()
    bound = _EXACT if planned.kv_exact else _MEASURED
    if report.kv_blocks is not None and planned.engine_blocks:
        share = report.kv_blocks / planned.engine_blocks - 1
        if abs(share) > bound:
            found.append(Drift("kv_blocks", planned.engine_blocks, report.kv_blocks, share))
    for what, wanted, reported in (
        ("block_size", plan.block_size, report.block_size),
        ("max_model_len", plan.max_model_len, report.max_model_len),
    ):
        if reported is not None and reported != wanted:
            found.append(Drift(what, wanted, reported, reported / wanted - 1))
    if report.dtype is not None and planned.dtype not in ("auto", report.dtype):
        found.append(Drift("dtype", planned.dtype, report.dtype, 0.0))
    if report.resident_bytes is not None and planned.host_bytes:
        most = planned.host_bytes + max(1, plan.tp * plan.pp) * _PROCESS_BYTES
        if report.resident_bytes > most:
            share = report.resident_bytes / most - 1
            found.append(Drift("resident_bytes", most, report.resident_bytes, share))
    return tuple(found)
