"""Recognition of the pages of one document: its cap, what it tells on the way, its warnings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ingest.parse import ocr
from ingest.parse.model import OcrMode, ParseOptions, ParseWarning
from ingest.parse.pdf_words import PageText
from ingest.parse.progress import tell_pages
from ingest.parse.turned import Turn

if TYPE_CHECKING:
    from ingest.parse.ocr import Pixels

Picture = Callable[[], "tuple[Pixels, float]"]
"""Gives a page's pixels and the points per pixel at its turn, so that one picture is held at a time."""


def why_not(options: ParseOptions) -> str | None:
    """Why pictures are not read here, as a sentence; None when they are."""
    if options.ocr is OcrMode.OFF:
        return "Recognition of text in pictures is switched off (GEO_INGEST__OCR)."
    return None if ocr.available() else ocr.MISSING


@dataclass(slots=True)
class Recogniser:
    """Reads pages from their pictures, up to a cap.

    Attributes:
        max_pages: pages that are recognised; further ones are left out with a warning.
        tried: pages that were looked at.
        turns: pages whose text was recognised, by number, and how they were turned for it.
        doubtful: pages where lines were left out or the models were unsure.
        skipped: pages past the cap.
    """

    max_pages: int
    tried: int = 0
    turns: dict[int, Turn] = field(default_factory=dict)
    doubtful: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)

    def read(self, number: int, total: int, picture: Picture) -> PageText | None:
        """Recognise page `number` of `total`; None when it is past the cap or shows no text."""
        if self.tried >= self.max_pages:
            self.skipped.append(number)
            return None
        tell_pages(number - 1, total, recognising=True)
        self.tried += 1
        page = ocr.read_image(*picture())
        if page.doubtful:
            self.doubtful.append(number)
        if not page.lines:
            return None
        self.turns[number] = page.turn
        return page.page_text(number)

    def forget(self, number: int) -> None:
        """What was recognised on this page is not used."""
        self.turns.pop(number, None)
        self.doubtful = [n for n in self.doubtful if n != number]

    @property
    def partial(self) -> bool:
        """Whether pages were left out."""
        return bool(self.skipped)

    def warnings(self) -> list[ParseWarning]:
        """What a person should know of the recognised pages."""
        found: list[ParseWarning] = []
        if self.turns:
            found.append(
                ParseWarning(
                    "ocr_used",
                    "The text of these pages was recognised from their pictures; check what you rely on.",
                    tuple(self.turns),
                )
            )
        if self.doubtful:
            found.append(
                ParseWarning(
                    "ocr_low_confidence",
                    "Parts of these pages were not recognised surely; the least sure lines were left out. "
                    "A sharper scan helps.",
                    tuple(self.doubtful),
                )
            )
        if self.skipped:
            found.append(
                ParseWarning(
                    "ocr_page_limit",
                    f"Only {self.max_pages} pages of a document are recognised (GEO_INGEST__OCR_MAX_PAGES); "
                    "these were left out.",
                    tuple(self.skipped),
                )
            )
        return found
