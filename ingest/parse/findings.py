"""What a parser left out or met on its way: counted while reading, told once as warnings."""

from __future__ import annotations

from collections.abc import Iterable

from core.errors import DocumentRejected
from ingest.parse.model import ParseWarning

_TEXTS = {
    "hidden_text": "{n} characters that people cannot see were left out.",
    "hidden_text_kept": "{n} characters that people cannot see were taken.",
    "has_revisions": "Tracked changes: insertions were taken, deletions were left out.",
    "images_not_read": "{n} pictures were not read; text in them is not in the document.",
    "embedded_objects": "{n} embedded objects were not read; upload the files they hold by themselves.",
    "headers_footers_left_out": "{n} headers and footers were left out as page furniture.",
    "contents_list_left_out": "{n} lines of a table of contents were left out; the headings are in the text.",
    "symbols_unknown": "{n} symbols of a private font have no known character and were left out.",
    "hidden_sheets": "{n} hidden sheets were left out.",
    "hidden_rows": "{n} hidden rows were left out.",
    "hidden_columns": "{n} hidden columns were left out.",
    "hidden_slides": "{n} hidden slides were left out.",
    "formulas_without_value": "{n} formulas hold no value; open the file, calculate and save it.",
    "sheets_not_tables": "{n} chart, macro or dialog sheets were left out.",
    "too_many_rows": "{n} rows past the cap of a sheet were left out.",
    "too_many_columns": "{n} cells past the column cap were left out.",
    "parts_not_read": "{n} parts of a kind that is not known were left out.",
}
"""Stable codes of the office formats and what they mean; `{n}` is the count."""


class Findings:
    """Counters by code, in the order in which the codes were first met."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._pages: dict[str, set[int]] = {}
        self._damaged: list[str] = []

    def count(self, code: str, number: int = 1, page: int | None = None) -> None:
        """Add to a counter of `_TEXTS`; one that comes back to zero leaves no trace."""
        if number:
            self._counts[code] = self._counts.get(code, 0) + number
            if self._counts[code] <= 0:
                del self._counts[code]
            if page is not None:
                pages = self._pages.setdefault(code, set())
                pages.add(page) if number > 0 else pages.discard(page)

    def damaged(self, part: str) -> None:
        """Note a part that could not be read; the document becomes partial."""
        if part not in self._damaged:
            self._damaged.append(part)

    def number(self, code: str) -> int:
        """The count so far."""
        return self._counts.get(code, 0)

    def refuse_pictures(self, kind: str) -> None:
        """Refuse a document without text, when it holds pictures.

        Raises:
            DocumentRejected: `no_text`.
        """
        if number := self.number("images_not_read"):
            raise DocumentRejected(
                "no_text",
                f"The {kind} holds no text, only pictures ({number:,}), and none was recognised as text.",
            )

    @property
    def partial(self) -> bool:
        """Whether a part is missing that should be in the text."""
        return bool(self._damaged) or any(
            self._counts.get(code) for code in ("too_many_rows", "too_many_columns")
        )

    def warnings(self) -> tuple[ParseWarning, ...]:
        """One warning per code, one for all damaged parts."""
        found = [
            ParseWarning(code, _TEXTS[code].format(n=f"{number:,}"), tuple(sorted(self._pages.get(code, ()))))
            for code, number in self._counts.items()
        ]
        if self._damaged:
            found.append(ParseWarning("part_damaged", f"Could not be read: {_listed(self._damaged)}."))
        return tuple(found)


def _listed(names: Iterable[str], at_most: int = 10) -> str:
    names = list(names)
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(names[:at_most]) + more


def comments_heading(*, chinese: bool) -> str:
    """The heading above comments, in the document's language."""
    return "批注" if chinese else "Comments"


def comment_line(author: str, quoted: str, text: str, *, chinese: bool) -> str:
    """One comment on one line: who, on which words, what."""
    if not quoted:
        return f"{author}{'：' if chinese else ': '}{text}" if author else text
    if chinese:
        return f"{author}对“{quoted}”：{text}"
    return f"{author} on “{quoted}”: {text}" if author else f"On “{quoted}”: {text}"
