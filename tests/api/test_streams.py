"""Streams over a real socket: the in-process client cannot drop a connection half-way."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import jsonschema
import openai
import psutil
import pytest
from httpx_sse import connect_sse

from api import structured
from core.db import get_database
from core.models import QueryRow
from core.redis_client import get_redis
from core.settings import get_settings
from core.streams import stream_key
from core.types import AnswerStatus
from generation.state import Outcome
from tests.api import answering
from tests.api.conftest import OPERATOR_KEY, wait_until

Ask = dict[str, Any]
QUESTION: Ask = {"question": "How much is the harbour fee?", "collection": "fees"}


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    with httpx.Client(base_url=url, headers=headers, timeout=15) as made:
        made.post("/v1/collections", json={"name": "fees"}).raise_for_status()
        files = {"file": ("fees.txt", b"placeholder bytes")}
        document = made.post("/v1/documents", files=files, data={"collection": "fees"}).json()
        answering.make_readable(document["id"])
        yield made


def ask(client: httpx.Client, **more: Any) -> str:
    answer = client.post("/v1/queries", json={**QUESTION, **more})
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["status_url"]
    return answer.json()["id"]


def read(client: httpx.Client, query_id: str, after: str | None = None, stop: int = 100) -> list[Any]:
    headers = {"Last-Event-ID": after} if after else {}
    seen: list[Any] = []
    with connect_sse(client, "GET", f"/v1/queries/{query_id}/events", headers=headers) as source:
        assert source.response.headers["content-type"].startswith("text/event-stream")
        for event in source.iter_sse():
            seen.append(event)
            if event.event == "done" or len(seen) == stop:
                return seen
    return seen


def claims(seen: list[Any]) -> list[str]:
    return [json.loads(e.data)["text"] for e in seen if e.event == "claim"]


def test_followed_claims_equal_the_stored_answer(client: httpx.Client) -> None:
    query_id = ask(client)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(read, client, query_id)
        answering.answer(query_id, pause_s=0.05)
        seen = following.result(timeout=10)
    stored = client.get(f"/v1/queries/{query_id}").json()
    assert claims(seen) == [c["text"] for c in stored["claims"]] == list(answering.SENTENCES)
    assert json.loads(seen[-1].data)["text"] == stored["text"]
    assert stored["claims"][0]["citations"][0]["quote"]["text"] == answering.SENTENCES[0]


def test_broken_stream_resumes_where_it_stopped(client: httpx.Client) -> None:
    query_id = ask(client)
    answering.answer(query_id)
    whole = read(client, query_id)
    for cut in range(1, len(whole)):
        first = read(client, query_id, stop=cut)
        rest = read(client, query_id, after=first[-1].id)
        assert [e.id for e in first + rest] == [e.id for e in whole]


def test_vanished_stream_is_told_from_the_stored_answer(client: httpx.Client) -> None:
    query_id = ask(client)
    answering.answer(query_id)
    before = read(client, query_id)
    get_redis().delete(stream_key(query_id))
    after = read(client, query_id)
    assert claims(after) == claims(before)
    assert read(client, query_id, after=before[1].id)[0].event == "restart"


@pytest.mark.parametrize("last", ["junk", "0", "9-9-9", "stored-1", "stored-999", "9" * 60])
def test_made_up_event_ids_do_no_harm(client: httpx.Client, last: str) -> None:
    query_id = ask(client)
    answering.answer(query_id)
    assert [e.event for e in read(client, query_id, after=last)].count("done") == 1
    get_redis().delete(stream_key(query_id))
    told = [e.event for e in read(client, query_id, after=last)]
    assert (told[-1], told.count("done")) == ("done", 1)


def test_question_streams_at_once_when_asked_to(client: httpx.Client) -> None:
    headers = {"Accept": "text/event-stream"}
    with connect_sse(client, "POST", "/v1/queries", json=QUESTION, headers=headers) as source:
        query_id = source.response.headers["location"].rsplit("/", 1)[1]
        answering.answer(query_id)
        events = []
        for event in source.iter_sse():
            events.append(event.event)
            if event.event == "done":
                break
    assert events[0] == "sources"
    assert events[-1] == "done"


def test_dropped_stream_cancels_its_query_after_the_grace(client: httpx.Client) -> None:
    query_id = ask(client)
    answering.find_evidence(query_id)
    writer = answering.EventWriter(get_redis(), query_id)
    writer.sources([])
    read(client, query_id, stop=1)
    wait_until(lambda: client.get(f"/v1/queries/{query_id}").json()["cancel_requested"])


def test_second_reader_keeps_a_query_alive(client: httpx.Client) -> None:
    query_id = ask(client)
    answering.find_evidence(query_id)
    answering.EventWriter(get_redis(), query_id).sources([])
    with connect_sse(client, "GET", f"/v1/queries/{query_id}/events") as source:
        events = source.iter_sse()  # kept: when it is collected the connection closes
        next(events)
        read(client, query_id, stop=1)
        time.sleep(1.0)
        assert not client.get(f"/v1/queries/{query_id}").json()["cancel_requested"]


def test_slow_streams_hold_no_connection_of_the_pool(client: httpx.Client, url: str) -> None:
    query_id = ask(client)
    limits = httpx.Limits(max_connections=40)
    with ExitStack() as stack:
        many = stack.enter_context(
            httpx.Client(base_url=url, headers=client.headers, limits=limits, timeout=15)
        )
        for _ in range(10):
            stream = many.stream("GET", f"/v1/queries/{query_id}/events")
            assert stack.enter_context(stream).status_code == 200
        wait_until(lambda: get_database().engine.pool.checkedout() == 0)
        start = time.monotonic()
        assert client.get("/v1/documents").status_code == 200
        assert time.monotonic() - start < get_settings().database.pool_timeout_s / 2, "it waited for one"
        answering.answer(query_id)


def test_cancel_ends_a_query_nobody_works_on(client: httpx.Client) -> None:
    query_id = ask(client)
    assert client.delete(f"/v1/queries/{query_id}").json()["status"] == "cancelled"
    assert client.delete(f"/v1/queries/{query_id}").json()["status"] == "cancelled"
    assert read(client, query_id)[-1].event == "done"


def test_replay_asks_the_same_again(client: httpx.Client) -> None:
    query_id = ask(client, policy={"mode": "extract"})
    answering.answer(query_id)
    again = client.post(f"/v1/queries/{query_id}/replay")
    assert again.status_code == 202
    repeated = client.get(again.json()["status_url"]).json()
    assert repeated["replay_of"] == query_id
    assert repeated["question"] == QUESTION["question"]


def test_replay_streams_at_once_when_asked_to(client: httpx.Client) -> None:
    query_id = ask(client)
    answering.answer(query_id)
    headers = {"Accept": "text/event-stream"}
    path = f"/v1/queries/{query_id}/replay?evidence=stored"
    with connect_sse(client, "POST", path, headers=headers) as source:
        again = source.response.headers["location"].rsplit("/", 1)[1]
        answering.finish(again, Outcome(AnswerStatus.REFUSED, (), None, text="No."))
        told = next(e for e in source.iter_sse() if e.event == "done")
    assert json.loads(told.data)["status"] == "refused"
    assert client.get(f"/v1/queries/{again}").json()["replay_of"] == query_id


def test_every_line_break_of_a_text_survives_the_stream(client: httpx.Client) -> None:
    query_id = ask(client)
    text = "one\ntwo\r\nthree\u0085four\u2028five\u2029six\x0b\x0cseven"
    answering.finish(query_id, Outcome(AnswerStatus.REFUSED, (), None, text=text))
    assert json.loads(read(client, query_id)[-1].data)["text"] == text


# -- bodies without end ------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["/v1/search", "/v1/documents"])
def test_endless_upload_is_refused_early_with_flat_memory(client: httpx.Client, door: str) -> None:
    """300 MB in chunks and no length: the answer comes through, and nothing piles up anywhere."""
    client.post("/v1/search", content=b"{")  # warm
    process, peak = psutil.Process(), 0
    before = process.memory_info().rss
    chunk = bytes(1 << 20)

    def body() -> Iterator[bytes]:
        nonlocal peak
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(300):
            peak = max(peak, process.memory_info().rss)
            yield chunk

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = client.post(door, content=body(), headers=headers)
    assert answer.status_code == 413
    assert peak - before < 48 << 20
    store = get_settings().blob_dir / ".staging"
    wait_until(lambda: not store.is_dir() or not list(store.iterdir()))


def test_refusal_reaches_a_client_that_is_still_sending(url: str) -> None:
    for _ in range(20):
        answer = httpx.post(f"{url}/v1/documents", content=(bytes(1 << 16) for _ in range(200)))
        assert answer.status_code == 401


# -- the OpenAI shape --------------------------------------------------------------------------


@pytest.fixture
def chat(client: httpx.Client, url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=OPERATOR_KEY, max_retries=0, timeout=15) as made:
        yield made


def newest_query() -> str:
    def find() -> str | None:
        with get_database().read() as session:
            rows = session.query(QueryRow).filter(QueryRow.status == "queued").all()
            return rows[-1].id if rows else None

    return wait_until(find)


MESSAGES: Any = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "What is this about?"},
    {"role": "assistant", "content": "Harbour fees."},
    {"role": "user", "content": [{"type": "text", "text": "How much is it?"}]},
]


def test_openai_client_reads_an_answer_with_citations(chat: openai.OpenAI) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(chat.chat.completions.create, model="geo:fees", messages=MESSAGES)
        query_id = newest_query()
        answering.answer(query_id)
        done = asked.result(timeout=10)
    message = done.choices[0].message
    first, second, third = answering.SENTENCES
    assert message.content == f"{first}[1] {second}[1] {third}[1]"
    assert message.annotations is not None
    cited = message.annotations[1].url_citation
    assert message.content[cited.start_index : cited.end_index] == f"{second}[1]"
    assert cited.title == "fees.txt"
    assert done.choices[0].finish_reason == "stop"
    assert done.usage is not None
    assert done.usage.total_tokens == 120
    with get_database().read() as session:
        row = session.get_one(QueryRow, query_id)
        assert row.question == "How much is it?"
        assert [t["role"] for t in row.history] == ["user", "assistant"]


def streamed(chat: openai.OpenAI, **how: Any) -> list[Any]:
    def run() -> list[Any]:
        options = {"include_usage": True}
        return list(
            chat.chat.completions.create(
                model="geo:fees", messages=MESSAGES, stream=True, stream_options=options
            )
        )

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(run)
        answering.answer(newest_query(), **how)
        return asked.result(timeout=10)


def told(chunks: list[Any]) -> list[str]:
    return [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]


def test_openai_client_streams_whole_verified_claims(chat: openai.OpenAI) -> None:
    chunks = streamed(chat, pause_s=0.02)
    first, second, third = answering.SENTENCES
    assert told(chunks) == [f"{first}[1]", f" {second}[1]", f" {third}[1]"]
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == 120


def test_restart_that_repeats_the_claims_is_not_noticed(chat: openai.OpenAI) -> None:
    assert len(told(streamed(chat, begin_again_after=2))) == 3


def test_cut_off_answer_says_so(chat: openai.OpenAI) -> None:
    chunks = streamed(chat, status=AnswerStatus.INCOMPLETE)
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"


def test_refusal_is_told_in_its_words(chat: openai.OpenAI) -> None:
    words = "The documents do not answer this question."
    assert told(streamed(chat, status=AnswerStatus.REFUSED, text=words, sentences=())) == [words]


def test_failed_query_is_an_error_and_not_an_empty_answer(chat: openai.OpenAI) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(chat.chat.completions.create, model="geo:fees", messages=MESSAGES)
        answering.finish(newest_query(), Outcome(AnswerStatus.FAILED))
        with pytest.raises(openai.InternalServerError) as caught:
            asked.result(timeout=10)
    assert caught.value.status_code == 503


def test_openai_client_lists_collections_as_models(chat: openai.OpenAI) -> None:
    assert [m.id for m in chat.models.list()] == ["geo:fees"]
    for model in ("geo:nowhere", "gpt-4"):
        with pytest.raises(openai.NotFoundError):
            chat.chat.completions.create(model=model, messages=MESSAGES)
    last: Any = [{"role": "assistant", "content": "x"}]
    with pytest.raises(openai.UnprocessableEntityError):
        chat.chat.completions.create(model="geo:fees", messages=last)


def test_errors_have_the_openai_shape_as_well(chat: openai.OpenAI, url: str) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        chat.chat.completions.create(model="geo:nowhere", messages=MESSAGES)
    assert missing.value.code == "not_found"
    assert missing.value.type == "not_found_error"
    assert "ollection" in missing.value.message
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key="wrong-key-of-nobody", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError) as refused,
    ):
        stranger.models.list()
    assert refused.value.code == "unauthenticated"


def test_a_busy_engine_is_a_429_that_clients_wait_on(
    chat: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    from generation import admitting
    from generation.admission import Refusal

    monkeypatch.setattr(admitting, "_refused", lambda *_, **__: Refusal("kv", 7.0))
    with pytest.raises(openai.RateLimitError) as caught:
        chat.chat.completions.create(
            model="geo:fees", messages=MESSAGES, extra_body={"policy": {"mode": "free"}}
        )
    assert caught.value.code == "engine_busy"
    assert caught.value.response.headers["retry-after"] == "7"


def test_a_chat_client_that_leaves_stops_its_query(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.settings import get_settings

    monkeypatch.setenv("GEO_API__DISCONNECT_GRACE_S", "0")
    get_settings.cache_clear()
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/chat/completions", json={"model": "geo:fees", "messages": MESSAGES}, timeout=0.5)
    query_id = newest_query()

    def cancelled() -> bool:
        with get_database().read() as session:
            return session.get_one(QueryRow, query_id).status == "cancelled"

    wait_until(cancelled)


def test_answer_that_takes_too_long_is_504_with_its_id(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from generation import service

    original = service.wait_end

    async def impatient(*args: Any, **kwargs: Any) -> Any:
        return await original(*args, **{**kwargs, "deadline_s": 0.2})

    monkeypatch.setattr(service, "wait_end", impatient)
    answer = client.post("/v1/search", json=QUESTION)
    assert answer.status_code == 504
    assert answer.json()["query_id"].startswith("qry_")


def test_openai_client_reads_an_answer_as_one_json_object(chat: openai.OpenAI) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(
            chat.chat.completions.create,
            model="geo:fees",
            messages=MESSAGES,
            response_format={"type": "json_object"},
        )
        answering.answer(newest_query())
        done = asked.result(timeout=10)
    answer = json.loads(done.choices[0].message.content or "")
    jsonschema.validate(answer, structured.SCHEMA)
    assert [c["text"] for c in answer["claims"]] == list(answering.SENTENCES)
    assert answer["claims"][0]["citations"][0]["document_name"] == "fees.txt"


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "mine", "schema": {}}}}, "own"),
        ({"response_format": {"type": "json_schema", "json_schema": "cited_answer"}}, "own"),
        ({"response_format": {"type": "json_schema"}}, "own"),
        ({"response_format": {"type": "xml"}}, "json_object"),
        ({"response_format": {"type": "json_object"}, "stream": True}, "stream"),
    ],
)
def test_a_format_that_is_not_served_is_refused_before_the_engine(
    client: httpx.Client, how: dict[str, Any], word: str
) -> None:
    body = {"model": "geo:fees", "messages": [{"role": "user", "content": "How much?"}], **how}
    refused = client.post("/v1/chat/completions", json=body)
    assert refused.status_code == 422
    assert word in refused.json()["detail"]


# -- clients that leave by the hundred ---------------------------------------------------------


def test_three_hundred_readers_that_leave_cancel_their_queries(
    client: httpx.Client, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.settings import get_settings

    monkeypatch.setenv("GEO_API__DISCONNECT_GRACE_S", "0.2")
    get_settings.cache_clear()
    readers = 300

    async def one(browser: httpx.AsyncClient) -> None:
        headers = {"Accept": "text/event-stream"}
        async with browser.stream("POST", "/v1/queries", json=QUESTION, headers=headers) as answer:
            assert answer.status_code == 200
            async for _ in answer.aiter_bytes():
                return  # the first byte says that it is open

    async def all_at_once() -> None:
        async with httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {OPERATOR_KEY}"},
            limits=httpx.Limits(max_connections=readers),
            timeout=60,
        ) as browser:
            await asyncio.gather(*(one(browser) for _ in range(readers)))

    asyncio.run(all_at_once())

    def left() -> bool:
        with get_database().read() as session:
            states = {row.status for row in session.query(QueryRow)}
            return states == {"cancelled"} and session.query(QueryRow).count() == readers

    wait_until(left, within_s=60)
    assert client.get("/v1/documents").status_code == 200
