"""The client of an existing vLLM server, against a small HTTP server that answers in its shape."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from core.errors import ConfigError, DeadlineExceeded, InvalidInput, TransientError
from core.settings import GenerationSettings
from generation.engine_remote import RemoteEngine
from generation.prompt import Message
from generation.replica_choice import prefix_key, rendezvous
from generation.requests import Cancelled, GenerationRequest
from tests.support.waiting import until


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.models: list[dict[str, Any]] = [{"id": "acme/Qwen-7B", "max_model_len": 27120}]
        self.bodies: list[dict[str, Any]] = []
        self.words = ["The tower", " is tall.", " [1]"]
        self.gap_s = 0.0
        self.mute_s = 0.0  # before the headers
        self.status = 200
        self.finish = "stop"
        self.left_early = threading.Event()
        self.healthy = True  # has no such door, like some routers
        self.running = 3
        self.break_after: int | None = None  # words after which the connection is torn, once
        self.takes_priority = True
        self.refuses_inside = False  # as vLLM does: 200, and the refusal is the stream's first event

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
                b'vllm:kv_cache_usage_perc{engine="0"} 0.25\n'
                b'vllm:num_requests_running{engine="0"} %.1f\n'
                b'vllm:num_requests_waiting{engine="0"} 1.0\n'
                b'vllm:cache_config_info{block_size="32",engine="0",num_gpu_blocks="100"} 1.0\n'
                % self.server.running
            )
        elif self.path == "/health":
            self._send(b"", 404 if self.server.healthy else 503)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            self._json({"count": len(body["prompt"].split())})
            return
        self.server.bodies.append(body)
        if not self.server.takes_priority and body.get("priority"):
            self._refuse("Got priority 10 but Priority scheduling is not enabled.", 400)
            return
        if self.server.status != 200:
            self._refuse("no", self.server.status)
            return
        time.sleep(self.server.mute_s)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            for number, word in enumerate(self.server.words):
                if number == self.server.break_after:
                    self.server.break_after = None
                    self.connection.shutdown(socket.SHUT_RDWR)
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

    def _refuse(self, why: str, status: int) -> None:
        error = {"error": {"message": why, "type": "BadRequestError", "param": None, "code": status}}
        if not self.server.refuses_inside:
            self._send(json.dumps(error).encode(), status)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self._event(error)
        self.wfile.write(b"data: [DONE]\n\n")

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


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def second() -> Iterator[Server]:
    with serving() as server:
        yield server


def connect(*servers: Server, **more: Any) -> RemoteEngine:
    urls = ", ".join(server.url + "/v1" for server in servers)
    return RemoteEngine(
        GenerationSettings(engine_url=urls, max_model_len=40960, **more), model="acme/Qwen-7B"
    )


def preferred(servers: Sequence[Server]) -> list[Server]:
    """The servers in the order in which the request's evidence prefers them."""
    wanted = request()
    key = prefix_key(wanted.cache_salt, wanted.messages[0].content, wanted.messages[-1].content)
    order = rendezvous(key, [server.url for server in servers])
    return sorted(servers, key=lambda server: order.index(server.url))


def text_of(engine: RemoteEngine, **more: Any) -> str:
    return "".join(c.text for c in engine.generate(request(**more)))


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


@pytest.mark.parametrize("inside", [False, True], ids=["by its status", "inside the stream"])
@pytest.mark.parametrize(
    ("status", "error"), [(400, InvalidInput), (429, TransientError), (500, TransientError)]
)
def test_refusals_are_told_from_outages(
    server: Server, status: int, error: type[Exception], inside: bool
) -> None:
    engine = connect(server)
    server.status, server.refuses_inside = status, inside
    with pytest.raises(error):
        list(engine.generate(request()))


def test_the_load_is_read_from_the_servers_metrics(server: Server) -> None:
    load = connect(server).load()
    assert (load.kv_used_share, load.running, load.waiting) == (0.25, 3, 1)
    assert load.kv_tokens == 3200


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


# -- several servers ---------------------------------------------------------------------------


def test_one_evidence_goes_to_one_server_until_that_is_busy(server: Server, second: Server) -> None:
    first, other = preferred((server, second))
    engine = connect(server, second)
    for _ in range(4):
        text_of(engine)
    assert (len(first.bodies), len(other.bodies)) == (4, 0)
    first.running = 36
    next(r for r in engine._replicas if r.url == first.url).probe()
    text_of(engine)
    assert len(other.bodies) == 1
    engine.close()


