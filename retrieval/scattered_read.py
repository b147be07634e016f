"""Many small reads of one file by one system call.

Reading a row costs the system 0.5 µs; asked for one by one, Python adds as much, and gives its lock away and
waits for it again at each. Linux takes a list of reads (`io_submit`); those of a file that is in the page
cache are done when it returns. Elsewhere, or where that call is not allowed, rows are read one by one.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import weakref

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
_AT_ONCE = 512
_CALLS = {  # numbers of io_setup, io_destroy, io_getevents, io_submit
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
}.get(platform.machine() if sys.platform == "linux" else "")
# struct iocb and struct io_event of linux/aio_abi.h, little endian
_READ = 0
_REQUEST = np.dtype(
    [
        ("data", "<u8"), ("key", "<u4"), ("flags", "<i4"), ("opcode", "<u2"), ("priority", "<i2"),
        ("handle", "<u4"), ("buffer", "<u8"), ("length", "<u8"), ("offset", "<i8"), ("reserved", "<u8"),
        ("more_flags", "<u4"), ("notify", "<u4"),
    ]
)  # fmt: skip
_EVENT = np.dtype([("data", "<u8"), ("request", "<u8"), ("result", "<i8"), ("result2", "<i8")])


def read_scattered(handle: int, offsets: npt.NDArray[np.int64], length: int) -> Bytes:
    """`length` bytes at each byte offset of an open file, [m, length]; m at least 1.

    Raises:
        OSError: the system could not read.
        EOFError: the file ends before.
    """
    out = np.empty((len(offsets), length), np.uint8)
    queue = _queue()
    for start in range(0, len(offsets), _AT_ONCE):
        part, into = offsets[start : start + _AT_ONCE], out[start : start + _AT_ONCE]
        if queue is None or not queue.read(handle, part, into):
            _one_by_one(handle, part, into)
    return out


def _one_by_one(handle: int, offsets: npt.NDArray[np.int64], out: Bytes) -> None:
    for row, offset in zip(out, offsets.tolist(), strict=True):
        if os.preadv(handle, [row.data], offset) != len(row):
            raise EOFError


class _Queue:
    """A thread's list of reads. Raises OSError when the system gives none."""

    def __init__(self) -> None:
        assert _CALLS is not None
        setup, destroy, self._getevents, self._submit = _CALLS
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._context = ctypes.c_ulong(0)
        if self._call(setup, _AT_ONCE, ctypes.byref(self._context)):
            raise OSError(ctypes.get_errno(), "io_setup")
        self.process = os.getpid()
        weakref.finalize(self, self._call, destroy, self._context)
        self._requests = np.zeros(_AT_ONCE, _REQUEST)
        self._requests["opcode"] = _READ
        self._pointers = self._requests.ctypes.data + _REQUEST.itemsize * np.arange(_AT_ONCE, dtype=np.uint64)
        self._events = np.empty(_AT_ONCE, _EVENT)
        self._numbers = np.arange(_AT_ONCE, dtype=np.uint64)

    def read(self, handle: int, offsets: npt.NDArray[np.int64], out: Bytes) -> bool:
        """Fill `out`; False when the system took none of the reads."""
        count, length = out.shape
        requests = self._requests[:count]
        requests["handle"], requests["length"], requests["offset"] = handle, length, offsets
        requests["buffer"] = out.ctypes.data + self._numbers[:count] * np.uint64(length)
        taken = 0
        while taken < count:
            more = self._call(
                self._submit, self._context, ctypes.c_long(count - taken),
                ctypes.c_void_p(self._pointers.ctypes.data + taken * self._pointers.itemsize),
            )  # fmt: skip
            if more <= 0:
                break
            taken += more
        if not taken:
            return False
        done = 0
        while done < taken:  # also after a failure: the system writes into `out` until then
            got = self._call(
                self._getevents, self._context, ctypes.c_long(taken - done), ctypes.c_long(taken - done),
                ctypes.c_void_p(self._events.ctypes.data + done * _EVENT.itemsize), None,
            )  # fmt: skip
            done += max(0, got)
        results = self._events["result"][:taken]
        if (failed := results[results < 0]).size:
            raise OSError(-int(failed[0]), os.strerror(-int(failed[0])))
        if (results != length).any():
            raise EOFError
        if taken < count:
            _one_by_one(handle, offsets[taken:], out[taken:])
        return True


_local = threading.local()


def _queue() -> _Queue | None:
    """This thread's; None where the system gives none. A process does not inherit its parent's."""
    if _CALLS is None:
        return None
    known: _Queue | None = getattr(_local, "queue", None)
    if known is None or known.process != os.getpid():
        if getattr(_local, "refused", False):
            return None
        try:
            known = _local.queue = _Queue()
        except OSError:
            _local.refused = True
            return None
    return known
