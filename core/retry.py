"""The whole retry policy on one screen: which library errors are worth another try."""

from __future__ import annotations

import errno

import redis.exceptions
import sqlalchemy.exc

from core.errors import DiskFull, GeoError, PermanentError, TransientError

_TRANSIENT = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.BusyLoadingError,
    sqlalchemy.exc.OperationalError,
    sqlalchemy.exc.InterfaceError,  # a connection that the server's restart closed under us
    sqlalchemy.exc.TimeoutError,
    ConnectionError,
    TimeoutError,
    InterruptedError,
    BlockingIOError,
)


def classify(error: BaseException) -> GeoError:
    """Map any error to one of ours; unknown ones are permanent, because a bug repeats itself.

    Memory exhaustion is transient: on another day, or in a fresh child, the same work may fit.
    """
    if isinstance(error, GeoError):
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        mapped: GeoError = DiskFull("The data disk is full; free space and the work goes on.")
    elif isinstance(error, (*_TRANSIENT, MemoryError)):
        mapped = TransientError(f"{type(error).__name__}: {error}")
    else:
        mapped = PermanentError(f"{type(error).__name__}: {error}")
    mapped.__cause__ = error
    return mapped
