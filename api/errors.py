"""Every error leaves as an RFC 9457 problem document with the request's id."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from math import ceil
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from core.errors import GeoError, TooLarge
from core.logs import request_id
from core.retry import classify

log = logging.getLogger(__name__)

_OPENAI_DOORS = ("/v1/chat/", "/v1/models")
PROBLEM_TYPE = "application/problem+json"
_CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 408: "too_slow", 413: "too_large"}


class Problem(Response):
    """A problem document as a response."""

    media_type = PROBLEM_TYPE

    def __init__(
        self,
        status: int,
        code: str,
        title: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        body: dict[str, Any] = {
            "type": f"urn:geo:problem:{code}",
            "title": title,
            "status": status,
            "detail": detail,
            "code": code,
            "request_id": request_id.get(),
            **members,
        }
        self._problem = body
        super().__init__(orjson.dumps(body, default=str), status_code=status, headers=dict(headers or {}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; the doors that speak OpenAI's shape carry the error in that shape as well."""
        if scope["path"].startswith(_OPENAI_DOORS):
            self.body = orjson.dumps({**self._problem, "error": _as_openai(self._problem)}, default=str)
            self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def _as_openai(problem: Mapping[str, Any]) -> dict[str, Any]:
    """The error object that OpenAI's clients read."""
    status = int(problem["status"])
    kinds = {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        429: "rate_limit_error",
    }
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"message": problem["detail"], "type": kind, "code": problem["code"], "param": None}


def problem_of(error: BaseException) -> Problem:
    """Render any error; what is not ours keeps its internals for the log.

    Timeouts and lost connections become 503, a full disk 507, the rest 500.
    """
    ours = isinstance(error, GeoError)
    known = classify(error)
    hidden = known.status == 500 or not ours
    if known.status >= 500:
        log.error("request_failed", extra={"code": known.code, "detail": known.detail}, exc_info=error)
    if not ours and known.status == 422:  # an unknown error is our fault, not the caller's
        known = GeoError()
    if known.status == 500:
        return Problem(500, "internal", GeoError.title, "The error is logged under this request id.")
    headers: dict[str, str] = {}
    if known.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="geo"'
    if known.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, ceil(known.retry_after_s)))
    elif known.status == 503:
        headers["Retry-After"] = "2"
    detail = known.title if hidden else known.detail
    return Problem(known.status, known.code, known.title, detail, headers=headers, **known.ids)


def _on_geo_error(_request: Request, error: Exception) -> Response:
    return problem_of(error)


def _on_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = TooLarge.title if error.status_code == 413 else HTTPStatus(error.status_code).phrase
    code = _CODES.get(error.status_code, title.lower().replace(" ", "_").replace("-", "_"))
    detail = error.detail if error.detail and error.detail != title else _hint(error.status_code, title)
    return Problem(error.status_code, code, title, detail, headers=error.headers)


def _hint(status: int, title: str) -> str:
    if status == 404:
        return "No such door; /openapi.json lists them all."
    if status == 405:
        return "This door does not take that method; see the Allow header."
    return title


def _on_invalid_request(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(e["type"] == "json_invalid" for e in found):
        at = next(e for e in found if e["type"] == "json_invalid")
        return Problem(
            400,
            "malformed_json",
            "Malformed JSON",
            f"The body is not JSON: {at.get('ctx', {}).get('error', '')}",
        )
    # The offending input is not echoed: it may be large, secret or not even text.
    errors = [{"loc": _place(e["loc"]), "msg": e["msg"], "type": e["type"]} for e in found[:20]]
    first = errors[0]
    where = ".".join(first["loc"][1:]) or first["loc"][0]
    return Problem(422, "invalid_input", "Invalid input", f"{where}: {first['msg']}", errors=errors)


def _place(loc: Iterable[str | int]) -> list[str]:
    """Where in the request, without the names that pydantic gives to alternatives and validators."""
    return [str(p) for p in loc if not (isinstance(p, str) and ("[" in p or p.startswith("function-")))]


def install_error_handlers(app: FastAPI) -> None:
    """Render our errors, routing errors and validation errors; the rest is caught by the middleware."""
    app.add_exception_handler(GeoError, _on_geo_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
