"""The commands a person types, against the running stack."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.stack import Stack, until


def test_upload_ask_and_search_from_the_terminal(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "lamp.txt").write_text("The Norvik lamp burns for 96 hours on one filling.")
    (tmp_path / "papers" / "灯.txt").write_text("诺维克灯塔每年粉刷两次。", encoding="gb18030")
    uploaded = json.loads(stack.geo("upload", str(tmp_path / "papers"), "-c", "cli", "--json").stdout)
    assert [d["status"] for d in uploaded["items"]] == ["ready", "ready"]
    found = json.loads(
        stack.geo("search", "How long does the Norvik lamp burn?", "-c", "cli", "--json").stdout
    )
    assert "96 hours" in found["hits"][0]["text"]
    answer = json.loads(stack.geo("ask", "诺维克灯塔每年粉刷几次？", "-c", "cli", "--json").stdout)
    assert answer["status"] == "answered"
    assert "两次" in answer["text"]
    shown = stack.geo("ask", "How long does the Norvik lamp burn?", "-c", "cli").stdout
    assert "96 hours" in shown
    assert "[1] lamp.txt" in shown
    assert "supported" in shown


def test_status_shows_every_process_with_memory(stack: Stack) -> None:
    seen = stack.status()
    names = {p["name"] for p in seen["processes"]}
    assert names == {
        "redis", "api", "supervisor", "worker-ingest", "worker-index", "worker-retrieval",
        "worker-maintenance", "worker-generation",
    }  # fmt: skip
    assert all(p["rss_bytes"] > 0 for p in seen["processes"])
    assert seen["engine"]["state"] == "ready"
    assert seen["url"] in stack.geo("status").stdout


def test_tiers_and_keys_from_the_terminal(stack: Stack) -> None:
    tiers = json.loads(stack.geo("tiers", "list", "--json").stdout)
    assert "hot" in {t["tier"] for t in tiers["items"]}
    assert stack.geo("tiers", "rebuild", "luke-warm", check=False).returncode == 1
    made = json.loads(stack.geo("keys", "create", "reader", "--json").stdout)
    answer = httpx.get(f"{stack.url}/v1/documents", headers={"Authorization": f"Bearer {made['key']}"})
    assert answer.status_code == 200


def test_worker_check_is_green_while_it_consumes(stack: Stack) -> None:
    for name in ("ingest", "index", "retrieval", "maintenance", "generation"):
        assert stack.geo("worker", name, "--check").returncode == 0


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that may be broken; it names another engine server, so that it starts in seconds."""
    settings = {
        "GEO_GENERATION__ENGINE_URL": "http://127.0.0.1:9/v1",
        "GEO_WORKER__CANARY_INTERVAL_S": "1",
        "GEO_WORKER__STALL_AFTER_S": "6",
    }
    running = Stack(tmp_path_factory.mktemp("own") / "geo", settings)
    running.up()
    yield running
    running.down()


@pytest.mark.timeout(240)
def test_frozen_worker_is_started_again(own_stack: Stack) -> None:
    """It is alive for every liveness check, yet takes nothing."""
    old = own_stack.processes()["worker-ingest"]
    os.kill(old, signal.SIGSTOP)
    collection = own_stack.collection("frozen")
    document = own_stack.upload(collection, "a.txt", "The Alta weir has nine gates.").json()["id"]
    until(
        lambda: own_stack.processes().get("worker-ingest") not in (None, old), within_s=60, what="restarted"
    )
    assert own_stack.settled(document, within_s=90)["status"] == "ready"


@pytest.mark.timeout(240)
def test_killed_supervisor_leaves_nothing_and_the_next_start_goes_on(own_stack: Stack) -> None:
    collection = own_stack.collection("killed")
    document = own_stack.upload(collection, "b.txt", "The Tana weir has four gates.").json()["id"]
    pids = own_stack.processes()
    os.kill(pids["supervisor"], signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{p}").exists() for p in pids.values()), within_s=30, what="all ended")
    own_stack.up()
    assert own_stack.settled(document)["status"] == "ready"
