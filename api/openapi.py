"""The published schema: what FastAPI derives, with our key scheme and our problem documents."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.errors import PROBLEM_TYPE

_PROBLEM = {
    "type": "object",
    "description": "An RFC 9457 problem document; ids of the situation stand beside these members.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what happened and what to do"},
        "code": {"type": "string", "description": "stable, for programs"},
        "request_id": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}, "description": "fields that are not valid"},
    },
    "additionalProperties": True,
}
_ANSWER = {
    "description": "A problem document",
    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_OPEN = {"/healthz", "/readyz"}


def publish_schema(app: FastAPI) -> None:
    """Have `app.openapi()` return the schema, made once."""

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(
                get_openapi(
                    title=app.title, version=app.version, description=app.description, routes=app.routes
                )
            )
        return app.openapi_schema

    app.openapi = schema


def _complete(schema: dict[str, Any]) -> dict[str, Any]:
    components = schema.setdefault("components", {})
    shapes = components.setdefault("schemas", {})
    shapes["Problem"] = _PROBLEM
    for derived in ("HTTPValidationError", "ValidationError"):  # never sent: we render our own
        shapes.pop(derived, None)
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "geo_…"}}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _ANSWER
            if path not in _OPEN:
                operation["security"] = [{"key": []}]
    return schema
