"""Errors name the situation, carry the ids and say what to do next.

Two families drive every retry: a `PermanentError` ends the work at once, a `TransientError` is tried
again with backoff. `classify` maps library errors to one of the two. Errors with an HTTP status are
rendered as RFC 9457 problem documents by one handler in `api/errors.py`.
"""

from __future__ import annotations

from typing import Any


class GeoError(Exception):
    """Base of all our errors.

    Attributes:
        code: stable, machine-readable, snake_case.
        status: HTTP status when it reaches a door.
        retry_after_s: seconds after which the caller may try again, if known.
        ids: identifiers of the situation (document_id, build_id …); shown to the caller.
    """

    code = "internal"
    title = "Internal error"
    status = 500

    def __init__(self, detail: str = "", *, retry_after_s: float | None = None, **ids: Any) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.retry_after_s = retry_after_s
        self.ids = ids


class PermanentError(GeoError):
    """Trying again cannot help; the input or the request must change."""


class TransientError(GeoError):
    """Trying again later may help."""

    code = "unavailable"
    title = "Temporarily unavailable"
    status = 503


class NotFound(PermanentError):
    """The id is unknown or not visible to this scope; both read the same from outside."""

    code = "not_found"
    title = "Not found"
    status = 404


class InvalidInput(PermanentError):
    """The request is well-formed but its content is not acceptable."""

    code = "invalid_input"
    title = "Invalid input"
    status = 422


class Unauthenticated(PermanentError):
    """No valid key was presented."""

    code = "unauthenticated"
    title = "A valid API key is required"
    status = 401


class Forbidden(PermanentError):
    """The key is valid but its role is too weak."""

    code = "forbidden"
    title = "The key may not do this"
    status = 403


class Conflict(PermanentError):
    """The current state does not allow it."""

    code = "conflict"
    title = "Conflict"
    status = 409


class TooLarge(PermanentError):
    """A body, part or question is above its cap."""

    code = "too_large"
    title = "Too large"
    status = 413


class UnsupportedFormat(PermanentError):
    """No parser takes these bytes, or name and content disagree."""

    code = "unsupported_format"
    title = "Unsupported format"
    status = 415


class RateLimited(PermanentError):
    """The key used up its allowance."""

    code = "rate_limited"
    title = "Too many requests"
    status = 429


class ClientLeft(PermanentError):
    """Whoever asked closed the connection before the answer; nobody reads this."""

    code = "client_left"
    title = "The client closed the connection"
    status = 499  # nginx's number, for the access log


class DeadlineExceeded(TransientError):
    """The work did not end within its deadline."""

    code = "deadline_exceeded"
    title = "The deadline passed"
    status = 504


class QuestionTooLate(PermanentError):
    """The question was not answered within its own deadline; asking again starts a new one."""

    code = "deadline_exceeded"
    title = "The question's deadline passed before it could be answered"
    status = 504


class DiskFull(TransientError):
    """The data folder's disk is full; nothing was written."""

    code = "disk_full"
    title = "No space left on the data disk"
    status = 507


class DocumentRejected(PermanentError):
    """The document cannot be read; `reason` is one of the parse reasons (no_text, encrypted …)."""

    code = "document_rejected"
    title = "The document cannot be used"
    status = 422

    def __init__(self, reason: str, detail: str, **ids: Any) -> None:
        super().__init__(detail, **ids)
        self.code = reason


class LeaseLost(GeoError):
    """Another worker owns the job now; whatever this one computed is dropped."""

    code = "lease_lost"
    title = "The lease on this job was lost"
    status = 409


class ConfigError(GeoError):
    """The settings or the machine do not allow a start; `detail` says what to change."""

    code = "config"
    title = "Configuration error"
