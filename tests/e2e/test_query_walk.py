from __future__ import annotations

import threading
import time

import pytest

from tests.e2e.stack import TERMINAL, Event, Stack, events, joined_claims, until

EN = (
    "# Orrin lighthouse\n\nThe Orrin lighthouse was first lit in 1874. Its lamp burns rapeseed oil. "
    "The keeper climbs 199 steps every evening.\n\n## Visits\n\n"
    "Visitors may enter on Sundays between ten and noon.\n"
)
ZH = (
    "# 云岭水库\n\n云岭水库建成于1968年，库容为三千二百万立方米。大坝高五十六米。\n\n每年四月开闸放水一次。\n"
)


@pytest.fixture(scope="module")
def collection(stack: Stack) -> str:
    made = stack.collection("walk-query")
    stack.ready(made, "orrin.md", EN)
    stack.ready(made, "yunling.md", ZH)
    return made


@pytest.mark.parametrize(
    ("question", "expected", "name"),
    [
        ("When was the Orrin lighthouse first lit?", "1874", "orrin.md"),
        ("云岭水库的大坝有多高？", "五十六米", "yunling.md"),
    ],
)
def test_extract_shows_cited_sentences_verbatim(
    stack: Stack, collection: str, question: str, expected: str, name: str
) -> None:
    answer = stack.ask(collection, question, policy={"mode": "extract"})
    assert answer["status"] == "answered"
    assert expected in answer["text"]
    for claim in answer["claims"]:
        assert claim["verdict"] == "supported"
        for citation in claim["citations"]:
            content = stack.client.get(f"/v1/documents/{citation['document_id']}/content").json()["text"]
            quote = citation["quote"]
            assert content[quote["start"] : quote["end"]] == quote["text"]
    assert any(c["document_name"] == name for claim in answer["claims"] for c in claim["citations"])


@pytest.mark.parametrize(
    ("before", "question", "expected"),
    [
        ("When was the Orrin lighthouse first lit?", "What does it burn?", "rapeseed"),
        ("云岭水库是哪一年建成的？", "它的大坝有多高？", "五十六米"),
    ],
)
def test_a_question_that_leans_on_an_earlier_turn_is_made_whole(
    stack: Stack, collection: str, before: str, question: str, expected: str
) -> None:
    history = [{"role": "user", "content": before}, {"role": "assistant", "content": "…[1]"}]
    body = {"question": question, "collection": collection, "history": history}
    found = stack.client.post("/v1/search", json=body).json()
    assert found["question"] == question
    assert found["asked"]["why"] == "pronoun"
    assert expected in found["hits"][0]["text"]
    answer = stack.ask(collection, question, history=history, policy={"mode": "extract"})
    assert expected in answer["text"]
    assert stack.client.post("/v1/search", json=body | {"history": []}).json()["asked"] == {}


def test_question_without_evidence_is_refused_without_the_engine(stack: Stack, collection: str) -> None:
    answer = stack.ask(collection, "Who won the 2014 chess olympiad in Tromsø?", policy={"mode": "free"})
    assert answer["status"] == "refused"
    assert answer["usage"]["completion_tokens"] == 0
    assert answer["claims"] == []


@pytest.mark.engine
def test_free_answer_streams_and_equals_the_stored_answer(stack: Stack, collection: str) -> None:
    body = {
        "question": "How many steps does the keeper of the Orrin lighthouse climb?",
        "collection": collection,
    }
    query_id = stack.client.post("/v1/queries", json={**body, "policy": {"mode": "free"}}).json()["id"]
    with events(stack, query_id) as stream:
        seen = list(stream)
    assert seen[0].event == "sources"
    assert seen[-1].event == "done"
    assert any(e.event == "delta" for e in seen)
    stored = stack.answered(query_id)
    assert stored["status"] in ("answered", "refused", "incomplete")
    assert joined_claims(seen) == stored["text"]
    assert all(c["verdict"] != "unsupported" for c in stored["claims"])
    for cut in range(len(seen) - 1):  # resumed anywhere, the client ends with the same text
        with events(stack, query_id, after=seen[cut].id) as stream:
            rest = list(stream)
        assert joined_claims(seen[: cut + 1] + rest) == stored["text"]


