"""The operators' page of the index in headless Chromium, on real doors and rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from core.db import get_database, utcnow
from core.models import (
    BuildRow,
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    JobRow,
    MoveRow,
    RecallSampleRow,
)
from tests.api.conftest import OPERATOR_KEY
from tests.retrieval.rows import add_document
from tests.support.browser import UNNAMED, Watched, chromium, watched

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SHOTS = os.environ.get("GEO_TEST_SHOTS", "")  # a folder to keep pictures of the pages in
NAMES = ("Harbour fees 2024.pdf", "港口收费标准.docx", "<b onclick=window.pwned=1>minutes</b>.txt")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def filled(url: str) -> str:
    """Documents, a running build, samples of a day and moves of every kind."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {OPERATOR_KEY}"}) as client:
        collection = client.post("/v1/collections", json={"name": "shelf"}).json()["id"]
    now = utcnow()
    with get_database().write() as session:
        tenant = session.get_one(CollectionRow, collection).tenant_id
        for n, name in enumerate(NAMES):
            document, _ = add_document(session, tenant, collection, ["a", "b"])
            row = session.get_one(DocumentRow, document)
            row.name, row.created_at = name, now - timedelta(days=400 * n)
            session.get_one(DocumentVersionRow, (document, 1)).passage_count = 2
            session.add(
                MoveRow(
                    tenant_id=tenant, collection_id=collection, document_id=document, from_tier="hot",
                    to_tier=("warm", "cold", "cold")[n], reason=("idle", "pinned", "budget")[n],
                    facts={"uses": 0.25 * n, "age_days": 31.5}, vectors=2, generation=7,
                    status=("done", "planned", "superseded")[n],
                    moved_by=("policy", "key_operator", "policy")[n], created_at=now - timedelta(minutes=n),
                )
            )  # fmt: skip
        for hour in range(24):
            for tier, recall in (("hot", 1.0), ("warm", 0.97), ("cold", 0.9 + hour / 400)):
                session.add(
                    RecallSampleRow(
                        tier=tier, generation=1, recall=recall, at=now - timedelta(hours=hour, minutes=3)
                    )
                )
        for n, (mode, status) in enumerate(
            (("full", "running"), ("compact", "failed"), ("full", "published"))
        ):
            build = BuildRow(
                id=f"bld_{n}", tier="hot", mode=mode, status=status, created_by="key_x",
                open_key="hot" if status == "running" else None, created_at=now - timedelta(minutes=5 * n),
                stats={"vectors": 41_000, "recall": 0.971}, to_generation=8 if n == 2 else None,
                error_code="build_rejected" if status == "failed" else None,
                error_detail="Recall is 0.91, the floor 0.95." if status == "failed" else None,
            )  # fmt: skip
            session.add(build)
        session.add(
            JobRow(
                id="job_1", tenant_id=tenant, task="retrieval.rebuild", queue="rebuild", subject_kind="build",
                subject_id="bld_0", status="running", progress_done=4_100, progress_total=10_000,
                started_at=now - timedelta(seconds=41), lease_token="t",
                lease_expires_at=now + timedelta(hours=1),
            )
        )  # fmt: skip
    return url


@contextmanager
def index_page(browser: Browser, url: str, key: str = OPERATOR_KEY, **more: object) -> Iterator[Watched]:
    with watched(browser, f"{url}/#/index", **more) as seen:  # type: ignore[arg-type] - options of `watched`
        seen.page.locator("#key").fill(key)
        seen.page.locator("form button[type=submit]").click()
        expect(seen.page.locator("section.panel")).to_have_count(5)
        expect(seen.page.locator("main .loading")).to_have_count(0)
        yield seen


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def panel(page: Page, name: str):
    return page.locator(f"[data-panel={name}]")


