"""Foreign content in a DOCX body (`w:altChunk`): whole documents that some programs export this way."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import Any

from core.errors import DocumentRejected
from ingest.parse.members import MAX_DEPTH
from ingest.parse.model import Block, ParseOptions
from ingest.parse.ooxml import OfficePackage, R


def chunk_blocks(package: OfficePackage, part: str, chunk: Any, options: ParseOptions) -> list[Block]:
    """Blocks of the document that a `w:altChunk` stands for; one that cannot be read is noted as damaged.

    Raises:
        DocumentRejected: `too_big`, when the chunk passes a cap of the document.
    """
    from ingest.parse import parse_bytes  # this module belongs to a parser that it calls

    link = package.relations(part).get(chunk.get(R + "id") or "")
    if link is None or options.depth >= MAX_DEPTH:
        package.findings.damaged("altChunk")
        return []
    try:
        content = package.read(link.target)
        return list(
            parse_bytes(
                content, posixpath.basename(link.target), options=replace(options, depth=options.depth + 1)
            ).blocks
        )
    except DocumentRejected as error:
        if error.code == "too_big":
            raise
        package.findings.damaged(link.target)
        return []
