"""Parsing in a process of its own, so that a hostile or huge file cannot take a worker down.

The child is `python -m ingest.sandbox`: a plain subprocess, because prefork workers are daemonic and may not
have `multiprocessing` children. It stays warm between documents, has its address space capped, and is killed
when a document takes too long.
"""

from __future__ import annotations

import os
import pickle
import selectors
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from core.errors import DocumentRejected, TransientError
from core.settings import IngestSettings, get_settings
from ingest.parse.model import Limits, OcrMode, ParsedDocument, ParseOptions

_HEADER = struct.Struct("<Q")
# Reused this often at most: pdfium and lxml keep memory that their documents no longer need.
_DOCUMENTS_PER_CHILD = 200
_OUT_OF_MEMORY = "out_of_memory"
_MEMORY_POLL_S = 0.1


def options_of(settings: IngestSettings) -> ParseOptions:
    """How documents are read by default."""
    limits = Limits(
        settings.max_chars, settings.max_inflated_bytes, settings.max_inflation_ratio, settings.max_members
    )
    return ParseOptions(limits, OcrMode(settings.ocr), settings.ocr_max_pages, settings.keep_hidden_text)


class ParseSandbox:
    """One warm child process; thread-safe, one document at a time."""

    def __init__(self, settings: IngestSettings | None = None) -> None:
        self._settings = settings
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._served = 0
        self._lock = threading.Lock()

    def parse(
        self, path: Path, file_name: str, declared_type: str = "", options: ParseOptions | None = None
    ) -> ParsedDocument:
        """Read the file at `path`; without `options`, as the settings say.

        Raises:
            DocumentRejected: as `parse_bytes`; also `timeout` and `too_big` (out of memory), and `corrupt`
                when the parser crashed on it.
        """
        settings = self._settings or get_settings().ingest
        request = pickle.dumps((str(path), file_name, declared_type, options or options_of(settings)))
        with self._lock:
            child = self._ready_child(settings.parse_memory_bytes)
            try:
                kind, value = self._ask(child, request, settings)
            except BaseException:
                self._stop()
                raise
            if kind == "fatal":
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
                [sys.executable, "-m", "ingest.sandbox", str(memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                cwd=Path(__file__).resolve().parent.parent,
            )
            self._owner = os.getpid()
            self._served = 0
        self._served += 1
        return self._child

    def _ask(
        self, child: subprocess.Popen[bytes], request: bytes, settings: IngestSettings
    ) -> tuple[str, Any]:
        assert child.stdin is not None
        assert child.stdout is not None
        deadline = time.monotonic() + settings.parse_timeout_s
        try:
            child.stdin.write(_HEADER.pack(len(request)) + request)
            child.stdin.flush()
        except BrokenPipeError as error:
            raise TransientError("the parser process ended before it took the document") from error
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            header = _read(child, selector, _HEADER.size, deadline, settings)
            return pickle.loads(_read(child, selector, _HEADER.unpack(header)[0], deadline, settings))  # noqa: S301 - written by our own child

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


def _read(
    child: subprocess.Popen[bytes],
    selector: selectors.BaseSelector,
    size: int,
    deadline: float,
    settings: IngestSettings,
) -> bytes:
    assert child.stdout is not None
    parts: list[bytes] = []
    missing = size
    while missing:
        left = deadline - time.monotonic()
        if left <= 0:
            raise DocumentRejected(
                "timeout", f"Reading took longer than {settings.parse_timeout_s:g} s; split the document."
            )
        if not selector.select(min(left, _MEMORY_POLL_S)):
            if _resident_bytes(child.pid) > settings.parse_memory_bytes:
                raise _too_big()
            continue
        part = os.read(child.stdout.fileno(), min(missing, 1 << 20))
        if not part:
            raise DocumentRejected(
                "corrupt", "The parser crashed on this file; it is damaged or not what it says."
            )
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _too_big() -> DocumentRejected:
    return DocumentRejected("too_big", "Reading the document needs more memory than the cap; split it.")


def _unwrapped(kind: str, value: Any) -> ParsedDocument:
    if kind == "parsed":
        return value
    if kind == "rejected":
        reason, detail = value
        raise DocumentRejected(reason, detail)
    if value == _OUT_OF_MEMORY:
        raise _too_big()
    raise DocumentRejected("corrupt", f"The document could not be read: {value}.")


_shared = ParseSandbox()


def parse_in_sandbox(
    path: Path, file_name: str, declared_type: str = "", options: ParseOptions | None = None
) -> ParsedDocument:
    """Read the file at `path` in this process's warm child; see `ParseSandbox.parse`."""
    return _shared.parse(path, file_name, declared_type, options)


def close_sandbox() -> None:
    """End this process's warm child (worker shutdown)."""
    _shared.close()


def _serve(source: BinaryIO, sink: BinaryIO) -> None:
    """The child's loop: one request in, one reply out, until the parent closes the pipe."""
    while True:
        header = source.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        request = pickle.loads(source.read(_HEADER.unpack(header)[0]))  # noqa: S301 - written by our own parent
        reply = pickle.dumps(_reply(*request), protocol=pickle.HIGHEST_PROTOCOL)
        sink.write(_HEADER.pack(len(reply)) + reply)
        sink.flush()


def _reply(path: str, file_name: str, declared_type: str, options: ParseOptions) -> tuple[str, Any]:
    from ingest.parse import parse_bytes

    try:
        return "parsed", parse_bytes(Path(path).read_bytes(), file_name, declared_type, options)
    except DocumentRejected as error:
        return "rejected", (error.code, error.detail)
    except MemoryError:
        return "fatal", _OUT_OF_MEMORY
    except Exception as error:  # noqa: BLE001 - whatever a parser raises on a hostile file is that file's fault
        return "fatal", f"{type(error).__name__}: {str(error)[:200]}"


def _main() -> None:
    import resource

    memory_bytes = int(sys.argv[1])
    # Mapped libraries count too: the watch on resident memory is the exact cap, this the hard stop.
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes + (1 << 30), memory_bytes + (1 << 30)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not write into the reply
    _serve(sys.stdin.buffer, sink)


if __name__ == "__main__":
    _main()
