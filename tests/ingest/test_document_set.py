"""The public document set, where it is present: each file gives its text or the refusal it calls for."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from typing import Any

import pytest
import regex

from core.errors import DocumentRejected
from ingest.normalize import NormalizedDocument, build
from ingest.parse import parse_bytes
from tests.conftest import SHARED

ROOT = SHARED / "data" / "docs"
EXPECTED = ROOT / "expected.jsonl"
LINES: list[dict[str, Any]] = (
    [json.loads(line) for line in EXPECTED.read_text("utf-8").splitlines()] if EXPECTED.exists() else []
)
REFUSALS = {
    "refused": {"refused"},
    "error": {"empty", "corrupt"},
    "error_or_partial": {"corrupt", "no_text"},
    "error_encrypted": {"encrypted"},
    "no_text": {"no_text"},
}


def comparable(text: str) -> str:
    joined = regex.sub(r"(?<=\p{L})-\n(?=\p{Ll})", "", unicodedata.normalize("NFKC", text))
    return regex.sub(r"\s+", " ", joined)


@cache  # both tests look at every file
def outcome(name: str) -> NormalizedDocument | DocumentRejected:
    try:
        return build(parse_bytes((ROOT / name).read_bytes(), name))
    except DocumentRejected as error:
        return error


@pytest.mark.skipif(not LINES, reason="the public document set is not on this machine")
@pytest.mark.parametrize("line", LINES, ids=[line["file"] for line in LINES])
def test_every_file_gives_its_text_or_the_refusal_it_calls_for(line: dict[str, Any]) -> None:
    found = outcome(line["file"])
    if isinstance(found, DocumentRejected):
        assert found.code in REFUSALS.get(line["outcome"], set()), found.detail
        return
    assert line["outcome"] == "ok" or (line["outcome"] == "error_or_partial" and found.partial)
    shown = comparable(found.text)
    for wanted in line["contains"]:
        assert comparable(wanted) in shown or bare(wanted) in bare(shown), wanted
    for unwanted in line["excludes"]:
        assert unwanted not in found.text


def bare(text: str) -> str:
    return regex.sub(r"\s+", "", comparable(text))


@pytest.mark.skipif(not LINES, reason="the public document set is not on this machine")
def test_each_page_of_the_set_leads_back_to_its_source() -> None:
    for line in LINES:
        found = outcome(line["file"])
        if isinstance(found, DocumentRejected) or found.pages is None:
            continue
        for block in found.blocks:
            places = found.offset_map.places(block.span)
            assert places
            assert all(p.page is not None and 1 <= p.page <= found.pages for p in places)
