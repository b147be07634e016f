"""The process that parses: one request in, progress and one reply out, until the parent closes the pipe.

Messages are a little-endian length of eight bytes and a pickle. Requests are `(task, arguments)`, replies
`(kind, value)`: any number of `progress`, then one of `done`, `rejected` (reason, detail), `out_of_memory`,
`fatal` (what, where) and `broken`; after the last three the parent starts a new process.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from core.errors import DocumentRejected
from ingest.parse.model import ParsedDocument, ParseOptions
from ingest.parse.progress import PagesRead, listen

if TYPE_CHECKING:
    from ingest.parse.page_picture import PagePicture

HEADER = struct.Struct("<Q")
_TELL_EVERY_S = 0.2
_PARENT_POLL_S = 1.0
# Native libraries name it in their own words.
_ALLOCATION = ("bad allocation", "bad_alloc", "failed to allocate", "insufficient memory", "out of memory")


def parse(path: str, file_name: str, declared_type: str, options: ParseOptions) -> ParsedDocument:
    """Read a document."""
    from ingest.parse import parse_bytes

    return parse_bytes(Path(path).read_bytes(), file_name, declared_type, options)


def draw_page(path: str, media_type: str, page: int, width: int) -> PagePicture:
    """A page as a picture of `width` pixels."""
    from ingest.parse.page_picture import page_picture

    return page_picture(Path(path).read_bytes(), media_type, page, width)


TASKS: dict[str, Callable[..., Any]] = {"parse": parse, "draw_page": draw_page}


class _Teller:
    """Sends progress, but not more often than anybody looks at it."""

    def __init__(self, send: Callable[[str, Any], None]) -> None:
        self._send = send
        self._next = 0.0
        self._recognising = False

    def __call__(self, pages: PagesRead) -> None:
        now = time.monotonic()
        if now < self._next and pages.recognising is self._recognising and pages.done < pages.total:
            return
        self._next, self._recognising = now + _TELL_EVERY_S, pages.recognising
        self._send("progress", pages)


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until the pipe closes."""

    def send(kind: str, value: Any) -> None:
        message = pickle.dumps((kind, value), protocol=pickle.HIGHEST_PROTOCOL)
        sink.write(HEADER.pack(len(message)) + message)
        sink.flush()

    while True:
        header = source.read(HEADER.size)
        if len(header) < HEADER.size:
            return
        task, arguments = pickle.loads(source.read(HEADER.unpack(header)[0]))  # noqa: S301 - written by our own parent
        listen(_Teller(send))
        send(*_reply(task, arguments))


def _reply(task: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "done", TASKS[task](*arguments)
    except DocumentRejected as error:
        return "rejected", (error.code, error.detail)
    except MemoryError:
        return "out_of_memory", None
    except ImportError as error:  # no file can do that: the installation is incomplete
        return "broken", str(error)
    except Exception as error:  # noqa: BLE001 - whatever a parser raises on a hostile file is that file's fault
        if any(words in str(error).lower() for words in _ALLOCATION):
            return "out_of_memory", None
        return "fatal", (f"{type(error).__name__}: {str(error)[:200]}", _place_of(error))


def _place_of(error: BaseException) -> str:
    """File and line of ours that raised or called what raised."""
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "/ingest/" in f.filename]
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""


def _end_with_parent() -> None:
    """A killed parent closes the pipe, but a parser deep in a page would not look at it for minutes."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_S)
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def main() -> None:
    """Limit this process and serve."""
    import gc
    import resource
    import warnings

    warnings.simplefilter("ignore")  # libraries complain of damaged files at length; the reply says it once

    memory_bytes = int(sys.argv[1])
    # Mapped libraries count too: the parent's watch on resident memory is the exact cap, this the hard stop.
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes + (1 << 30), memory_bytes + (1 << 30)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Blocks of a document live until the reply and form no cycles; looking through them at Python's usual
    # pace cost a third of the time on a sheet of 500,000 cells.
    gc.set_threshold(100_000, 50, 50)
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not write into the reply
    _end_with_parent()
    serve(sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
