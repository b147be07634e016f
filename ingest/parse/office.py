"""How every office format ends: what was left out is told, a document of nothing but pictures is refused."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.parse.model import Block, ParsedDocument, ParseOptions
from ingest.parse.odf import OdfPackage
from ingest.parse.office_pictures import PictureReader
from ingest.parse.ooxml import OfficePackage
from ingest.parse.within import check_length


def finished(
    package: OfficePackage | OdfPackage,
    media_type: str,
    blocks: Sequence[Block],
    options: ParseOptions,
    *,
    pictures: PictureReader | None = None,
    pages: int | None = None,
) -> ParsedDocument:
    """The document as read.

    Raises:
        DocumentRejected: `too_big`, or `no_text` when it holds pictures only.
    """
    check_length(sum(len(b.text) for b in blocks), options.limits)
    if not blocks:
        package.findings.refuse_pictures(package.kind)
    title, properties = package.properties()
    seen = pictures.warnings(with_pages=pages is not None) if pictures is not None else ()
    return ParsedDocument(
        media_type,
        tuple(blocks),
        title=title,
        pages=pages,
        warnings=(*package.findings.warnings(), *seen),
        partial=package.findings.partial or (pictures is not None and pictures.partial),
        properties=properties,
    )
