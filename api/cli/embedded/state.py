"""What is written in the run folder: the lock that lets one stack run, and the stack's state."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.errors import ConfigError
from core.settings import Settings


def prepare_folders(settings: Settings) -> None:
    """Make the data and run folders; the run folder is ours alone.

    Raises:
        ConfigError: the run folder belongs to somebody else or others may enter it.
    """
    for folder in (settings.root, log_dir(settings), settings.blob_dir, settings.index_dir):
        folder.mkdir(parents=True, exist_ok=True)
    run = settings.run_dir
    run.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = run.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        raise ConfigError(f"{run} is not a folder of this user; remove it and start again")
    run.chmod(0o700)


def log_dir(settings: Settings) -> Path:
    """Folder of the processes' logs."""
    return settings.root / "logs"


def _lock_path(settings: Settings) -> Path:
    return settings.run_dir / "up.lock"


def _state_path(settings: Settings) -> Path:
    return settings.run_dir / "stack.json"


@contextmanager
def stack_lock(settings: Settings) -> Generator[int]:
    """Hold the right to run the stack of this data folder. Yields the lock's file descriptor.

    Raises:
        ConfigError: a stack is running already.
    """
    descriptor = os.open(_lock_path(settings), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            state = read_state(settings)
            where = f"at {state['url']}, " if state.get("url") else ""
            raise ConfigError(
                f"the stack of {settings.root} is already running ({where}pid {state.get('pid', '?')}); "
                "stop it with: geo down"
            ) from None
        yield descriptor
    finally:
        os.close(descriptor)


def is_running(settings: Settings) -> bool:
    """Whether a supervisor holds the lock."""
    try:
        descriptor = os.open(_lock_path(settings), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def write_state(settings: Settings, state: dict[str, Any]) -> None:
    """Replace the state file in one step."""
    path = _state_path(settings)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(state), encoding="utf-8")
    draft.replace(path)


def read_state(settings: Settings) -> dict[str, Any]:
    """The state file as last written, or an empty dict."""
    try:
        return json.loads(_state_path(settings).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def clear_state(settings: Settings) -> None:
    """Remove the state file."""
    _state_path(settings).unlink(missing_ok=True)
