"""Settings of reading documents."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from core.settings.section import MIB, Section


class IngestSettings(Section):
    """Parsing, splitting and linking."""

    parse_timeout_s: float = Field(default=120.0, ge=1, le=3600, description="reading one document")
    parse_memory_bytes: int = Field(
        default=2048 * MIB, ge=64 * MIB, description="of the process that reads it"
    )
    max_chars: int = Field(default=20_000_000, ge=1000, description="of one document's text")
    max_inflated_bytes: int = Field(
        default=512 * MIB, ge=1 * MIB, description="zip-based formats, all members"
    )
    max_inflation_ratio: float = Field(
        default=200.0, ge=2, description="unpacked over packed size, per member"
    )
    max_members: int = Field(default=10_000, ge=1, description="files inside one")
    ocr: Literal["auto", "off"] = Field(
        default="auto", description="recognise text in pages and images without a text layer"
    )
    ocr_max_pages: int = Field(
        default=200, ge=0, le=100_000, description="pages of one document that are recognised at most"
    )
    # A dense A4 page takes 3.4 s of one core; the rest is for a machine that does other things as well.
    ocr_page_timeout_s: float = Field(
        default=120.0,
        ge=1,
        le=3600,
        description="one recognised page; such pages do not count to parse_timeout_s",
    )
    keep_hidden_text: bool = Field(
        default=False, description="index text that people cannot see (white, zero-size, off-page)"
    )
    # Chosen on CLAPNQ put together to long documents: gold characters in the best five .963, .877 at 160.
    passage_tokens: int = Field(
        default=320, ge=16, le=8192, description="target size, in the encoder's tokens"
    )
    passage_max_tokens: int = Field(
        default=480, ge=32, le=8192, description="hard cap below the encoder's window"
    )
    link_threshold: float = Field(default=0.5, ge=0, le=1, description="below it a mention stays NIL")
