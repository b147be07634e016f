"""One vLLM server: its OpenAI-shaped chat door, its health and its metrics.

Speaks vLLM's additions (`structured_outputs`, `cache_salt`, `priority`); a server that does not schedule by
priority is asked without.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import httpx

from core.errors import ConfigError, DeadlineExceeded, InvalidInput, TransientError
from core.types import Usage
from generation.replica_choice import Breaker
from generation.requests import Cancelled, Chunk, EngineLoad, GenerationRequest
from generation.vllm_wire import parse_metrics, server_sent, usage_of

CONNECT_S = 5.0
PROBE_S = 2.0
_BUSY = (408, 425, 429)  # not this one now; another may take it


class ReplicaFailed(Exception):
    """This server did not do it; another one may. `busy`: it works, but takes nothing more now."""

    def __init__(self, why: str, *, busy: bool = False) -> None:
        super().__init__(why)
        self.busy = busy


class Flight:
    """One request on its way. It can be stopped from any thread, also while the server says nothing."""

    def __init__(self) -> None:
        self.cancelled = self.broken_off = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """It is sent to a server, perhaps after another has failed."""
        with self._lock:
            self._socket, self.broken_off = None, False

    def trace(self, event: str, told: Mapping[str, Any]) -> None:
        """The transport's own report (httpx's `trace`): keeps the socket of this request."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            with self._lock:
                self._socket = told["return_value"].get_extra_info("socket")
            if self.cancelled or self.broken_off:
                self._shut()

    def cancel(self) -> None:
        """Nobody wants it any more."""
        self.cancelled = True
        self._shut()

    def break_off(self) -> None:
        """Its server is gone."""
        self.broken_off = True
        self._shut()

    def _shut(self) -> None:
        # Closing a socket does not wake the thread that reads from it; shutting it down does.
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)


