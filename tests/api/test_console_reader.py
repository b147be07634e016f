"""The document view in headless Chromium: passages, and the place in the original that each came from."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from core.db import get_database
from core.models import DocumentVersionRow
from core.worker import Task
from ingest.parse import ocr
from tests.api.conftest import OPERATOR_KEY
from tests.ingest.lifecycle import make_live, run_waiting
from tests.ingest.parsing import SAMPLES, docx, paragraph
from tests.ingest.pictures import encoded, written
from tests.support.browser import chromium, watched

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SHOTS = os.environ.get("GEO_TEST_SHOTS", "")  # a folder to keep pictures of the pages in


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def ready(url: str, name: str, content: bytes) -> str:
    """Upload a file and read it as the ingest worker does."""
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {OPERATOR_KEY}"}) as client:
        client.post("/v1/collections", json={"name": "shelf"})
        made = client.post("/v1/documents", files={"file": (name, content)}, data={"collection": "shelf"})
        document_id = made.json()["id"]
    run_waiting(get_database(), document_id, Task.NORMALIZE)
    make_live(get_database(), document_id)
    return document_id


@contextmanager
def opened(browser: Browser, url: str, name: str, **more: Any) -> Iterator[Page]:
    """Signed in, with the document of this name open in the reader."""
    with watched(browser, f"{url}/#/documents", **more) as seen:
        page = seen.page
        page.locator("#key").fill(OPERATOR_KEY)
        page.locator("form button[type=submit]").click()
        page.locator(".document", has_text=name).locator("button.name").click()
        expect(page.locator("dialog .tabs")).to_be_visible()
        yield page


def view(page: Page, name: str) -> None:
    page.locator(f"[data-key=view-{name}]").click()


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))


def darkness_under(page: Page, selector: str) -> float:
    """Share of dark pixels of the page's picture that lie under the marks."""
    return page.evaluate(
        """(selector) => {
          const canvas = document.querySelector(".sheet canvas");
          const area = canvas.getBoundingClientRect();
          const scale = canvas.width / area.width;
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let dark = 0, all = 0;
          for (const mark of document.querySelectorAll(selector)) {
            const box = mark.getBoundingClientRect();
            const [left, right] = [box.left, box.right].map((v) => Math.round((v - area.left) * scale));
            const [top, bottom] = [box.top, box.bottom].map((v) => Math.round((v - area.top) * scale));
            for (let y = top; y < bottom; y += 1) {
              for (let x = left; x < right; x += 1) {
                all += 1;
                dark += data[4 * (y * canvas.width + x)] < 128;
              }
            }
          }
          return all ? dark / all : -1;
        }""",
        selector,
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_chosen_passage_of_a_pdf_is_marked_on_the_picture_of_its_page(
    browser: Browser, url: str, language: str
) -> None:
    name = "kestrel-k7-manual.pdf"
    ready(url, name, (SAMPLES / name).read_bytes())
    with opened(browser, url, name, language=language) as page:
        view(page, "passages")
        entries = page.locator(".passage-entry")
        expect(entries.first).to_be_visible()
        shot(page, f"passages-{language}")
        entries.last.click()
        marks = page.locator(".place-box.of-passage")
        expect(marks.first).to_be_in_viewport()
        assert darkness_under(page, ".place-box.of-passage") > 0.02
        number = page.locator(".page-number").inner_text()
        assert "2" in number
        expect(page.locator("dialog .callout .source-place")).to_contain_text("2")
        shot(page, f"page-{language}")
        page.locator("[data-key=page-before]").click()
        expect(page.locator(".page-number")).not_to_have_text(number)
        expect(marks).to_have_count(0)
        expect(page.locator("[data-key=page-before]")).to_be_disabled()
        view(page, "text")
        expect(page.locator("dialog .passage").first).to_be_in_viewport()
        shot(page, f"text-{language}")
        view(page, "passages")
        expect(page.locator(".passage-entry[aria-current]")).to_be_in_viewport()


def has_chinese_font() -> bool:
    """Whether this machine can draw Chinese text whose font is not in the file."""
    listed = shutil.which("fc-list")
    return bool(listed and subprocess.run([listed, ":lang=zh"], capture_output=True, check=False).stdout)


@pytest.mark.parametrize(
    ("name", "quote", "language"),
    [
        ("kestrel-k7-manual.pdf", "diaphragm", "en"),
        pytest.param(
            "xinglan-observatory.pdf",
            "海拔",
            "zh",
            marks=pytest.mark.skipif(not has_chinese_font(), reason="no Chinese font is installed"),
        ),
    ],
)
def test_the_cited_words_stand_out_from_their_passage_on_the_page(
    browser: Browser, url: str, name: str, quote: str, language: str
) -> None:
    document_id = ready(url, name, (SAMPLES / name).read_bytes())
    with get_database().read() as session:
        text = session.get_one(DocumentVersionRow, (document_id, 1)).text or ""
    start = text.index(quote)
    around = text[text.rindex("\n", 0, start) + 1 : text.index("\n", start)]
    citation = {
        "document_id": document_id, "document_name": name, "version": 1, "marker": 1, "page": 1,
        "quote": {"start": start, "end": start + len(quote), "text": quote}, "passage": {"text": around},
    }  # fmt: skip
    with opened(browser, url, name, language=language) as page:
        page.keyboard.press("Escape")
        page.emulate_media(color_scheme="dark")
        page.evaluate("async (target) => (await import('/js/views/reader.js')).openReader(target)", citation)
        expect(page.locator(".place-box.of-quote").first).to_be_in_viewport()
        assert page.locator(".place-box.of-passage").count() >= page.locator(".place-box.of-quote").count()
        assert darkness_under(page, ".place-box.of-quote") > 0.02
        expect(page.locator("dialog .callout")).to_contain_text("[1]")
        shot(page, f"quote-dark-{language}")
        view(page, "text")
        expect(page.locator("dialog mark")).to_have_text(quote)
        view(page, "passages")
        expect(page.locator(".passage-entry[aria-current]").first).to_be_visible()
        shot(page, f"passages-dark-{language}")


@pytest.mark.skipif(not ocr.available(), reason="the extra `ocr` is not installed")
def test_recognised_words_are_marked_on_the_scan_where_they_were_read(browser: Browser, url: str) -> None:
    from PIL import Image

    text = "The ferry to Holm leaves at seven.\nIt carries forty cars and a post van."
    scan = written(text, paper=(900, 1200)).transpose(Image.Transpose.ROTATE_90)
    ready(url, "ferry.png", encoded(scan))
    with opened(browser, url, "ferry.png") as page:
        view(page, "passages")
        page.locator(".passage-entry").first.click()
        expect(page.locator(".place-box").first).to_be_visible()
        assert darkness_under(page, ".place-box") > 0.03
        shot(page, "scan")


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("log.txt", b"First line.\n\nSecond entry of the log.\n\nThird entry of the log.\n", "line"),
        (
            "letter.docx",
            docx(paragraph("Dear reader.") + paragraph("The keys lie under the mat.")),
            "paragraph",
        ),
    ],
)
def test_a_passage_of_a_text_is_marked_in_the_text_with_its_place_in_words(
    browser: Browser, url: str, name: str, content: bytes, place: str
) -> None:
    ready(url, name, content)
    with opened(browser, url, name) as page:
        assert page.locator("[data-key=view-page]").count() == 0
        view(page, "passages")
        page.locator(".passage-entry").first.click()
        expect(page.locator("dialog .reader-text .passage").first).to_be_in_viewport()
        expect(page.locator("dialog .callout .source-place")).to_contain_text(place)
        shot(page, f"text-{name}")


def test_the_document_view_fits_a_narrow_screen(browser: Browser, url: str) -> None:
    name = "kestrel-k7-manual.pdf"
    ready(url, name, (SAMPLES / name).read_bytes())
    with opened(browser, url, name, width=390) as page:
        for each in ("text", "passages", "page"):
            view(page, each)
            expect(page.locator("dialog .loading")).to_have_count(0)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), each
            assert page.evaluate("document.querySelector('dialog').scrollWidth <= window.innerWidth"), each
            shot(page, f"narrow-{each}")
