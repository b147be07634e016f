"""Headless Chromium with a page that remembers whatever went wrong in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOCALES = {"en": "en-US", "zh": "zh-CN"}
# Hostile documents and names try to set this; the listener below hears of scripts that CSP stopped.
PWNED = "window.pwned"
# Controls that a screen reader has no name for.
UNNAMED = """() => [...document.querySelectorAll("button, a, input, select, textarea")]
  .filter((e) => !e.getAttribute("aria-label") && !(e.labels ? e.labels.length : 0))
  .filter((e) => e.matches("input, select, textarea") || !e.textContent.trim())
  .map((e) => e.outerHTML)"""
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => {
  violations.push(`${e.violatedDirective} ${e.blockedURI}`);
});
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """One browser; close it before any asyncio test runs, because its driver keeps a loop running."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page and its console errors, failed loads and uncaught exceptions.

    `expected` holds HTTP statuses that the test provokes: Chromium logs those as errors by itself.
    """

    page: Page
    expected: set[int] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def note(self, message: ConsoleMessage) -> None:
        status = re.search(r"status of (\d+)", message.text)
        if message.type not in ("error", "warning") or (status and int(status[1]) in self.expected):
            return
        self.errors.append(f"{message.type}: {message.text}")

    def check(self) -> None:
        assert self.page.evaluate(f"{PWNED} === undefined"), "text of a document was run as a script"
        assert self.page.evaluate("window.violations") == []
        assert self.errors == []


@contextmanager
def watched(
    browser: Browser, url: str, *, language: str = "en", width: int = 1280, expected: Iterable[int] = ()
) -> Iterator[Watched]:
    """A fresh page at `url`; checks on leaving that nothing ran, was refused by CSP or failed."""
    context = browser.new_context(
        locale=LOCALES[language], viewport={"width": width, "height": 860}, accept_downloads=True
    )
    context.set_default_timeout(20_000)
    context.add_init_script(_WATCH)
    page = context.new_page()
    seen = Watched(page, set(expected))
    page.on("console", seen.note)
    page.on("pageerror", lambda error: seen.errors.append(f"uncaught: {error}"))
    try:
        page.goto(url)
        yield seen
        seen.check()
    finally:
        context.close()
