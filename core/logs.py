"""Structured logs on stderr with a request id in every line."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar

import structlog

from core.settings import LogSettings

request_id: ContextVar[str] = ContextVar("request_id", default="-")


def _add_request_id(
    _logger: object, _name: str, event: structlog.types.EventDict
) -> structlog.types.EventDict:
    event.setdefault("request_id", request_id.get())
    return event


def configure_logs(settings: LogSettings, *, process: str) -> None:
    """Route the standard library's and structlog's records through one formatter on stderr.

    Args:
        settings: level and format (`console` or `json`).
        process: name of the process (`api`, `worker-index` …), put on every line.
    """

    def _add_process(_l: object, _n: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        event["process"] = process
        return event

    shared: list[structlog.types.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
        _add_process,
    ]
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if settings.format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            renderer,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level)
    for noisy in ("httpx", "httpcore", "urllib3", "kombu", "jieba"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
