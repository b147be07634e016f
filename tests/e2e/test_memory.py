"""What the whole stack holds in memory as people start it: the default settings, so 1 GiB of KV cache."""

from __future__ import annotations

import pytest

from tests.e2e.stack import Stack

BOUND = 6_000_000_000
TEXT = "The mill at Rowan Bridge has two wheels. Its keeper is Ada Lind, who came from Oslo in 1994.\n"

pytestmark = [pytest.mark.engine, pytest.mark.soak, pytest.mark.timeout(600)]


def told(stack: Stack) -> tuple[int, str]:
    """Resident bytes of the stack, and the table of its processes."""
    seen = stack.status()
    rows = [f"{p['name']:<18} {p['rss_bytes'] / 1e9:.2f} GB" for p in seen["processes"]]
    return seen["rss_bytes"], "\n".join(rows)


def test_the_idle_stack_stays_below_six_gigabytes(tmp_path_factory: pytest.TempPathFactory) -> None:
    stack = Stack(
        tmp_path_factory.mktemp("memory") / "geo", extra_env={"GEO_GENERATION__KV_CACHE_BYTES": str(1 << 30)}
    )
    stack.up()
    try:
        started, table = told(stack)
        assert started < BOUND, table
        collection = stack.collection("mill")
        stack.ready(collection, "mill.txt", TEXT)
        answer = stack.ask(collection, "Who keeps the mill at Rowan Bridge?", policy={"mode": "extract"})
        assert answer["status"] == "answered"
        used, table = told(stack)
        assert used - started < 1_000_000_000, table
    finally:
        stack.down()
