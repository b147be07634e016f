"""The lock names every package that any supported Python needs, wherever it was written."""

from __future__ import annotations

from pathlib import Path

from packaging.markers import Marker

from scripts.lock import PYTHONS, _applies, locked

ROOT = Path(__file__).parents[2]
NONE: frozenset[str] = frozenset()


def test_the_lock_names_what_the_project_needs():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = [line.partition("==")[0] for line in lines if not line.startswith("#")]
    assert names == [line.partition("==")[0] for line in locked(ROOT / "pyproject.toml")]


def test_the_lock_is_made_for_the_pythons_that_the_project_takes():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = PYTHONS[0].rpartition(".")[0]
    assert f'requires-python = ">={oldest}"' in text


def test_what_only_an_older_patch_release_or_an_extra_needs_is_locked():
    assert _applies(Marker('python_full_version < "3.11.3"'), NONE)
    assert _applies(Marker('python_version >= "3.13"'), NONE)
    assert _applies(Marker('extra == "redis"'), frozenset({"redis"}))
    assert not _applies(Marker('extra == "redis"'), NONE)
    assert not _applies(Marker('python_version < "3.11"'), NONE)
    assert not _applies(Marker('sys_platform == "win32"'), NONE)
