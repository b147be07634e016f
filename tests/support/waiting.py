"""Waiting for what another thread does: a loaded machine takes longer, and a test must not care."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(fact: Callable[[], object], within_s: float = 30.0) -> None:
    """Return as soon as the fact holds; fail when it does not within the time."""
    end = time.monotonic() + within_s
    while not fact():
        assert time.monotonic() < end, f"not within {within_s:g} s"
        time.sleep(0.01)
