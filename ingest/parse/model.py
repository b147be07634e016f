"""What a parser gives: blocks in reading order, made of fragments that know their place in the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from core.types import Box


class BlockKind(StrEnum):
    """The role of a block; one block becomes one line of the normalized text."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE_ROW = "table_row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Fragment:
    """A run of source text inside one block.

    Attributes:
        text: as decoded, not yet cleaned.
        glue: what stands between this fragment and the one before it in the block: `""`, a space, or ` | `
            between table cells.
        start: offset of `text[0]` in the decoded source; text formats only, and only where the source
            holds `text` verbatim, or says in `written` how long its other spelling is.
        written: characters that stand for `text` in the source, where they are not `text` itself (an escape,
            an entity).
        line: 1-based source line (text formats, HTML).
        page, box: place on a page (PDF).
    """

    text: str
    glue: str = " "
    start: int | None = None
    line: int | None = None
    page: int | None = None
    box: Box | None = None
    written: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """One heading, paragraph, list item, table row or piece of code.

    Attributes:
        level: depth of a heading (1 = top, 0 = the document's title) or of a list item (0 = outermost).
        paragraph: 0-based number of the block in the source (DOCX, HTML).
        table: number of the table that a row belongs to, so that rows of two tables stay apart.
        is_table_header: the row names the columns of its table.
        member: part inside a container.
    """

    kind: BlockKind
    fragments: tuple[Fragment, ...]
    level: int = 0
    paragraph: int | None = None
    table: int | None = None
    is_table_header: bool = False
    member: str | None = None

    @property
    def text(self) -> str:
        """The fragments joined by their glue, uncleaned."""
        return "".join((f.glue if i else "") + f.text for i, f in enumerate(self.fragments))


@dataclass(frozen=True, slots=True)
class ParseWarning:
    """Something a person should know about a document that was read all the same.

    Attributes:
        code: stable and machine-readable, e.g. `text_damaged`, `main_content_not_found`, `has_revisions`.
        pages: 1-based pages it concerns; empty = the whole document.
    """

    code: str
    detail: str
    pages: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The form stored with the document and shown at the doors."""
        return {"code": self.code, "detail": self.detail, "pages": list(self.pages)}


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps a parser keeps while it reads.

    Attributes:
        max_chars: of decoded text, all blocks.
        max_inflated_bytes: all members of a zip-based file together.
        max_inflation_ratio: inflated bytes per stored byte of one member.
        max_members: members of a zip-based file.
    """

    max_chars: int = 20_000_000
    max_inflated_bytes: int = 512 << 20
    max_inflation_ratio: float = 200.0
    max_members: int = 10_000


class OcrMode(StrEnum):
    """When pictures of text are read by optical character recognition."""

    AUTO = "auto"  # pages and images without a usable text layer
    OFF = "off"


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """How a document is read. Everything here changes the outcome and is stored with the version.

    Attributes:
        limits: caps.
        ocr: when to recognise text in pictures.
        ocr_max_pages: pages of one document that are recognised at most; further ones are left out.
        keep_hidden: take text that people cannot see (white, zero-size, off-page, `display:none`) as well;
            otherwise it is left out and a warning says so.
        depth: how many documents this one is nested in (an attachment of a message: 1).
    """

    limits: Limits = field(default_factory=Limits)
    ocr: OcrMode = OcrMode.AUTO
    ocr_max_pages: int = 200
    keep_hidden: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document as read from its bytes, before cleaning.

    Attributes:
        media_type: as sniffed from the content.
        properties: what the document says of itself: `author`, `created`, `modified`, `published` (ISO 8601),
            `description`, `language`; only those it names.
        encoding: of text formats, as detected, with `encoding_confidence` in [0, 1].
        pages: number of pages, where the format has pages.
        partial: something could not be read; `warnings` say what.
    """

    media_type: str
    blocks: tuple[Block, ...]
    title: str = ""
    pages: int | None = None
    encoding: str | None = None
    encoding_confidence: float | None = None
    warnings: tuple[ParseWarning, ...] = field(default=())
    partial: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
