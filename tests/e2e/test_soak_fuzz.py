"""Damaged files through the doors of a running stack: no 5xx, no dead worker, a reason for every document."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.stack import Stack, until
from tests.ingest.test_fuzz import REASONS
from tests.support.mutations import mutate
from tests.support.seeds import seeds

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
FILES = 600


def test_damaged_uploads_end_ready_or_with_a_reason_and_no_worker_dies(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "geo", {"GEO_GENERATION__ENGINE_URL": "http://127.0.0.1:9/v1"})
    stack.up()
    try:
        collection = stack.collection("damaged")
        before = {p["name"]: p["pid"] for p in stack.status()["processes"]}
        rng, originals = random.Random(20260302), seeds()
        contents = list(originals.values())
        answers: Counter[int] = Counter()
        ids: set[str] = set()
        for number in range(FILES):
            name = list(originals)[number % len(originals)]
            answer = stack.upload(collection, f"{number}-{name}", mutate(originals[name], rng, contents))
            answers[answer.status_code] += 1
            assert answer.status_code in (200, 202, 409, 415, 422), answer.text
            if answer.status_code in (200, 202):
                ids.add(answer.json()["id"])
        until(lambda: not in_work(stack, collection), within_s=1200, what="every document settled", every_s=2)
        documents = listed(stack, collection)
        assert {d["id"] for d in documents} == ids
        outcomes = Counter(d["status"] for d in documents)
        failed = [d for d in documents if d["status"] == "failed"]
        print(
            f"answers {dict(answers)}; {dict(outcomes)}; {dict(Counter(d['error']['code'] for d in failed))}"
        )
        assert set(outcomes) <= {"ready", "failed"}
        assert all(d["error"]["code"] in REASONS and d["error"]["detail"] for d in failed)
        assert not [d["error"] for d in failed if "could not be read:" in d["error"]["detail"]]
        assert {p["name"]: p["pid"] for p in stack.status()["processes"]} == before
        assert stack.geo("doctor", "--json", check=False).returncode == 0
    finally:
        stack.down()


def listed(stack: Stack, collection: str) -> list[dict]:
    found: list[dict] = []
    cursor = None
    while True:
        asked = {"collection": collection, "limit": 200, **({"cursor": cursor} if cursor else {})}
        page = stack.client.get("/v1/documents", params=asked).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if not cursor:
            return found


def in_work(stack: Stack, collection: str) -> bool:
    return any(d["status"] not in ("ready", "failed") for d in listed(stack, collection))