def test_tiers_recall_builds_and_moves_are_shown(browser: Browser, filled: str) -> None:
    with index_page(browser, filled) as seen:
        page = seen.page
        expect(panel(page, "tiers").locator("[data-tier=hot]")).to_contain_text("Hot")
        expect(panel(page, "recall").locator("svg [data-series]")).to_have_count(3)
        expect(panel(page, "recall").locator("[data-recall=cold]")).to_contain_text("92.9%")
        expect(panel(page, "recall").locator("[data-recall=cold] .low")).to_be_visible()
        title = panel(page, "recall").locator("[data-series=warm] circle title").first
        assert "97%" in (title.text_content() or "")
        running = page.locator("[data-build=bld_0]")
        expect(running).to_contain_text("4,100 of 10,000")
        expect(running.locator("progress")).to_have_attribute("max", "10000")
        expect(page.locator("[data-build=bld_1]")).to_contain_text("the floor 0.95")
        rows = panel(page, "moves").locator("tbody tr")
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text("31.5 days old")
        expect(panel(page, "moves")).to_contain_text(NAMES[2])
        page.locator("[data-key=moves-reason]").select_option("pinned")
        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text("key_operator")
        page.locator("[data-key=recall-span]").select_option("1")
        expect(panel(page, "recall").locator("circle")).to_have_count(3)


def test_a_rebuild_is_begun_from_its_tier_and_shows_among_the_builds(browser: Browser, url: str) -> None:
    with index_page(browser, url) as seen:
        page = seen.page
        page.locator("[data-tier=hot]").get_by_role("button", name="Rebuild: Hot").click()
        newest = panel(page, "builds").locator(".build").first
        expect(newest.locator(".badge")).to_have_text("queued")
        expect(page.locator("[data-tier=hot]").get_by_role("button", name="Rebuild: Hot")).to_be_disabled()
        newest.get_by_role("button", name="Pause Rebuild: Hot").click()
        expect(newest.locator(".badge")).to_have_text("paused")
        newest.get_by_role("button", name="Resume Rebuild: Hot").click()
        expect(newest.locator(".badge")).to_have_text("queued")
        newest.get_by_role("button", name="Cancel Rebuild: Hot").click()
        page.locator("dialog .button.danger").click()
        expect(newest.locator(".badge")).to_have_text("cancelled")


def test_a_running_build_is_cancelled_only_after_a_question(browser: Browser, filled: str) -> None:
    with index_page(browser, filled) as seen:
        page = seen.page
        cancel = page.locator("[data-key=cancel-bld_0]")
        cancel.click()
        expect(page.locator("dialog")).to_contain_text("thrown away")
        page.locator("dialog").get_by_role("button", name="Cancel", exact=True).first.click()
        with get_database().read() as session:
            assert not session.get_one(JobRow, "job_1").cancel_requested
        cancel.click()
        page.locator("dialog .button.danger").click()
        expect(page.locator("dialog")).to_have_count(0)


def test_a_dry_run_shows_moves_with_reasons_and_a_second_step_begins_them(
    browser: Browser, filled: str
) -> None:
    with index_page(browser, filled) as seen:
        page, form = seen.page, panel(seen.page, "placement")
        form.locator("select").first.select_option(label="shelf")
        form.locator("select").last.select_option("cold")
        form.locator("[data-key=dry-run]").click()
        expect(form.locator("[data-plan='3']")).to_be_visible()
        expect(form.locator("tbody tr").first).to_contain_text("Pinned")
        with get_database().read() as session:
            assert session.query(DocumentRow).filter(DocumentRow.wanted_tier.is_not(None)).count() == 0
        form.locator("[data-key=place]").click()
        expect(page.locator("dialog")).to_contain_text("until you change it")
        page.locator("dialog .button.danger").click()
        expect(page.locator(".notice")).to_contain_text("3 documents are on their way")
        with get_database().read() as session:
            wanted = session.query(DocumentRow.wanted_tier).all()
        assert {tier for (tier,) in wanted} == {"cold"}


def test_a_key_that_is_too_weak_is_told_so_in_every_part(browser: Browser, filled: str) -> None:
    with httpx.Client(base_url=filled, headers={"Authorization": f"Bearer {OPERATOR_KEY}"}) as client:
        key = client.post("/v1/admin/keys", json={"name": "a", "role": "admin"}).json()["key"]
    with index_page(browser, filled, key, expected={403}) as seen:
        parts = seen.page.locator("section.panel").all()
        for part in parts:
            expect(part).to_contain_text("role operator")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_fits_the_screen_in_both_languages(
    browser: Browser, filled: str, language: str, width: int
) -> None:
    with index_page(browser, filled, language=language, width=width) as seen:
        page = seen.page
        expect(panel(page, "recall").locator("svg")).to_be_visible()
        panel(page, "placement").locator("[data-key=dry-run]").click()
        expect(page.locator("[data-plan]")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.evaluate(UNNAMED) == []
        shot(page, f"index-{language}-{width}")
