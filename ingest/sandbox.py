"""Parsing in a process of its own, so that a hostile or huge file cannot take a worker down.

The child is `python -m ingest.sandbox_child`: a plain subprocess, because prefork workers are daemonic and
may not have `multiprocessing` children. It stays warm between documents, has its address space capped, and is
killed and replaced when a document takes too long, needs too much memory or is not wanted any more.
"""

from __future__ import annotations

import logging
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.errors import DocumentRejected, PermanentError, TransientError
from core.settings import IngestSettings, get_settings
from ingest.parse.model import Limits, OcrMode, ParsedDocument, ParseOptions
from ingest.parse.progress import PagesRead
from ingest.sandbox_child import HEADER

log = logging.getLogger(__name__)

# Reused this often at most: pdfium and lxml keep memory that their documents no longer need.
_DOCUMENTS_PER_CHILD = 200
_POLL_S = 0.1
_WATCH_S = 1.0

Watch = Callable[[PagesRead | None], None]
"""Told about once a second how far the reading is (None: not known); what it raises ends the reading."""


def options_of(settings: IngestSettings) -> ParseOptions:
    """How documents are read by default."""
    limits = Limits(
        settings.max_chars, settings.max_inflated_bytes, settings.max_inflation_ratio, settings.max_members
    )
    return ParseOptions(
        limits=limits,
        ocr=OcrMode(settings.ocr),
        ocr_max_pages=settings.ocr_max_pages,
        keep_hidden=settings.keep_hidden_text,
    )