def test_a_request_that_has_not_streamed_goes_to_another_server(server: Server, second: Server) -> None:
    first, other = preferred((server, second))
    engine = connect(server, second)
    first.status = 500
    assert text_of(engine) == "The tower is tall. [1]"
    assert (len(first.bodies), len(other.bodies)) == (1, 1)
    engine.close()


def test_a_torn_stream_is_replayed_elsewhere_and_nothing_is_doubled(server: Server, second: Server) -> None:
    first, other = preferred((server, second))
    engine = connect(server, second)
    first.break_after = 2
    other.words = ["The tow", "er is", " tall. [", "1]"]  # the same text, cut otherwise
    chunks = list(engine.generate(request()))
    assert "".join(c.text for c in chunks) == "The tower is tall. [1]"
    assert chunks[0].text == "The tower"
    assert [c.finish_reason for c in chunks if c.finish_reason] == ["stop"]
    engine.close()


def test_a_replay_that_comes_out_otherwise_begins_the_answer_anew(server: Server, second: Server) -> None:
    first, other = preferred((server, second))
    engine = connect(server, second)
    first.break_after = 2
    other.words = ["The museum", " is tall. [1]"]
    with pytest.raises(TransientError, match="begun anew"):
        text_of(engine)
    engine.close()


def test_a_stream_that_ends_without_a_finish_is_a_failure(server: Server) -> None:
    server.break_after = 3  # after the last word, before the finish reason
    server.words.append("")
    assert text_of(connect(server)) == "The tower is tall. [1]"
    assert len(server.bodies) == 2


@pytest.mark.parametrize("when", ["before its headers", "between words"])
def test_a_server_that_hangs_is_left_and_its_requests_go_on_elsewhere(
    server: Server, second: Server, when: str
) -> None:
    first, _ = preferred((server, second))
    engine = connect(server, second)
    first.healthy = False  # its health door says so; its stream says nothing
    if when == "between words":
        first.words, first.gap_s = ["The tower", " is tall.", " [1]"], 8.0
    else:
        first.mute_s = 8.0
    begun = time.monotonic()
    assert text_of(engine) == "The tower is tall. [1]"
    assert time.monotonic() - begun < 7
    assert engine.complaint().startswith("1 of 2 servers answer")
    assert text_of(engine) == "The tower is tall. [1]"
    assert len(first.bodies) == 1
    engine.close()


def test_a_server_that_comes_back_is_asked_again(server: Server, second: Server) -> None:
    first, _ = preferred((server, second))
    engine = connect(server, second)
    replica = next(r for r in engine._replicas if r.url == first.url)
    for _ in range(3):
        replica.failed("test")
    assert not replica.usable
    until = time.monotonic() + 10
    while not replica.usable and time.monotonic() < until:
        time.sleep(0.05)
    text_of(engine)
    assert len(first.bodies) == 1
    engine.close()


def test_a_server_that_serves_less_than_the_plan_is_not_asked(server: Server, second: Server) -> None:
    engine = connect(server)
    server.models[0]["max_model_len"] = 4096
    engine._meet(engine._replicas[0])
    assert "serves 4096 tokens" in engine.complaint()
    engine.close()


def test_a_server_that_is_away_at_the_start_joins_later(server: Server) -> None:
    settings = GenerationSettings(engine_url=f"http://127.0.0.1:9,{server.url}", max_model_len=40960)
    engine = RemoteEngine(settings, model="acme/Qwen-7B")
    assert text_of(engine) == "The tower is tall. [1]"
    assert "127.0.0.1:9" in engine.complaint()
    engine.close()


@pytest.mark.parametrize("inside", [False, True], ids=["by its status", "inside the stream"])
def test_a_server_without_priorities_is_asked_without(server: Server, inside: bool) -> None:
    server.refuses_inside = inside
    server.takes_priority = False
    engine = connect(server)
    assert text_of(engine) == "The tower is tall. [1]"
    text_of(engine)
    assert [b.get("priority") for b in server.bodies] == [10, None, None]
    engine.close()


def test_a_cancel_ends_a_request_that_the_server_keeps_waiting(server: Server) -> None:
    server.gap_s = 10.0
    engine = connect(server)

    def cancel_once_asked() -> None:
        until(lambda: server.bodies)
        engine.cancel("r1")

    threading.Thread(target=cancel_once_asked).start()
    begun = time.monotonic()
    with pytest.raises(Cancelled):
        text_of(engine)
    assert time.monotonic() - begun < server.gap_s, "it waited for the server"
    engine.close()
