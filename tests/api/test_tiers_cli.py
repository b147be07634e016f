"""`geo tiers` against the running doors: what it prints, its JSON, its exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from api.cli import make_cli
from core.db import get_database, utcnow
from core.errors import GeoError, TransientError
from core.models import BuildRow, CollectionRow, DocumentRow, DocumentVersionRow, RecallSampleRow, TierRow
from core.settings import get_settings
from tests.api.conftest import OPERATOR_KEY, Configure
from tests.retrieval.rows import add_document


@pytest.fixture
def geo(url: str, configure: Configure):
    """Runs a command; returns what it printed and its exit code. An error of the service is raised."""
    configure(client__url=url, client__key=OPERATOR_KEY)

    def run(*words: str) -> Result:
        result = CliRunner().invoke(make_cli(), ["tiers", *words])
        if isinstance(result.exception, GeoError):
            raise result.exception
        return result

    return run


@pytest.fixture
def shelf(url: str) -> list[str]:
    import httpx

    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {OPERATOR_KEY}"}) as client:
        collection = client.post("/v1/collections", json={"name": "shelf"}).json()["id"]
    with get_database().write() as session:
        tenant = session.get_one(CollectionRow, collection).tenant_id
        ids = [add_document(session, tenant, collection, ["a", "b"])[0] for _ in range(3)]
        for document in ids:
            session.get_one(DocumentVersionRow, (document, 1)).passage_count = 2
            session.get_one(DocumentRow, document).name = f"{document}.txt"
    return ids


def read(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_list_names_every_tier_and_fails_while_one_is_refused(geo) -> None:
    assert {"hot", "warm", "cold"} <= {t["tier"] for t in read(geo("list", "--json"))["items"]}
    shown = geo("list")
    assert (shown.exit_code, shown.stdout.split()[:2]) == (0, ["hot", "empty"])
    with get_database().write() as session:
        session.add(TierRow(tier="hot", refused="page 3 is cut"))
    shown = geo("list")
    assert (shown.exit_code, "refused: page 3 is cut" in shown.stdout) == (1, True)


def test_a_build_is_opened_listed_and_cancelled(geo) -> None:
    build = read(geo("rebuild", "hot", "--json"))
    assert build["status"] == "queued"
    assert build["id"] in geo("builds").stdout
    with pytest.raises(GeoError, match="409"):
        geo("rebuild", "hot")
    cancelled = geo("cancel", build["id"])
    assert (cancelled.exit_code, "cancelled" in cancelled.stdout) == (0, True)
    followed = geo("follow", build["id"])
    assert (followed.exit_code, "cancelled" in followed.stdout) == (0, True)
    with pytest.raises(GeoError, match="404"):
        geo("follow", "bld_none")


def test_a_failed_build_ends_the_follower_with_its_reason(geo) -> None:
    with get_database().write() as session:
        session.add(
            BuildRow(
                id="bld_bad", tier="hot", status="failed", created_by="x", error_code="build_rejected",
                error_detail="Recall is 0.91, the floor 0.95.",
            )
        )  # fmt: skip
    followed = geo("follow", "bld_bad")
    assert (followed.exit_code, "the floor 0.95" in followed.stdout) == (1, True)


def test_a_dry_run_shows_moves_that_the_next_command_begins(geo, shelf: list[str]) -> None:
    told = geo("place", "shelf", "cold", "--dry-run")
    assert "3 documents, 6 vectors would move" in told.stdout
    assert read(geo("moves", "--json"))["items"] == []
    assert "are on their way" in geo("place", "shelf", "cold").stdout
    moves = read(geo("moves", "--status", "planned", "--json"))["items"]
    assert {m["document_id"] for m in moves} == set(shelf)
    assert geo("moves", "--limit", "2").stdout.count("hot → cold") == 2
    assert read(geo("place", "all", "--dry-run", "--json"))["documents"] == 0
    with pytest.raises(GeoError, match="422"):
        geo("place", "all", "cold")
    with pytest.raises(GeoError, match="404"):
        geo("place", "nothing", "cold")


def test_a_policy_is_shown_changed_and_counted(geo, shelf: list[str]) -> None:
    assert "version 0 (the default)" in geo("policy", "shelf").stdout
    changed = read(geo("policy", "shelf", "--set", "hot_days=3", "--set", "pinned=warm", "--json"))
    assert (changed["version"], changed["policy"]["hot_days"], changed["policy"]["pinned"]) == (1, 3, "warm")
    assert read(geo("policy", "shelf", "--set", "pinned=auto", "--json"))["policy"]["pinned"] is None
    assert geo("policy", "shelf", "--set", "hot_days").exit_code == 2
    assert geo("policy", "shelf", "--set", "hot_days=soon").exit_code == 2
    with pytest.raises(GeoError, match="422"):
        geo("policy", "shelf", "--set", "hot_dayz=3")


def test_recall_is_drawn_and_fails_below_the_floor(geo) -> None:
    assert "no samples" in geo("recall").stdout
    with get_database().write() as session:
        for recall in (0.8, 0.9, 1.0):
            session.add(RecallSampleRow(tier="cold", generation=1, recall=recall, at=utcnow()))
    shown = geo("recall")
    assert (shown.exit_code, "cold  0.900 over 3" in shown.stdout) == (1, True)


def test_a_service_that_is_away_is_told_apart(geo, configure: Configure) -> None:
    configure(client__url="http://127.0.0.1:9")
    assert get_settings().client.url.endswith(":9")
    with pytest.raises(TransientError, match="geo up"):
        geo("list")
