"""The page of entities in headless Chromium: find one, see why it is linked, decide and take back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from core.db import get_database
from core.worker import Task
from tests.api.conftest import OPERATOR_KEY
from tests.ingest.lifecycle import make_live, run_waiting
from tests.support.browser import Watched, chromium, watched

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SHOTS = os.environ.get("GEO_TEST_SHOTS", "")  # a folder to keep pictures of the pages in
TEXTS = {
    "hill.md": "# 远山股份董监高\n\n李伟，男，远山股份财务负责人，2019 年入职。\n",
    "sea.md": "# 海石科技董监高\n\n😀 李伟，女，海石科技独立董事，材料学教授。\n",
    "novak.md": "# Board\n\nMaria Novak is the head of Quarbix Ltd. <img src=x onerror=window.pwned=1>\n",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def shelf(url: str) -> str:
    """Documents with their mentions, and a catalogue entity of a hostile name; returns the address."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {OPERATOR_KEY}"}) as client:
        client.post("/v1/collections", json={"name": "people"})
        for name, text in TEXTS.items():
            made = client.post(
                "/v1/documents", files={"file": (name, text.encode())}, data={"collection": "people"}
            )
            document_id = made.json()["id"]
            run_waiting(get_database(), document_id, Task.NORMALIZE, Task.DISAMBIGUATE)
            make_live(get_database(), document_id)
        rows = '{"name": "<b onmouseover=window.pwned=1>Zorbit</b>", "type": "ORG", "aliases": ["Zorbit"]}\n'
        client.post(
            "/v1/entities/import", content=rows, headers={"Content-Type": "application/jsonl"}
        ).raise_for_status()
    return url


@contextmanager
def entities(browser: Browser, url: str, language: str = "en") -> Iterator[Watched]:
    with watched(browser, f"{url}/#/entities", language=language) as seen:
        seen.page.locator("#key").fill(OPERATOR_KEY)
        seen.page.locator("form button[type=submit]").click()
        expect(seen.page.locator(".entities")).to_be_visible()
        yield seen


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def find(page: Page, text: str) -> None:
    page.locator("form[role=search] input[type=search]").fill(text)
    page.locator("form[role=search] button[type=submit]").click()


def send(page: Page) -> None:
    """Submit the form of the topmost dialog, and wait until it is gone."""
    box = page.locator("dialog.narrow")
    box.locator("button[type=submit]").click()
    expect(box).to_have_count(0)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_two_people_of_one_name_are_two_entries_that_tell_where_they_are_named(
    browser: Browser, shelf: str, language: str
) -> None:
    with entities(browser, shelf, language) as seen:
        page = seen.page
        find(page, "李伟")
        entries = page.locator(".entity", has=page.get_by_role("button", name="李伟", exact=True))
        expect(entries).to_have_count(2)
        expect(entries.filter(has_text="远山")).to_have_count(1)
        expect(entries.filter(has_text="海石科技")).to_have_count(1)
        shot(page, f"entities-{language}")
        texts: set[str] = set()
        for number in range(2):
            entries.nth(number).locator("button.name").click()
            box = page.locator("dialog.drawer")
            expect(box.locator(".mention mark")).to_have_text(["李伟"])
            expect(box.locator(".mention .reason")).to_contain_text("corpus=affiliation")
            texts.add(box.locator(".mention .snippet").inner_text())
            shot(page, f"entity-{number}-{language}")
            page.keyboard.press("Escape")
        assert len(texts) == 2


def test_a_place_opens_in_the_document(browser: Browser, shelf: str) -> None:
    with entities(browser, shelf) as seen:
        page = seen.page
        find(page, "海石科技")
        page.locator(".entity button.name", has_text="海石科技").click()
        page.locator("dialog .mention button.link").first.click()
        expect(page.locator("dialog .tabs")).to_be_visible()


def test_decisions_are_shown_and_the_newest_is_taken_back(browser: Browser, shelf: str) -> None:
    with entities(browser, shelf) as seen:
        page = seen.page
        find(page, "Quarbix")
        page.locator(".entity button.name", has_text="Quarbix").click()
        drawer = page.locator("dialog.drawer")
        drawer.locator("[data-key=rename]").click()
        page.locator("dialog.narrow input").fill("Quarbix Works")
        send(page)
        expect(drawer.locator("h2")).to_have_text("Quarbix Works")
        expect(drawer.locator(".events li")).to_contain_text("renamed: Quarbix Works")
        drawer.locator("[data-key=pin]").click()
        page.locator("dialog.narrow input").fill("QX")
        send(page)
        expect(drawer.locator(".pairs")).to_contain_text("QX")
        drawer.locator("[data-key=block]").click()
        expect(drawer.locator(".facts .badge")).to_have_text("blocked")
        shot(page, "entity-decided")
        for left in (1, 2, 3):
            drawer.locator("[data-key=undo]").click()
            page.locator("dialog.narrow button.danger").click()
            expect(drawer.locator(".events .badge[data-state=cancelled]")).to_have_count(left)
        expect(drawer.locator("h2")).to_have_text(re.compile("^Quarbix( Ltd)?$"))
        expect(drawer.locator("[data-key=undo]")).to_have_count(0)


def test_two_are_merged_and_split_again(browser: Browser, shelf: str) -> None:
    with entities(browser, shelf) as seen:
        page = seen.page
        find(page, "李伟")
        page.locator(".entity button.name", has_text="李伟").first.click()
        drawer = page.locator("dialog.drawer")
        drawer.locator("[data-key=merge]").click()
        shot(page, "entity-merge")
        page.locator("dialog.narrow .choices input").first.check()
        send(page)
        expect(drawer.locator(".mention")).to_have_count(2)
        drawer.locator("[data-key=split]").click()
        page.locator("dialog.narrow input[type=text]").first.fill("李伟（海石）")
        page.locator("dialog.narrow label", has_text="sea.md").locator("input").check()
        shot(page, "entity-split")
        send(page)
        expect(drawer.locator(".mention")).to_have_count(1)
        for _ in range(2):
            drawer.locator("[data-key=undo]").click()
            page.locator("dialog.narrow button.danger").click()
            expect(page.locator("dialog.narrow")).to_have_count(0)
        expect(drawer.locator(".mention")).to_have_count(1)
        expect(drawer.locator(".events .badge")).to_have_count(2)


def test_a_hostile_name_is_shown_as_it_is_written(browser: Browser, shelf: str) -> None:
    with entities(browser, shelf) as seen:
        page = seen.page
        find(page, "Zorbit")
        expect(page.locator(".entity")).to_have_count(1)
        expect(page.locator(".entity button.name")).to_have_text("<b onmouseover=window.pwned=1>Zorbit</b>")
        page.locator(".entity button.name").click()
        page.locator("dialog.drawer h2").hover()
        find_nothing = page.locator("dialog.drawer .muted").first
        expect(find_nothing).to_be_visible()
        page.keyboard.press("Escape")
        find(page, "nobody of this name")
        expect(page.locator(".card.empty")).to_be_visible()
        seen.check()
