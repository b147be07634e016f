"""How far the reading of a document has come, told to whoever watches the process that reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Listener = Callable[["PagesRead"], None]


@dataclass(frozen=True, slots=True)
class PagesRead:
    """Pages of the document that are read.

    Attributes:
        done, total: pages.
        recognising: the next page is being recognised as a picture, which takes seconds rather than
            milliseconds.
    """

    done: int
    total: int
    recognising: bool = False


def _nobody(_: PagesRead) -> None:
    return None


_listener: Listener = _nobody


def listen(listener: Listener | None) -> None:
    """Send what this process's parsers tell to `listener`; None stops it."""
    global _listener  # a process reads one document at a time
    _listener = listener or _nobody


def tell_pages(done: int, total: int, *, recognising: bool = False) -> None:
    """Called by a parser after each page, and before one that it recognises as a picture."""
    _listener(PagesRead(done, total, recognising))