class Replica:
    """Client of one server; shared by all threads.

    Args:
        url: where it is, with or without `/v1`.
        key: sent as bearer token, or empty.
        model: the model's id, used when the server serves several.
    """

    def __init__(self, url: str, *, key: str, model: str) -> None:
        self.url = url.strip().rstrip("/").removesuffix("/v1")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(base_url=self.url, headers=headers, timeout=CONNECT_S)
        # A connection for each stream: it belongs to one request, which can be stopped by shutting it down.
        alone = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._streams = httpx.Client(base_url=self.url, headers=headers, limits=alone)
        self._wanted, self.model = model, ""
        self.breaker = Breaker()
        self.load = EngineLoad(0.0, 0, 0)
        self.fault = ""
        self.refused = ""  # why it must not be asked although it answers
        self._takes_priority = True
        self._flights: set[Flight] = set()
        self._lock = threading.Lock()

    @property
    def requests(self) -> int:
        """Running and waiting there: as it tells, or as we know of ourselves."""
        return max(len(self._flights), self.load.running + self.load.waiting)

    @property
    def usable(self) -> bool:
        """Whether requests may go there."""
        return self.breaker.closed and bool(self.model) and not self.refused

    def served(self) -> dict[str, Any]:
        """The card of the model that it serves.

        Raises:
            TransientError: it does not answer.
            ConfigError: it serves no model.
        """
        try:
            answer = self._client.get("/v1/models").raise_for_status().json()
        except (httpx.HTTPError, ValueError) as error:
            raise TransientError(f"The engine server {self.url} does not answer: {error}") from error
        models: list[dict[str, Any]] = answer.get("data", [])
        if not models:
            raise ConfigError(f"The engine server {self.url} serves no model.")
        card = next((m for m in models if m["id"] == self._wanted), models[0])
        self.model = str(card["id"])
        return card

    def probe(self) -> None:
        """Ask for health and load; opens or closes the breaker. A server that is gone loses its requests."""
        try:
            answer = self._client.get("/health", timeout=PROBE_S)
            if answer.status_code not in (404, 405):  # a router need not have the door
                answer.raise_for_status()
            self.load = self._load()
        except (httpx.HTTPError, OSError) as error:
            self.failed(f"{type(error).__name__}: {error}")
            return
        self.fault = ""
        self.breaker.probed()

    def failed(self, why: str) -> None:
        """Count a failure; once the server counts as gone, its requests are broken off to go elsewhere."""
        self.fault = why
        self.breaker.failed(time.monotonic())
        if not self.breaker.closed:
            with self._lock:
                flights = list(self._flights)
            for flight in flights:
                flight.break_off()

    def _load(self) -> EngineLoad:
        try:
            answer = self._client.get("/metrics", timeout=PROBE_S)
        except httpx.TimeoutException:
            raise
        except httpx.HTTPError:
            return self.load
        return parse_metrics(answer.text) if answer.status_code == 200 else EngineLoad(0.0, 0, 0)

    def stream(self, request: GenerationRequest, flight: Flight) -> Iterator[Chunk]:
        """Send the request and yield what comes; the last chunk has the finish reason.

        Raises:
            ReplicaFailed: it broke off, was broken off, is busy or answered 5xx.
            Cancelled, DeadlineExceeded: as `Engine.generate`.
            InvalidInput: the server refuses the request itself.
        """
        with self._lock:
            self._flights.add(flight)
        flight.begin()
        try:
            yield from self._answer(request, flight)
        except (httpx.HTTPError, OSError, ValueError) as error:
            if flight.cancelled:
                raise Cancelled from error
            if time.monotonic() >= request.deadline:
                raise DeadlineExceeded("The engine server was left at the answer's deadline.") from error
            raise ReplicaFailed(f"{type(error).__name__}: {error}") from error
        finally:
            with self._lock:
                self._flights.discard(flight)

    def _answer(self, request: GenerationRequest, flight: Flight) -> Iterator[Chunk]:
        left = request.deadline - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded("The deadline passed before the engine server was asked.")
        timeout = httpx.Timeout(left, connect=min(CONNECT_S, left))
        with self._streams.stream(
            "POST",
            "/v1/chat/completions",
            json=self._body(request),
            timeout=timeout,
            extensions={"trace": flight.trace},
        ) as response:
            if response.status_code < 400:
                yield from self._chunks(response, request, flight)
                return
            detail = response.read().decode(errors="replace")
            self._check_refusal(response.status_code, detail, request)
        yield from self._answer(request, flight)  # without the priority

    def _check_refusal(self, status: int, detail: str, request: GenerationRequest) -> None:
        """Return where the refusal is about the priority alone: it is sent again without, from now on.

        Args:
            status: of the answer, or the code of an error inside a stream that began with 200: vLLM looks at
                grammar, length and priority only after it has sent the headers.
            detail: what the server says.
            request: what was asked.

        Raises:
            InvalidInput: another refusal that every server would repeat.
            ReplicaFailed: it is about the server.
        """
        if status >= 500 or status in _BUSY:
            raise ReplicaFailed(f"HTTP {status}: {detail[:500]}", busy=status in _BUSY or status == 503)
        if self._takes_priority and request.priority and "priorit" in detail.lower():
            self._takes_priority = False
            return
        raise InvalidInput(f"The engine server refused the request: {detail[:500]}")

    def _chunks(
        self, response: httpx.Response, request: GenerationRequest, flight: Flight
    ) -> Iterator[Chunk]:
        reason, usage = "", Usage()
        for event in server_sent(response):
            if flight.cancelled:
                raise Cancelled
            if time.monotonic() >= request.deadline:
                raise DeadlineExceeded("The engine server was left at the answer's deadline.")
            if "error" in event:
                self._check_refusal(_code_of(event["error"]), json.dumps(event["error"]), request)
                yield from self._answer(request, flight)
                return
            usage = usage_of(event) or usage
            for choice in event.get("choices", []):
                reason = choice.get("finish_reason") or reason
                text = choice.get("delta", {}).get("content")
                if text:
                    yield Chunk(text)
        if flight.cancelled:
            raise Cancelled
        if not reason or flight.broken_off:
            raise ReplicaFailed("the stream ended before the answer did")
        self.breaker.succeeded()
        yield Chunk("", "length" if reason == "length" else "stop", usage)

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "min_tokens": request.min_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._takes_priority:
            body["priority"] = request.priority
        if request.grammar:
            body["structured_outputs"] = {"grammar": request.grammar}
        if request.cache_salt:
            body["cache_salt"] = request.cache_salt
        return body

    def count_tokens(self, text: str) -> int:
        """Tokens of `text`; raises `httpx.HTTPError` or `ValueError` where the server cannot tell."""
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        answer = self._client.post("/tokenize", json=body)
        return int(answer.raise_for_status().json()["count"])

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._streams.close()


def _code_of(error: Any) -> int:
    """The HTTP status of an error inside a stream; one that has none is the server's."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500
