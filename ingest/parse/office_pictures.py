"""Pages that are nothing but pictures (scans pasted into a document, slides saved as images), recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import DocumentRejected
from ingest.parse.findings import Findings
from ingest.parse.model import Block, ParseOptions, ParseWarning
from ingest.parse.zip_package import MemberDamaged, ZipPackage

if TYPE_CHECKING:
    from ingest.parse.recognise import Recogniser


class PictureReader:
    """Recognises the text in pictures of one package, up to the cap on recognised pages."""

    def __init__(self, package: ZipPackage, findings: Findings, options: ParseOptions) -> None:
        self._package = package
        self._findings = findings
        self._options = options
        self._recogniser: Recogniser | None = None

    def blocks(self, names: Sequence[str], first: int, total: int, page: int | None = None) -> list[Block]:
        """Text of pictures, one after the other; empty when recognition is off or finds nothing.

        Args:
            names: members of the package, in reading order.
            first: number of the first one among all `total`, for progress and warnings.
            total: pictures or slides of the document.
            page: the slide that they are on; then all of them count as `first`.
        """
        from ingest.parse.recognise import Recogniser, why_not

        if not names or why_not(self._options) is not None:
            return []
        if self._recogniser is None:
            self._recogniser = Recogniser(self._options.ocr_max_pages)
        found: list[Block] = []
        for index, name in enumerate(names):
            number = first if page is not None else first + index
            read = self._read(self._recogniser, name, number, max(total, number))
            self._findings.count("images_not_read", -bool(read), page)
            found.extend(read)
        return [
            replace(b, fragments=tuple(replace(f, page=page, box=None, line=None) for f in b.fragments))
            for b in found
        ]

    def warnings(self, *, with_pages: bool) -> tuple[ParseWarning, ...]:
        """What a person should know of the recognised pictures."""
        told = self._recogniser.warnings() if self._recogniser else []
        return tuple(told if with_pages else (replace(w, pages=()) for w in told))

    @property
    def partial(self) -> bool:
        """Whether pictures past the cap were left out."""
        return self._recogniser is not None and self._recogniser.partial

    def _read(self, recogniser: Recogniser, name: str, number: int, total: int) -> list[Block]:
        from ingest.parse.image import DAMAGE, frame_pixels, open_image
        from ingest.parse.pdf_blocks import blocks_of_lines
        from ingest.parse.pdf_layout import lines_of_page

        try:
            with open_image(self._package.read(name)) as image:
                page = recogniser.read(number, total, lambda: (frame_pixels(image, 1), 1.0))
        except MemberDamaged:
            self._findings.damaged(name)
            return []
        except DocumentRejected as error:
            if error.code != "corrupt":
                raise
            return []  # a drawing in a format of its own; it stays counted as not read
        except DAMAGE:
            return []
        return [] if page is None else list(blocks_of_lines(lines_of_page(page)))
