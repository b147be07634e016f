"""The client of an existing vLLM server, against a small HTTP server that answers in its shape."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from core.errors import ConfigError, DeadlineExceeded, InvalidInput, TransientError
from core.settings import GenerationSettings
from generation.engine import Cancelled, GenerationRequest
from generation.engine_remote import RemoteEngine
from generation.prompt import Message


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.models: list[dict[str, Any]] = [{"id": "acme/Qwen-7B", "max_model_len": 27120}]
        self.bodies: list[dict[str, Any]] = []
        self.words = ["The tower", " is tall.", " [1]"]
        self.gap_s = 0.0
        self.status = 200
        self.finish = "stop"
        self.left_early = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._json({"data": self.server.models})
        elif self.path == "/metrics":
            self._send(
                b'vllm:kv_cache_usage_perc{engine="0"} 0.25\nvllm:num_requests_running{engine="0"} 3.0\n'
                b'vllm:num_requests_waiting{engine="0"} 1.0\n'
            )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            self._json({"count": len(body["prompt"].split())})
            return
        self.server.bodies.append(body)
        if self.server.status != 200:
            self._send(b'{"error": "no"}', self.server.status)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            for word in self.server.words:
                time.sleep(self.server.gap_s)
                self._event({"choices": [{"delta": {"content": word}, "finish_reason": None}]})
            self._event({"choices": [{"delta": {}, "finish_reason": self.server.finish}]})
            usage = {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
            }
            self._event({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.server.left_early.set()

    def _event(self, payload: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(payload).encode() + b"\n\n")
        self.wfile.flush()

    def _json(self, payload: dict[str, Any]) -> None:
        self._send(json.dumps(payload).encode())

    def _send(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def connect(server: Server, **more: Any) -> RemoteEngine:
    settings = GenerationSettings(engine_url=server.url + "/v1", max_model_len=40960, **more)
    return RemoteEngine(settings, model="acme/Qwen-7B")


def request(**more: Any) -> GenerationRequest:
    settings: dict[str, Any] = {
        "id": "r1",
        "messages": (Message("user", "How tall?"),),
        "max_tokens": 40,
        "deadline": time.monotonic() + 20,
        "grammar": "root ::= ...",
        "cache_salt": "ten_1",
        "priority": 10,
    }
    return GenerationRequest(**{**settings, **more})


def test_budgets_follow_the_length_the_server_serves(server: Server) -> None:
    plan = connect(server).planned.plan
    assert plan.max_model_len == 27120
    assert plan.context_budget == 27120 - 256 - 256
    assert plan.languages == ("en", "zh")


def test_text_usage_and_options_pass_through(server: Server) -> None:
    chunks = list(connect(server).generate(request()))
    assert "".join(c.text for c in chunks) == "The tower is tall. [1]"
    assert chunks[-1].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert (chunks[-1].usage.completion_tokens, chunks[-1].usage.cached_tokens) == (5, 4)
    body = server.bodies[0]
    assert body["structured_outputs"] == {"grammar": "root ::= ..."}
    assert (body["cache_salt"], body["priority"], body["model"]) == ("ten_1", 10, "acme/Qwen-7B")


def test_a_cut_answer_says_length(server: Server) -> None:
    server.finish = "length"
    assert list(connect(server).generate(request()))[-1].finish_reason == "length"


def test_cancel_closes_the_connection(server: Server) -> None:
    server.words, server.gap_s = ["word "] * 400, 0.01
    engine = connect(server)
    stream = engine.generate(request())
    next(stream)
    engine.cancel("r1")
    with pytest.raises(Cancelled):
        for _ in stream:
            pass
    assert server.left_early.wait(5)


def test_the_deadline_closes_the_connection(server: Server) -> None:
    server.words, server.gap_s = ["word "] * 400, 0.01
    with pytest.raises(DeadlineExceeded):
        list(connect(server).generate(request(deadline=time.monotonic() + 0.3)))
    assert server.left_early.wait(5)


@pytest.mark.parametrize(
    ("status", "error"), [(400, InvalidInput), (429, TransientError), (500, TransientError)]
)
def test_refusals_are_told_from_outages(server: Server, status: int, error: type[Exception]) -> None:
    engine = connect(server)
    server.status = status
    with pytest.raises(error):
        list(engine.generate(request()))


def test_the_load_is_read_from_the_servers_metrics(server: Server) -> None:
    load = connect(server).load()
    assert (load.kv_used_share, load.running, load.waiting) == (0.25, 3, 1)


def test_tokens_are_counted_by_the_server(server: Server) -> None:
    assert connect(server).count_tokens("three little words") == 3


def test_a_server_that_is_away_is_an_outage_and_one_without_models_a_fault(server: Server) -> None:
    with pytest.raises(TransientError):
        RemoteEngine(GenerationSettings(engine_url="http://127.0.0.1:9"), model="m")
    server.models = []
    with pytest.raises(ConfigError):
        connect(server)


def test_a_context_too_short_for_an_answer_is_refused(server: Server) -> None:
    server.models[0]["max_model_len"] = 400
    with pytest.raises(ConfigError, match="ANSWER_RESERVE"):
        connect(server)
