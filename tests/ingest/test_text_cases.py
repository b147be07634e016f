"""Files that broke other systems, through the real stages on both databases."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from sqlalchemy import select

from core.db import Database
from core.models import DocumentVersionRow, PassageRow
from core.packs import pack_path
from core.settings import get_settings
from core.types import DocumentStatus
from ingest.sentences import sentences
from ingest.split import RESERVED_TOKENS, encoder_text, split
from ingest.tokens import tokenizer_counter
from tests.ingest.lifecycle import get, make_tenants, run_waiting, upload
from tests.ingest.parsing import cut, read


def passages_of(db: Database, path: Path) -> list[PassageRow]:
    """Upload, run what waits, and give the stored passages."""
    make_tenants(db)
    document = upload(db, path.read_bytes(), path.name).document
    assert run_waiting(db, document.id) == ["ingest.normalize", "ingest.disambiguate"]
    assert get(db, document.id).status == DocumentStatus.PROCESSING
    with db.read() as session:
        text = session.get_one(DocumentVersionRow, (document.id, 1)).text or ""
        rows = list(
            session.scalars(
                select(PassageRow).where(PassageRow.document_id == document.id).order_by(PassageRow.ordinal)
            )
        )
    assert all(text[row.start : row.end] == row.text for row in rows)
    return rows


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("D01/spindle_gbk.txt", "预热时间为十五分钟"),
        ("D03/chat_surrogate.json", "很满意 😊 但物流慢 \ufffd end"),
        ("D03/emoji_runs.txt", "反馈😀👨‍👩‍👧‍👦🇨🇳"),
        ("D04/nul_inside.txt", "Warranty period: 24 months."),
        ("D04/nul_inside.txt", "prefix is QX-7."),
        ("D18/empty_sections.md", "巡检间隔为四小时。"),
    ],
)
def test_a_difficult_file_ends_in_passages(
    database: Database, shared_data: Path, file: str, shown: str
) -> None:
    rows = passages_of(database, shared_data / "cases" / file)
    assert any(shown in row.text for row in rows)
    for row in rows:
        row.text.encode()
        assert "\x00" not in row.text
        assert regex.search(r"[\p{L}\p{N}\p{Emoji_Presentation}]", row.text)


@pytest.mark.parametrize("target", [32, 48, 64])
def test_emoji_are_never_cut_by_the_encoders_tokenizer(shared_data: Path, target: int) -> None:
    document = read((shared_data / "cases" / "D03" / "emoji_runs.txt").read_bytes(), "emoji_runs.txt")
    count = tokenizer_counter(pack_path(get_settings().packs.encoder))
    drafts = split(document, count, target, 64)
    clusters = {m.start() for m in regex.finditer(r"\X", document.text)} | {len(document.text)}
    assert len(drafts) > 10
    for draft in drafts:
        draft.text.encode()
        assert {draft.span.start, draft.span.end} <= clusters
        assert count([draft.text])[0] + RESERVED_TOKENS <= 64


@pytest.mark.parametrize("file", ["cjk_no_break.txt", "one_space.txt"])
def test_text_without_breaks_is_cut_within_two_seconds(shared_data: Path, file: str) -> None:
    content = (shared_data / "cases" / "D08" / file).read_bytes()
    begun = time.monotonic()
    document = read(content, file)
    drafts = cut(document, 160, 320)
    assert time.monotonic() - begun < 2
    assert all(a.span.end <= b.span.start for a, b in pairwise(drafts))
    assert "".join("".join(d.text.split()) for d in drafts) == "".join(document.text.split())


def test_no_passage_is_longer_than_the_encoders_window(shared_data: Path) -> None:
    settings = get_settings()
    count = tokenizer_counter(pack_path(settings.packs.encoder))
    content = (shared_data / "cases" / "D54" / "dense_zh.txt").read_bytes()
    document = read(b"# " + content[:900] + b"\n\n" + content, "dense_zh.md")
    for target in (64, settings.ingest.passage_tokens, settings.ingest.passage_max_tokens):
        for draft in split(document, count, target, settings.ingest.passage_max_tokens):
            shown = f"passage: {encoder_text(draft.heading_path, draft.text)}"
            assert count([shown])[0] + 2 <= 512


def test_no_passage_begins_with_a_closing_mark_in_the_case_file(shared_data: Path) -> None:
    document = read((shared_data / "cases" / "D06" / "punct.txt").read_bytes(), "punct.txt")
    for draft in cut(document, 32, 96):
        assert draft.text[0] not in "。！？；”…"
        assert draft.text.count("“") == draft.text.count("”")
        assert len(sentences(draft.text)) >= 1
