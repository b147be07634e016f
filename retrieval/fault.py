"""One thing that a check of the index finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong.

    Attributes:
        check: stable name.
        count: how many ids, rows or files.
        detail: what it means, with the first few of them.
        mend: the command or request that puts it right.
    """

    check: str
    count: int
    detail: str
    mend: str


def some(names: Sequence[object], total: int | None = None) -> str:
    """The first few of them, and whether there are more."""
    more = (len(names) if total is None else total) > _SHOWN
    return ", ".join(str(name) for name in names[:_SHOWN]) + (" …" if more else "")
