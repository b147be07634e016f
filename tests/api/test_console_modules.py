"""The console's pure modules, run in the browser that they are written for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Page

from api.app import create_app
from tests.support.browser import chromium, watched

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """The sign-in page; it needs no database."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(), log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with chromium() as browser, watched(browser, url) as seen:
        yield seen.page
    server.should_exit = True
    thread.join(timeout=10)


def run(page: Page, module: str, body: str, argument: Any = None) -> Any:
    """Evaluate `body` with the module's exports as `m` and the argument as `a`."""
    script = f"async (a) => {{ const m = await import('/js/{module}.js'); {body} }}"
    return page.evaluate(script, argument)


STREAM = (
    ": keep-alive\r\n\r\nid: 1-0\r\nevent: sources\r\ndata: {}\r\n\r\n"
    "id: 2-0\nevent: delta\ndata: 第一\ndata: 第二\n\n"
    "data:no space\r\rid: 3-0\nevent: done\ndata: {}\n\nevent: cut off"
)
ENTRIES = [
    {"event": "sources", "data": "{}", "id": "1-0"},
    {"event": "delta", "data": "第一\n第二", "id": "2-0"},
    {"event": "message", "data": "no space", "id": "2-0"},
    {"event": "done", "data": "{}", "id": "3-0"},
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_event_stream_reads_the_same_in_any_pieces(page: Page, size: int) -> None:
    pieces = [STREAM[i : i + size] for i in range(0, len(STREAM), size)]
    assert run(page, "events", "const feed = m.parser(); return a.flatMap(feed);", pieces) == ENTRIES


TEXTS = ["plain text", "云岭水库建成于1968年。", "a😀b🏔️c", "😀😀😀", ""]


@pytest.mark.parametrize("text", TEXTS)
def test_offsets_count_code_points(page: Page, text: str) -> None:
    spans = [[i, j] for i in range(len(text) + 1) for j in range(i, len(text) + 1)]
    body = """
        const cut = ({ start, end }) => a.text.slice(start, end);
        return a.spans.map(([start, end]) => cut(m.span16(a.text, { start, end })));
    """
    assert run(page, "text", body, {"text": text, "spans": spans}) == [text[i:j] for i, j in spans]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one",
        "a\n\nb\n\n\n\nc\n",
        "x" * 9001,
        "😀" * 4500,
        ("line of text\n" * 700) + "\n\nend",
        "标题\n\n正文",
    ],
)
def test_blocks_lose_nothing_but_blank_space(page: Page, text: str) -> None:
    headings = [{"start": 0, "end": 2, "level": 1}] if text.startswith("标题") else []
    body = "return m.blocks(a.text, a.headings).map((b) => a.text.slice(b.start, b.end));"
    pieces = run(page, "text", body, {"text": text, "headings": headings})
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(len(piece) <= 4001 for piece in pieces)
    assert all(piece.encode() for piece in pieces), "no block ends inside a character"


def test_cited_words_are_found_at_their_place_and_again_in_a_later_version(page: Page) -> None:
    text = "😀 The fee is 5. Paid at the gate.\n\nThe fee is 5. Paid at the quay."
    start = text.rindex("The fee is 5.")
    quote = {"start": start, "end": start + 13, "text": "The fee is 5."}
    passage = {"text": "The fee is 5. Paid at the quay."}
    wanted = {"text": text, "target": {"quote": quote, "passage": passage}}
    body = (
        "const f = m.locate(a.text, a.target, a.same); return [f.quote?.start ?? -1, f.passage?.start ?? -1];"
    )
    assert run(page, "text", body, {**wanted, "same": True}) == [start + 1, start + 1]  # 😀 is two units
    moved = {**wanted, "text": "New line.\n" + text, "same": False}
    assert run(page, "text", body, moved) == [13, start + 11]
    assert run(page, "text", body, {**wanted, "text": "Nothing of it.", "same": False}) == [-1, -1]


FOLD = "return a.reduce((s, [event, payload]) => m.applied(s, event, payload), m.begun({ question: 'q' }));"
SHOWN = (
    FOLD.replace("return", "const s =", 1)
    + " return m.pieces(s).map((c) => [c.ordinal, c.text, Boolean(c.draft)]);"
)


def claim(ordinal: int, text: str, *, erased: bool = False) -> list[Any]:
    return [
        "claim",
        {"ordinal": ordinal, "text": text, "verdict": "supported", "citations": [], "erased": erased},
    ]


def delta(number: int, text: str) -> list[Any]:
    return ["delta", {"claim": number, "text": text}]


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ([delta(0, "The fee"), delta(0, " is")], [[0, "The fee is", True]]),
        ([delta(0, "The fee is 6"), claim(0, "The fee is 5.")], [[0, "The fee is 5.", False]]),
        ([delta(0, "Wrong."), claim(0, "")], []),
        (
            [claim(1, "B."), claim(0, "A."), delta(2, "C")],
            [[0, "A.", False], [1, "B.", False], [2, "C", True]],
        ),
        ([claim(0, "A."), delta(1, "B"), ["restart", {}], delta(0, "X")], [[0, "X", True]]),
        ([claim(0, "A."), delta(1, "half"), ["done", {"status": "incomplete"}]], [[0, "A.", False]]),
        ([claim(0, "", erased=True)], [[0, "", False]]),
        ([["unheard-of", {}]], []),
    ],
    ids=["joined", "replaced", "removed", "ordered", "restarted", "ended", "erased", "unknown"],
)
def test_answer_follows_its_events(page: Page, events: list[Any], shown: list[Any]) -> None:
    assert run(page, "answer-state", SHOWN, events) == shown


def test_pages_of_a_remark_are_told_as_ranges(page: Page) -> None:
    told = run(page, "remarks", "return a.map(m.ranges);", [[1], [1, 2, 3, 7], [2, 4, 6, 8, 10, 12, 14], []])
    assert told == ["1", "1–3, 7", "2, 4, 6, 8, 10, 12, …", ""]
    words = run(
        page, "remarks", "return m.remarkWords(a);", {"code": "ocr_used", "detail": "x", "pages": [3]}
    )
    assert words.endswith("Pages 3.")
    assert run(page, "remarks", "return m.remarkWords(a);", {"code": "new", "detail": "Plain."}) == "Plain."


@pytest.mark.parametrize(
    ("values", "low"), [([1, 1], 0.95), ([0.95, 1], 0.9), ([0.93], 0.9), ([0.02], 0), ([0], 0)]
)
def test_a_chart_begins_a_step_below_its_lowest_value(page: Page, values: list[float], low: float) -> None:
    assert run(page, "chart", "return m.lowest(a);", values) == pytest.approx(low)


def test_a_chart_draws_time_from_left_to_right_and_more_above_less(page: Page) -> None:
    body = """
        const scale = { from: 0, until: 100, low: 0.5, width: 400 };
        return [[0, 0.5], [100, 1], [50, 0.75]].map(([at, share]) => m.place(scale, at, share));
    """
    (left, bottom), (right, top), (middle, half) = run(page, "chart", body)
    assert 0 < left < middle < right < 400
    assert 0 < top < half < bottom
    assert (middle, half) == pytest.approx(((left + right) / 2, (top + bottom) / 2), abs=0.2)