@pytest.mark.engine
def test_stream_that_is_gone_is_answered_from_the_stored_state(stack: Stack, collection: str) -> None:
    import redis

    answer = stack.ask(collection, "When was the Orrin lighthouse first lit?", policy={"mode": "extract"})
    url = stack.status()["redis_url"]
    redis.Redis.from_url(url).delete(f"geo:query:{answer['id']}:events")
    with events(stack, answer["id"]) as stream:
        seen = list(stream)
    assert joined_claims(seen) == answer["text"]
    assert seen[-1].payload["status"] == "answered"


@pytest.mark.engine
def test_cancel_aborts_in_the_engine(stack: Stack, collection: str) -> None:
    body = {"question": "Describe everything about the Orrin lighthouse.", "collection": collection}
    query_id = stack.client.post("/v1/queries", json={**body, "policy": {"mode": "free"}}).json()["id"]
    with events(stack, query_id) as stream:
        for event in stream:
            if event.event in ("sources", "delta"):
                break
        assert stack.client.delete(f"/v1/queries/{query_id}").status_code in (202, 204)
    assert stack.answered(query_id, 20)["status"] in ("cancelled", "answered", "incomplete")
    until(
        lambda: stack.client.get("/v1/admin/engine").json()["running"] == 0, within_s=10, what="engine idle"
    )


@pytest.mark.engine
@pytest.mark.timeout(300)
@pytest.mark.parametrize("worker", ["worker-retrieval", "worker-generation"])
def test_kill_mid_answer_ends_in_one_answer(stack: Stack, collection: str, worker: str) -> None:
    body = {"question": "How many steps does the keeper climb every evening?", "collection": collection}
    seen: list[Event] = []
    query_id = stack.client.post("/v1/queries", json={**body, "policy": {"mode": "free"}}).json()["id"]

    def read() -> None:
        with events(stack, query_id) as stream:
            seen.extend(stream)

    reader = threading.Thread(target=read)
    if worker == "worker-retrieval":
        stack.kill(worker)
        reader.start()
    else:
        reader.start()
        until(lambda: seen, within_s=60, what="first event", every_s=0.005)
        stack.kill(worker)
    answer = stack.answered(query_id, within_s=180)
    reader.join(timeout=30)
    assert answer["status"] in ("answered", "refused", "incomplete"), answer
    assert [e.event for e in seen].count("done") == 1
    if answer["status"] != "refused":
        assert joined_claims(seen) == answer["text"]
    until(lambda: stack.status()["engine"]["state"] == "ready", within_s=120, what="engine back", every_s=1)


@pytest.mark.engine
def test_openai_client_reads_answers_and_streams(stack: Stack, collection: str) -> None:
    from openai import OpenAI

    from tests.e2e.stack import KEY

    client = OpenAI(base_url=f"{stack.url}/v1", api_key=KEY)
    assert "geo:walk-query" in [m.id for m in client.models.list()]
    messages = [{"role": "user", "content": "When was the Orrin lighthouse first lit?"}]
    whole = client.chat.completions.create(model="geo:walk-query", messages=messages)
    text = whole.choices[0].message.content
    assert text is not None
    assert "1874" in text
    parts = client.chat.completions.create(model="geo:walk-query", messages=messages, stream=True)
    streamed = "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
    assert streamed == text


def test_streams_hold_no_database_connection(stack: Stack, collection: str) -> None:
    ids = []
    for n in range(10):
        # A deadline that no machine is too slow for: none is refused.
        question = f"Describe visit number {n} of the Orrin lighthouse."
        body = {"question": question, "collection": collection, "deadline_s": 3600}
        policy = {"mode": "free", "max_answer_tokens": 48}
        ids.append(stack.client.post("/v1/queries", json={**body, "policy": policy}).json()["id"])
    threads = [threading.Thread(target=lambda i=i: _drain(stack, i)) for i in ids]
    for thread in threads:
        thread.start()
    start = time.perf_counter()
    assert stack.client.get("/v1/documents").status_code == 200
    assert time.perf_counter() - start < 1.0
    for thread in threads:
        thread.join(timeout=120)
    assert {stack.answered(i)["status"] for i in ids} <= TERMINAL - {"failed"}


def _drain(stack: Stack, query_id: str) -> None:
    with events(stack, query_id) as stream:
        list(stream)
