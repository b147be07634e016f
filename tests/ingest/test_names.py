from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidInput
from ingest.names import clean_metadata, clean_tags, display_name, title_of


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\x\\合同.docx", "合同.docx"),
        ("a/b/", "document"),
        ("..", "document"),
        ("", "document"),
        ("\x00\r\n", "document"),
        ("safe\u202etxt.exe", "safetxt.exe"),
        ("e\u0301.md", "é.md"),
        ("\ud800x.md", "x.md"),
        ("x" * 300 + ".md", "x" * 197 + ".md"),
    ],
)
def test_a_display_name_is_the_last_part_without_controls(sent: str, shown: str) -> None:
    assert display_name(sent) == shown


@given(st.text())
def test_a_display_name_is_short_one_line_and_never_blank(sent: str) -> None:
    name = display_name(sent)
    assert 1 <= len(name) <= 200
    assert name.isprintable() or all(c.isprintable() or ord(c) > 0x9F for c in name)
    assert not set(name) & set("/\\\0\r\n")
    name.encode()


def test_titles_are_one_line_and_neither_blank_nor_long() -> None:
    assert title_of("  a\n b\u200b ", "name") == "a b"
    for bad in ("", " \u200b", "x" * 201):
        with pytest.raises(InvalidInput):
            title_of(bad, "name")


def test_tags_are_trimmed_and_come_once() -> None:
    assert clean_tags([" a", "a", "", "\x00", "b"]) == ["a", "b"]
    for bad in (["x" * 65], [str(n) for n in range(65)]):
        with pytest.raises(InvalidInput):
            clean_tags(bad)


@pytest.mark.parametrize("bad", [{"x": math.nan}, {"x": math.inf}, {"x": object()}, {"x": "y" * 17_000}])
def test_metadata_must_be_small_finite_json(bad: dict) -> None:
    with pytest.raises(InvalidInput):
        clean_metadata(bad)