class ParseSandbox:
    """One warm child process; thread-safe, one document at a time."""

    def __init__(self, settings: IngestSettings | None = None) -> None:
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._served = 0
        self._lock = threading.Lock()

    def parse(
        self,
        path: Path,
        file_name: str,
        declared_type: str = "",
        options: ParseOptions | None = None,
        watch: Watch | None = None,
    ) -> ParsedDocument:
        """Read the file at `path`; without `options`, as the settings say.

        Raises:
            DocumentRejected: as `parse_bytes`; also `timeout` and `too_big` (out of memory), and `corrupt`
                when the parser crashed on it.
        """
        options = options or options_of(self._settings or get_settings().ingest)
        return self.run("parse", (str(path), file_name, declared_type, options), watch)

    def run(self, task: str, arguments: tuple[Any, ...], watch: Watch | None = None) -> Any:
        """Have the child do one of `sandbox_child.TASKS`; raises as `parse`."""
        settings = self._settings or get_settings().ingest
        with self._lock:
            child = self._ready_child(settings.parse_memory_bytes)
            try:
                kind, value = _Conversation(child, settings, watch).ask(pickle.dumps((task, arguments)))
            except BaseException:
                self._stop()
                raise
            if kind in ("fatal", "out_of_memory", "broken"):
                self._stop()
        return _unwrapped(kind, value)

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._stop()

    def _ready_child(self, memory_bytes: int) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():  # after a fork the child belongs to the parent
            self._child = None
        if self._child is not None and (
            self._child.poll() is not None or self._served >= _DOCUMENTS_PER_CHILD
        ):
            self._stop()
        if self._child is None:
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            self._child = subprocess.Popen(  # noqa: S603 - our own module, no input in the arguments
                [sys.executable, "-m", "ingest.sandbox_child", str(memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                cwd=Path(__file__).resolve().parent.parent,
            )
            self._owner = os.getpid()
            self._served = 0
        self._served += 1
        return self._child

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


class _Conversation:
    """One request to the child: its messages, its time and its memory."""

    def __init__(self, child: subprocess.Popen[bytes], settings: IngestSettings, watch: Watch | None) -> None:
        self._child, self._settings, self._watch = child, settings, watch
        self._time = Allowance(settings, time.monotonic())
        self._pages: PagesRead | None = None
        self._next_poll = self._next_watch = 0.0

    def ask(self, request: bytes) -> tuple[str, Any]:
        """Send the request and return the last message, `(kind, value)`."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write(HEADER.pack(len(request)) + request)
            self._child.stdin.flush()
        except BrokenPipeError as error:
            raise TransientError("the parser process ended before it took the document") from error
        self._next_watch = time.monotonic() + _WATCH_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while True:
                size = HEADER.unpack(self._read(selector, HEADER.size))[0]
                kind, value = pickle.loads(self._read(selector, size))  # noqa: S301 - written by our own child
                if kind != "progress":
                    return kind, value
                self._time.told(value, time.monotonic())
                self._pages = value

    def _read(self, selector: selectors.BaseSelector, size: int) -> bytes:
        assert self._child.stdout is not None
        parts: list[bytes] = []
        missing = size
        while missing:
            ready = selector.select(_POLL_S)
            self._look_after()
            if not ready:
                continue
            part = os.read(self._child.stdout.fileno(), min(missing, 1 << 20))
            if not part:
                raise _crashed(self._child)
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _look_after(self) -> None:
        now = time.monotonic()
        if now < self._next_poll:
            return
        self._next_poll = now + _POLL_S
        self._time.check(now)
        if _resident_bytes(self._child.pid) > self._settings.parse_memory_bytes:
            raise _too_big()
        if self._watch is not None and now >= self._next_watch:
            self._next_watch = now + _WATCH_S
            self._watch(self._pages)


class Allowance:
    """The time that a document may take, in proportion to what it is.

    `parse_timeout_s` for everything but recognition; recognised pages have `ocr_page_timeout_s` each, up to
    `ocr_max_pages` of them, so one that hangs is noticed as soon in a long document as in a short one.
    """

    def __init__(self, settings: IngestSettings, now: float) -> None:
        self._settings = settings
        self._left = settings.parse_timeout_s
        self._since = now
        self._page: int | None = None  # the page that is being recognised
        self._recognised = 0

    def told(self, pages: PagesRead, now: float) -> None:
        """Note what the child says it does from now on."""
        self.check(now)
        if self._page is None:
            self._left -= now - self._since
        self._since = now
        self._page = None
        if pages.recognising and self._recognised < self._settings.ocr_max_pages:
            self._page, self._recognised = pages.done + 1, self._recognised + 1

    def check(self, now: float) -> None:
        """Raise `DocumentRejected` (`timeout`) when it is used up."""
        spent = now - self._since
        if self._page is None:
            if spent > self._left:
                limit = self._settings.parse_timeout_s
                raise DocumentRejected(
                    "timeout", f"Reading took longer than {limit:g} s; split the document."
                )
        elif spent > self._settings.ocr_page_timeout_s:
            limit = self._settings.ocr_page_timeout_s
            raise DocumentRejected(
                "timeout",
                f"Recognising page {self._page} took longer than {limit:g} s; make its picture smaller.",
            )


def _resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _crashed(child: subprocess.Popen[bytes]) -> DocumentRejected:
    """What the end of the child says about the document."""
    try:
        code = child.wait(timeout=5)
    except subprocess.TimeoutExpired:  # it closed the pipe and lives on: killed by the caller
        code = 0
    if code == -signal.SIGKILL:  # nobody but the system's memory watch kills it so while we read
        return _too_big()
    return DocumentRejected(
        "corrupt", "The parser crashed on this file; it is damaged or not what it says. Save it anew."
    )


def _too_big() -> DocumentRejected:
    return DocumentRejected("too_big", "Reading the document needs more memory than the cap; split it.")


def _unwrapped(kind: str, value: Any) -> Any:
    if kind == "done":
        return value
    if kind == "rejected":
        reason, detail = value
        raise DocumentRejected(reason, detail)
    if kind == "out_of_memory":
        raise _too_big()
    if kind == "broken":
        raise PermanentError(f"The installation lacks a part that reading this file needs: {value}.")
    what, place = value
    log.info("parser_failed", extra={"detail": what, "at": place})
    raise DocumentRejected("corrupt", f"The document could not be read: {what}.")


_shared = ParseSandbox()


def parse_in_sandbox(
    path: Path,
    file_name: str,
    declared_type: str = "",
    options: ParseOptions | None = None,
    watch: Watch | None = None,
) -> ParsedDocument:
    """Read the file at `path` in this process's warm child; see `ParseSandbox.parse`."""
    return _shared.parse(path, file_name, declared_type, options, watch)


def close_sandbox() -> None:
    """End this process's warm child (worker shutdown)."""
    _shared.close()
