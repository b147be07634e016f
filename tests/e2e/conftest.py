from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One embedded stack for all end-to-end tests, with the real engine."""
    running = Stack(tmp_path_factory.mktemp("e2e") / "geo")
    running.up()
    yield running
    running.down()


@pytest.fixture(scope="session")
def samples() -> Path:
    return Path(__file__).parents[2] / "docs" / "samples"
