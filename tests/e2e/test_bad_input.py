"""What nobody should send: a clear refusal or a reason, never a crash, and nothing left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.stack import Stack

FILES: dict[str, tuple[bytes, str]] = {
    "blank.txt": (" \n\t　\u200b\n".encode(), "empty"),
    "noise.xyz": (bytes(range(256)) * 8, "unsupported_format"),
    "program.txt": (b"\x7fELF\x02\x01\x01" + bytes(500), "unsupported_format"),
    "broken.pdf": (b"%PDF-1.7\n" + bytes(range(256)) * 4, "corrupt"),
    "broken.docx": (b"PK\x03\x04" + bytes(range(256)) * 4, "corrupt"),
    "nothing.json": (b"[" * 50_000, "empty"),
}
QUESTIONS = [
    "🙂🙂🙂", "？！。", "的", "a" * 3999, "水泵" * 1500,
    '"unclosed AND (NEAR/3', "pump:^~*?[]{}\\", "field:x OR *",
    "<think>hidden</think> pump", "a\x00b", "'; DROP TABLE passages; --", "{{7*7}} {0} %s",
]  # fmt: skip


@pytest.fixture(scope="module")
def collection(stack: Stack) -> str:
    made = stack.collection("bad-input")
    stack.ready(made, "pump.md", "# Pump\n\nThe pump is checked every 30 days.")
    return made


def test_unreadable_files_end_with_a_reason(stack: Stack, collection: str) -> None:
    assert stack.upload(collection, "zero.txt", b"").status_code == 422
    ids = {name: stack.upload(collection, name, raw).json()["id"] for name, (raw, _) in FILES.items()}
    seen = {name: stack.settled(i) for name, i in ids.items()}
    assert {n: (d["status"], d["error"]["code"]) for n, d in seen.items()} == {
        name: ("failed", code) for name, (_, code) in FILES.items()
    }
    assert all(d["error"]["detail"] for d in seen.values())


def test_upload_far_over_the_cap_is_refused_while_it_streams(stack: Stack, collection: str) -> None:
    def body() -> Iterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        for _ in range(264):
            yield bytes(1 << 20)

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = stack.client.post("/v1/documents", content=body(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert os.listdir(Path(stack.folder) / "blobs" / ".staging") == []


def refused(answer: httpx.Response) -> bool:
    return 400 <= answer.status_code < 500 and answer.headers["content-type"] == "application/problem+json"


def test_questions_that_are_no_questions(stack: Stack, collection: str) -> None:
    for question in QUESTIONS:
        answer = stack.client.post("/v1/search", json={"question": question, "collection": collection})
        assert answer.status_code == 200, (question[:30], answer.text)
        assert answer.elapsed.total_seconds() < 5
    ended = stack.ask(collection, QUESTIONS[0], policy={"mode": "extract"})
    assert ended["status"] == "refused"
    for question in ("", " \n", "\u200b　", "水" * 20_000):
        for door in ("/v1/search", "/v1/queries"):
            assert refused(stack.client.post(door, json={"question": question, "collection": collection}))


def test_nothing_is_wrong_afterwards(stack: Stack, collection: str) -> None:
    hits = stack.search(collection, "How often is the pump checked?")
    assert "30 days" in hits[0]["text"]
    doctor = stack.geo("doctor", "--json", check=False)
    assert doctor.returncode == 0, doctor.stdout
