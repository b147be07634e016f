"""An answer as a JSON object: `response_format` of the OpenAI-shaped door. Pure.

The object is made by code from the checked claims, so it is always whole and valid, also when the answer was
cut off (`status` then says `incomplete`). A schema of the caller's own would have to be written by the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from core.errors import InvalidInput
from generation.values import AnswerView

NAME = "cited_answer"
_CITATION = {
    "type": "object",
    "properties": {
        "marker": {"type": "integer"},
        "document_id": {"type": "string"},
        "document_name": {"type": "string"},
        "version": {"type": "integer"},
        "page": {"type": ["integer", "null"]},
        "quote": {"type": ["string", "null"]},
        "start": {"type": ["integer", "null"]},
        "end": {"type": ["integer", "null"]},
    },
    "required": ["marker", "document_id", "document_name", "version", "page", "quote", "start", "end"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["answered", "refused", "incomplete"]},
        "text": {"type": "string"},
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "verdict": {"enum": ["supported", "partial", "unsupported"]},
                    "reason": {"type": "string"},
                    "citations": {"type": "array", "items": _CITATION},
                },
                "required": ["text", "verdict", "reason", "citations"],
                "additionalProperties": False,
            },
        },
        "notices": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"code": {"type": "string"}, "text": {"type": "string"}},
                "required": ["code", "text"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["status", "text", "claims", "notices"],
    "additionalProperties": False,
}


def wanted(response_format: Mapping[str, Any] | None, *, stream: bool) -> bool:
    """Whether the answer is asked for as an object.

    Raises:
        InvalidInput: another schema than the service's own is asked for, or a stream of objects.
    """
    kind = (response_format or {}).get("type", "text")
    if kind == "text":
        return False
    if kind not in ("json_object", "json_schema"):
        raise InvalidInput("response_format.type is text, json_object or json_schema.")
    given = (response_format or {}).get("json_schema")
    own = isinstance(given, Mapping) and given.get("name") == NAME and given.get("schema", SCHEMA) == SCHEMA
    if kind == "json_schema" and not own:
        raise InvalidInput(f"response_format.json_schema: only the service's own is served, named {NAME!r}.")
    if stream:
        raise InvalidInput("response_format: an object comes whole; ask for it without a stream.")
    return True


def content(view: AnswerView) -> str:
    """The object, as JSON text."""
    body = {
        "status": view.status.value,
        "text": view.text,
        "claims": [
            {
                "text": claim.text,
                "verdict": claim.verdict.value,
                "reason": claim.reason,
                "citations": [_citation(asdict(c)) for c in claim.citations],
            }
            for claim in view.claims
        ],
        "notices": [{"code": notice.code, "text": notice.text} for notice in view.notices],
    }
    return json.dumps(body, ensure_ascii=False)


def _citation(citation: Mapping[str, Any]) -> dict[str, Any]:
    quote = citation["quote"] or {}
    named = {key: citation[key] for key in ("marker", "document_id", "document_name", "version", "page")}
    return {**named, "quote": quote.get("text"), "start": quote.get("start"), "end": quote.get("end")}
