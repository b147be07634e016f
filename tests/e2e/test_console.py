"""The console in headless Chromium, on the embedded stack with its real workers and engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.stack import KEY, Stack, until
from tests.support.browser import UNNAMED, Watched, chromium, watched

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

EN = (
    "# Vardo lighthouse\n\nThe Vardo lighthouse was first lit in 1896. 😀 Its lamp burns paraffin oil. "
    "The keeper climbs 143 steps every evening.\n\n## Visits\n\n"
    "Visitors may enter on Sundays between ten and noon.\n"
)
ZH = "# 青石水库\n\n青石水库建成于1973年，库容为两千万立方米。大坝高四十二米。\n\n每年四月开闸放水一次。\n"
HOSTILE_NAME = "<img src=x onerror=window.pwned=1>.md"
HOSTILE = (
    "# <script>window.pwned=1</script> Tide table\n\n<img src=x onerror=\"window.pwned=1\">\n"
    "<svg onload=window.pwned=1></svg> [link](javascript:window.pwned=1)\n\n"
    "The spring tide at Skerry point reaches 5.4 metres. <b onmouseover=window.pwned=1>Bold</b> claim.\n"
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def collection(stack: Stack) -> str:
    made = stack.collection("console")
    stack.ready(made, "vardo.md", EN)
    stack.ready(made, "qingshi.md", ZH)
    return made


@contextmanager
def console(
    browser: Browser,
    stack: Stack,
    section: str = "ask",
    *,
    collection: str = "console",
    key: str = KEY,
    **more: Any,
) -> Iterator[Watched]:
    """Signed in, with the collection open."""
    with watched(browser, f"{stack.url}/#/{section}", **more) as seen:
        sign_in(seen.page, key)
        seen.page.get_by_role("combobox", name=words("Collection", "文档集")).first.select_option(
            label=collection
        )
        yield seen


def words(en: str, zh: str) -> Any:
    """Either language's name of a control."""
    return re.compile(f"^({en}|{zh})$")


def sign_in(page: Page, key: str) -> None:
    page.locator("#key").fill(key)
    page.locator("form button[type=submit]").click()
    expect(page.locator("header nav")).to_be_visible()


def ask(page: Page, question: str, mode: str = "") -> None:
    page.locator("form.ask textarea").fill(question)
    page.locator("form.ask select").select_option(mode)
    page.locator("form.ask button[type=submit]").click()


def answer(page: Page, *states: str, within_s: float = 90) -> str:
    """Wait for the shown answer to end in one of the states; returns which."""
    shown = page.locator(", ".join(f".answer[data-status={s}]" for s in states))
    expect(shown).to_be_visible(timeout=within_s * 1000)
    return shown.get_attribute("data-status") or ""


def test_wrong_key_is_refused_in_words_and_a_right_one_is_kept_for_the_tab(
    browser: Browser, stack: Stack
) -> None:
    with watched(browser, stack.url) as seen:
        seen.expected.add(401)
        page = seen.page
        page.locator("#key").fill("geo_not_a_key_of_this_engine")
        page.locator("form button[type=submit]").click()
        expect(page.get_by_role("alert")).to_contain_text("not valid")
        sign_in(page, KEY)
        page.reload()
        expect(page.locator("header nav")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        page.reload()
        expect(page.locator("#key")).to_be_visible()


def test_collection_is_made_and_a_document_walks_to_ready_in_view(browser: Browser, stack: Stack) -> None:
    with watched(browser, f"{stack.url}/#/documents") as seen:
        page = seen.page
        sign_in(page, KEY)
        page.get_by_role("button", name="New collection").first.click()
        page.get_by_role("textbox", name="Name").fill("console uploads")
        page.get_by_role("button", name="Create").click()
        expect(page.locator(".picker select option:checked")).to_have_text("console uploads")
        page.evaluate(
            """() => {
              window.stages = new Set();
              window.sent = new Set();
              new MutationObserver(() => {
                document.querySelectorAll(".step.now").forEach((s) => window.stages.add(s.dataset.stage));
                document.querySelectorAll(".upload progress").forEach((p) => window.sent.add(p.value));
              }).observe(document.body, { subtree: true, childList: true, attributes: true });
            }"""
        )
        body = (
            EN + "\n\n".join(f"Entry {n}: {n * 3} ships passed the Vardo light." for n in range(400))
        ).encode()
        page.locator("#files").set_input_files(
            {"name": "log.md", "mimeType": "text/markdown", "buffer": body}
        )
        expect(page.locator(".document[data-status=ready]")).to_contain_text("log.md", timeout=90_000)
        assert page.evaluate("[...window.stages]"), "the walk was shown while it went on"
        assert page.evaluate("window.sent.size") > 0, "the upload had a progress bar"
        page.locator("#files").set_input_files(
            {"name": "copy.md", "mimeType": "text/markdown", "buffer": body}
        )
        expect(page.locator(".upload")).to_contain_text("same bytes")
        page.get_by_role("button", name="Dismiss").click()
        page.get_by_role("button", name="Delete log.md").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.locator(".document")).to_have_count(0, timeout=60_000)


