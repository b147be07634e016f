"""Files that must end with a reason and without a trace in the index."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select

from core.db import Database
from core.errors import InvalidInput
from core.models import PassageRow
from core.types import DocumentStatus
from core.worker import Task
from tests.ingest.lifecycle import get, jobs, make_tenants, run_waiting, upload
from tests.ingest.parsing import pdf
from tests.ingest.test_parse_epub import chapter, epub

PDF = pdf([(60, 60, "The valve opens at 5 bar.")])


def outcome(db: Database, content: bytes, name: str) -> tuple[str, str]:
    """Reason and words of a document that failed at its first attempt and left no passage."""
    document = upload(db, content, name).document
    run_waiting(db, document.id)
    seen = get(db, document.id)
    assert seen.status is DocumentStatus.FAILED
    assert seen.error is not None
    assert [j.attempts for j in jobs(db, document.id)] == [1]
    with db.read() as session:
        assert session.scalar(select(func.count()).select_from(PassageRow)) == 0
    return seen.error.code, seen.error.detail


@pytest.mark.parametrize(
    ("content", "name", "reason", "says"),
    [
        (PDF, "really_a_pdf.txt", "type_mismatch", (".txt", "PDF")),
        (
            b"This file is plain text, the name lies.",
            "really_text.pdf",
            "type_mismatch",
            (".pdf", "plain text"),
        ),
        (b" \n\t\n", "blank.txt", "empty", ("content",)),
        (b"PK\x05\x06" + bytes(18), "all.zip", "unsupported_format", ("ZIP", "Unpack", "PDF, DOCX")),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500),
            "old.doc",
            "unsupported_format",
            ("Save it as DOCX",),
        ),
    ],
)
def test_a_file_that_is_not_what_is_read_ends_with_words_that_help(
    sqlite_database: Database, content, name, reason, says
):
    make_tenants(sqlite_database)
    code, detail = outcome(sqlite_database, content, name)
    assert code == reason
    assert all(words in detail for words in says)


@pytest.mark.parametrize("file", ["D23/really_a_pdf.txt", "D23/really_text.pdf", "D19/blank.txt"])
def test_the_shared_files_of_this_kind_end_so_too(sqlite_database: Database, shared_data: Path, file):
    path = shared_data / "cases" / file
    if not path.exists():
        pytest.skip("case file not laid beside this checkout")
    make_tenants(sqlite_database)
    code, _ = outcome(sqlite_database, path.read_bytes(), path.name)
    assert code == ("empty" if "blank" in file else "type_mismatch")


@pytest.mark.parametrize("file", ["D19/zero.txt", "D19/zero.pdf"])
def test_the_shared_files_without_a_byte_are_refused_at_the_door(
    sqlite_database: Database, shared_data: Path, file
):
    path = shared_data / "cases" / file
    if not path.exists():
        pytest.skip("case file not laid beside this checkout")
    make_tenants(sqlite_database)
    with pytest.raises(InvalidInput, match="0 bytes"):
        upload(sqlite_database, path.read_bytes(), path.name)


def test_members_named_like_paths_are_never_files(sqlite_database: Database, tmp_path: Path):
    make_tenants(sqlite_database)
    before = {p for p in tmp_path.rglob("*") if "blobs" not in p.parts}
    hostile = {"..__..__up_dot_txt": "x", "__etc__up_dot_txt": "x", "C:\\up_dot_txt": "x", "a\r\nb": "x"}
    document = upload(sqlite_database, epub({"c": chapter("<p>Text.</p>")}, **hostile), "b.epub").document
    assert run_waiting(sqlite_database, document.id, Task.NORMALIZE)
    assert get(sqlite_database, document.id).error is None
    assert {p for p in tmp_path.rglob("*") if "blobs" not in p.parts} == before
