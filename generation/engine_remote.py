"""An existing vLLM server instead of an engine in the worker: fleets, routers, multi-node models.

Speaks the OpenAI-compatible chat door with vLLM's additions (`structured_outputs`, `cache_salt`,
`priority`). The served context length is asked from the server and budgets follow it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import httpx

from core.errors import ConfigError, DeadlineExceeded, InvalidInput, TransientError
from core.settings import GenerationSettings
from core.types import EnginePlan, Usage
from generation.engine import Cancelled, Chunk, EngineLoad, GenerationRequest
from generation.plan import PROMPT_OVERHEAD, Planned, known_languages

_CONNECT_S = 5.0
_GAUGES = {
    "vllm:kv_cache_usage_perc": "kv",
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
}


class RemoteEngine:
    """Client of one server.

    Args:
        settings: `engine_url` and `engine_key` say where and as whom.
        model: the model's id, used when the server serves several.
        client: for tests; by default one with the settings' address and key.

    Raises:
        TransientError: the server does not answer.
        ConfigError: it serves no model, or too short a context.
    """

    def __init__(
        self, settings: GenerationSettings, *, model: str, client: httpx.Client | None = None
    ) -> None:
        key = settings.engine_key.get_secret_value() if settings.engine_key else ""
        self._client = client or httpx.Client(
            base_url=settings.engine_url.rstrip("/").removesuffix("/v1"),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(30.0, connect=_CONNECT_S),
        )
        served = self._served(model)
        self._model = str(served["id"])
        self.planned = _plan(served, settings)
        self._cancels: dict[str, threading.Event] = {}
        self._responses: dict[str, httpx.Response] = {}
        self._lock = threading.Lock()

    def _served(self, model: str) -> dict[str, Any]:
        try:
            answer = self._client.get("/v1/models").raise_for_status().json()
        except (httpx.HTTPError, ValueError) as error:
            raise TransientError(f"The engine server does not answer: {error}") from error
        models: list[dict[str, Any]] = answer.get("data", [])
        if not models:
            raise ConfigError("The engine server serves no model.")
        return next((m for m in models if m["id"] == model), models[0])

    def generate(self, request: GenerationRequest) -> Generator[Chunk]:
        """See `Engine.generate`; closing the connection is how the server is told to abort."""
        cancelled = threading.Event()
        with self._lock:
            self._cancels[request.id] = cancelled
        try:
            yield from self._stream(request, cancelled)
        except (httpx.HTTPError, OSError) as error:
            if cancelled.is_set():
                raise Cancelled from error
            if isinstance(error, httpx.TimeoutException) or time.monotonic() >= request.deadline:
                raise DeadlineExceeded("The engine server was left at the answer's deadline.") from error
            raise TransientError(f"The engine server broke off: {error}") from error
        finally:
            with self._lock:
                self._cancels.pop(request.id, None)
                self._responses.pop(request.id, None)

    def _stream(self, request: GenerationRequest, cancelled: threading.Event) -> Iterator[Chunk]:
        left = request.deadline - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded("The deadline passed before the engine server was asked.")
        timeout = httpx.Timeout(left, connect=min(_CONNECT_S, left))
        with self._client.stream(
            "POST", "/v1/chat/completions", json=self._body(request), timeout=timeout
        ) as response:
            with self._lock:
                self._responses[request.id] = response
            if response.status_code >= 400:
                detail = response.read().decode(errors="replace")[:500]
                if response.status_code < 500 and response.status_code not in (408, 429):
                    raise InvalidInput(f"The engine server refused the request: {detail}")
                raise TransientError(f"The engine server answered {response.status_code}: {detail}")
            reason, usage = "stop", Usage()
            for event in _server_sent(response):
                if cancelled.is_set():
                    raise Cancelled
                if time.monotonic() >= request.deadline:
                    raise DeadlineExceeded("The engine server was left at the answer's deadline.")
                usage = _usage(event) or usage
                for choice in event.get("choices", []):
                    reason = choice.get("finish_reason") or reason
                    text = choice.get("delta", {}).get("content")
                    if text:
                        yield Chunk(text)
        yield Chunk("", "length" if reason == "length" else "stop", usage)

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "min_tokens": request.min_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "priority": request.priority,
        }
        if request.grammar:
            body["structured_outputs"] = {"grammar": request.grammar}
        if request.cache_salt:
            body["cache_salt"] = request.cache_salt
        return body

    def cancel(self, request_id: str) -> None:
        """See `Engine.cancel`."""
        with self._lock:
            cancelled, response = self._cancels.get(request_id), self._responses.get(request_id)
        if cancelled is not None:
            cancelled.set()
        if response is not None:
            response.close()

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`; without the server's tokenizer a safe over-estimate."""
        try:
            answer = self._client.post(
                "/tokenize", json={"model": self._model, "prompt": text, "add_special_tokens": False}
            )
            return int(answer.raise_for_status().json()["count"])
        except (httpx.HTTPError, ValueError, KeyError):
            return len(text.encode()) // 2 + 1

    @property
    def special_tokens(self) -> Sequence[str]:
        """Unknown here; `generation/prompt.py` breaks the usual ones."""
        return ()

    def load(self) -> EngineLoad:
        """See `Engine.load`, from the server's metrics; zeros when it has none."""
        values = {"kv": 0.0, "running": 0.0, "waiting": 0.0}
        try:
            lines = self._client.get("/metrics").raise_for_status().text.splitlines()
        except httpx.HTTPError:
            lines = []
        for line in lines:
            name = line.split("{", 1)[0].split(" ", 1)[0]
            if name in _GAUGES:
                values[_GAUGES[name]] = float(line.rsplit(" ", 1)[1])
        return EngineLoad(values["kv"], int(values["running"]), int(values["waiting"]))

    @property
    def dead(self) -> bool:
        """A server that is down may come back; requests say so one by one."""
        return False

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _plan(served: dict[str, Any], settings: GenerationSettings) -> Planned:
    length = min(int(served.get("max_model_len") or settings.max_model_len), settings.max_model_len)
    context = length - settings.answer_reserve - PROMPT_OVERHEAD
    if context < 1:
        raise ConfigError(
            f"The engine server's context of {length} tokens leaves none for evidence beside an answer of "
            f"{settings.answer_reserve}; lower GEO_GENERATION__ANSWER_RESERVE or serve a longer context."
        )
    plan = EnginePlan(
        model=str(served["id"]),
        tokenizer=str(served.get("root") or served["id"]),
        languages=known_languages(str(served.get("root") or served["id"])),
        max_model_len=length,
        answer_reserve=settings.answer_reserve,
        context_budget=context,
        block_size=settings.block_size,
        kv_blocks=0,
        kv_free_share=1.0,
        tp=0,
        pp=0,
        vector_page_bytes=0,
    )
    return Planned(plan, 0, settings.max_num_seqs, 0, settings.enforce_eager, ())


def _server_sent(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line.startswith("data:"):
            body = line[5:].strip()
            if body == "[DONE]":
                return
            yield json.loads(body)


def _usage(event: dict[str, Any]) -> Usage | None:
    usage: dict[str, Any] | None = event.get("usage")
    if not usage:
        return None
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(int(usage["prompt_tokens"]), int(usage.get("completion_tokens", 0)), int(cached))