def test_bad_upload_says_why_and_what_to_do(browser: Browser, stack: Stack, collection: str) -> None:
    with console(browser, stack, "documents") as seen:
        page = seen.page
        seen.expected |= {415, 422}
        page.locator("#files").set_input_files({"name": "empty.txt", "mimeType": "text/plain", "buffer": b""})
        expect(page.locator(".upload .problem")).to_contain_text("empty")
        expect(page.locator(".upload .problem")).to_contain_text("Request req_")
        page.get_by_role("button", name="Dismiss").click()
        broken = {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7\nno objects here"}
        page.locator("#files").set_input_files(broken)
        failed = page.locator(".document[data-status=failed]", has_text="broken.pdf")
        expect(failed).to_contain_text("What to do", timeout=60_000)


def test_citation_opens_its_passage_highlighted_and_in_view(
    browser: Browser, stack: Stack, collection: str
) -> None:
    with console(browser, stack) as seen:
        page = seen.page
        ask(page, "How many steps does the keeper of the Vardo lighthouse climb?", "extract")
        assert answer(page, "answered") == "answered"
        claim = page.locator(".claim", has_text="143").first
        expect(claim).to_have_class("claim supported")
        claim.locator(".marker").first.click()
        mark = page.locator("dialog mark").first
        expect(mark).to_be_in_viewport()
        assert "143 steps" in "".join(page.locator("dialog mark").all_inner_texts())
        expect(page.locator("dialog h2")).to_have_text("vardo.md")
        with page.expect_download() as download:
            page.get_by_role("button", name="Download the original").click()
        assert Path(download.value.path()).read_bytes() == EN.encode()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def test_chinese_console_answers_a_chinese_question_and_refuses_in_words(
    browser: Browser, stack: Stack, collection: str
) -> None:
    with console(browser, stack, language="zh", width=390) as seen:
        page = seen.page
        ask(page, "青石水库的大坝有多高？", "extract")
        answer(page, "answered")
        expect(page.locator(".claim .badge").first).to_have_text("有依据")
        page.locator(".claim", has_text="四十二米").locator(".marker").first.click()
        expect(page.locator("dialog mark").first).to_be_in_viewport()
        page.keyboard.press("Escape")
        page.get_by_label("接着下面的回答问").check()
        ask(page, "它的库容是多少？", "extract")
        expect(page.locator("[data-understood]")).to_contain_text("青石水库", timeout=60_000)
        expect(page.locator(".claim", has_text="两千万立方米")).to_be_visible()
        page.get_by_label("接着下面的回答问").uncheck()
        ask(page, "谁赢得了2014年在特罗姆瑟举行的国际象棋奥林匹克团体赛？", "free")
        answer(page, "refused")
        expect(page.locator(".answer .callout").first).to_contain_text("没有答案")
        expect(page.locator(".history .past").first).to_contain_text("拒答")


@pytest.mark.engine
def test_free_answer_streams_provisional_text_and_ends_as_it_is_stored(
    browser: Browser, stack: Stack, collection: str
) -> None:
    with console(browser, stack) as seen:
        page = seen.page
        page.evaluate(
            """() => {
              window.drafts = [];
              new MutationObserver(() => {
                const drafts = document.querySelectorAll(".claim.draft .claim-text");
                drafts.forEach((p) => window.drafts.push(p.textContent));
              }).observe(document.body, { subtree: true, childList: true });
            }"""
        )
        ask(page, "When was the Vardo lighthouse first lit, and what does its lamp burn?", "free")
        state = answer(page, "answered", "incomplete", "refused")
        assert page.evaluate("window.drafts.length") > 0, "provisional text was shown, marked as not checked"
        query_id = page.locator(".history .past").first.get_attribute("data-key")
        stored = stack.client.get(f"/v1/queries/{query_id}").json()
        assert stored["status"] == state
        shown = [t.inner_text() for t in page.locator(".claim .claim-text").all()]
        assert len(shown) == len(stored["claims"])
        for text, claim in zip(shown, stored["claims"], strict=True):
            assert text.startswith(claim["text"])
        assert page.locator(".claim.draft").count() == 0


@pytest.mark.engine
def test_question_can_be_stopped(browser: Browser, stack: Stack, collection: str) -> None:
    with console(browser, stack) as seen:
        page = seen.page
        ask(page, "Describe everything that is known about the Vardo lighthouse and its visitors.", "free")
        page.locator("form.ask").get_by_role("button", name="Stop").click()
        answer(page, "cancelled", "answered", "incomplete", within_s=30)
        expect(page.locator("form.ask button[type=submit]")).to_be_enabled()


def test_hostile_names_and_documents_are_shown_as_text_and_never_run(browser: Browser, stack: Stack) -> None:
    made = stack.collection("<b onclick=window.pwned=1>console</b>")
    document = stack.ready(made, HOSTILE_NAME, HOSTILE)
    stack.ready(
        made,
        "page.html",
        f"<html><head><title>{HOSTILE_NAME}</title></head><body><p>{HOSTILE}</p></body></html>",
    )
    with console(browser, stack, "documents", collection="<b onclick=window.pwned=1>console</b>") as seen:
        page = seen.page
        expect(page.locator(".document", has_text=document["name"]).first).to_be_visible()
        page.get_by_role("button", name=f"Open {document['name']}").click()
        expect(page.locator("dialog .reader-text")).to_contain_text("5.4 metres")
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Ask").click()
        ask(page, "How high is the spring tide at Skerry point? <script>window.pwned=1</script>", "extract")
        answer(page, "answered")
        for source in page.locator(".source summary").all():
            source.click()
        page.locator(".claim .marker").first.click()
        expect(page.locator("dialog mark").first).to_be_in_viewport()
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Search test").click()
        page.get_by_role("searchbox").fill("spring tide")
        page.keyboard.press("Enter")
        expect(page.locator(".hit").first).to_contain_text("spring tide")
        assert page.locator("main img, main script, main svg, dialog img").count() == 0


def test_search_test_shows_every_route_with_rank_and_score(
    browser: Browser, stack: Stack, collection: str
) -> None:
    with console(browser, stack, "search") as seen:
        page = seen.page
        page.get_by_role("searchbox").fill("Vardo lighthouse first lit")
        page.keyboard.press("Enter")
        first = page.locator(".hit").first
        expect(first).to_contain_text("1896")
        routes = {(chip.text_content() or "").split()[0] for chip in first.locator(".chip.route").all()}
        assert routes >= {"dense", "lexical"}
        first.locator("button.link").click()
        expect(page.locator("dialog .passage").first).to_be_in_viewport()


def test_operator_sees_jobs_and_the_engine(browser: Browser, stack: Stack, collection: str) -> None:
    with console(browser, stack, "operator") as seen:
        page = seen.page
        expect(page.locator("[data-panel=engine]")).to_contain_text("ready", timeout=60_000)
        expect(page.locator("[data-panel=jobs] tbody tr").first).to_be_visible()
        page.locator("[data-panel=jobs] select").select_option("done")
        expect(page.locator("[data-panel=jobs] tbody tr[data-status=done]").first).to_be_visible()


def test_operator_sees_tiers_and_rebuilds_one(browser: Browser, stack: Stack, collection: str) -> None:
    with console(browser, stack, "index") as seen:
        page = seen.page
        hot = page.locator("[data-tier=hot]")
        expect(hot).to_contain_text("Vectors")
        hot.get_by_role("button", name="Rebuild: Hot").click()
        newest = page.locator("[data-panel=builds] .build").first
        expect(newest.locator(".badge")).to_have_text("published", timeout=90_000)


def test_weak_key_is_told_what_it_may_not_do(browser: Browser, stack: Stack, collection: str) -> None:
    made = stack.client.post("/v1/admin/keys", json={"name": "console reader", "role": "reader"})
    with console(browser, stack, "operator", key=made.json()["key"], expected={403}) as seen:
        page = seen.page
        expect(page.locator("[data-panel=jobs]")).to_contain_text("role operator")
        expect(page.locator("[data-panel=keys]")).to_contain_text("role admin")
        page.get_by_role("link", name="Documents").click()
        page.locator("#files").set_input_files(
            {"name": "no.txt", "mimeType": "text/plain", "buffer": b"Not for me."}
        )
        expect(page.locator(".upload .problem")).to_contain_text("does not allow")
        stack.client.delete(f"/v1/admin/keys/{made.json()['id']}")
        seen.expected.add(401)
        until(lambda: page.locator("#key").is_visible(), within_s=20, what="a revoked key is signed out")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_section_fits_the_screen_in_both_languages(
    browser: Browser, stack: Stack, collection: str, language: str, width: int
) -> None:
    with console(browser, stack, language=language, width=width) as seen:
        page = seen.page
        headings = set()
        for section in ("ask", "documents", "search", "index", "operator"):
            page.goto(f"{stack.url}/#/{section}")
            expect(page.locator("main .loading")).to_have_count(0)
            headings.add(page.locator("h1").inner_text())
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), section
            assert page.evaluate(UNNAMED) == [], section
        assert len(headings) == 5
        assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]
