"""Ends what a killed supervisor leaves behind. Run as a script, without our packages, so that it stays tiny.

The supervisor writes one line per child to our standard input: `+PGID` when it starts, `-PGID` when it
has ended, in start order. End of file without a `bye` line means that the supervisor was killed: every
process group that is left gets SIGTERM, newest first, and SIGKILL after a grace time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

_GRACE_S = 8.0


def _signal(groups: list[int], number: int) -> None:
    for group in reversed(groups):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main() -> None:
    """Follow the supervisor until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: list[int] = []
    for line in sys.stdin:
        word = line.strip()
        if word == "bye":
            return
        if word.startswith("+"):
            groups.append(int(word[1:]))
        elif word.startswith("-") and int(word[1:]) in groups:
            groups.remove(int(word[1:]))
    _signal(groups, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline and any(_alive(g) for g in groups):
        time.sleep(0.1)
    _signal(groups, signal.SIGKILL)


if __name__ == "__main__":
    main()
