"""Where a running engine differs from its plan is logged and counted."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from core.metrics import ENGINE_PLAN_DRIFT
from generation.plan_check import Drift

log = logging.getLogger(__name__)

_KINDS = ("kv_blocks", "block_size", "max_model_len", "dtype", "resident_bytes")


def tell_drifts(found: Sequence[Drift]) -> None:
    """Log each one and set the metric; kinds that are as planned are set to 0."""
    shares = {drift.what: drift.share for drift in found}
    for what in _KINDS:
        ENGINE_PLAN_DRIFT.labels(what).set(shares.get(what, 0.0))
    for drift in found:
        log.warning("engine_plan_drift", extra={"what": drift.what, "drift": str(drift)})
