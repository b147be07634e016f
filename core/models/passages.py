"""Passages and what is stored of their vectors.

Their ids are 64-bit integers because FAISS and tantivy key on them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, LargeBinary, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from core.models.base import Base, BigId


class PassageRow(Base):
    __tablename__ = "passages"
    __table_args__ = (
        UniqueConstraint("document_id", "version", "ordinal"),
        ForeignKeyConstraint(
            ["document_id", "version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
        {"sqlite_autoincrement": True},  # a deleted id is never given again, so an index cannot confuse them
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    tenant_id: Mapped[str] = mapped_column(String(40), index=True)
    collection_id: Mapped[str] = mapped_column(String(40), index=True)
    document_id: Mapped[str] = mapped_column(String(40))
    version: Mapped[int]
    ordinal: Mapped[int]
    start: Mapped[int]
    end: Mapped[int]
    page: Mapped[int | None]
    heading_path: Mapped[list[str]] = mapped_column(default=list)
    page_breaks: Mapped[list[Any]] = mapped_column(
        default=list, server_default=text("'[]'"), doc="(offset, page) of each page that begins inside"
    )
    lang: Mapped[str] = mapped_column(String(8))
    text: Mapped[str] = mapped_column(Text)


class PassageVectorRow(Base):
    """The unit vector of a passage, fp16 little endian; index files are derived from these rows."""

    __tablename__ = "passage_vectors"

    passage_id: Mapped[int] = mapped_column(ForeignKey("passages.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(String(120), primary_key=True)
    vector: Mapped[bytes] = mapped_column(LargeBinary)


class PassageTokensRow(Base):
    """Token vectors of a passage for the rerank, as `retrieval/token_codec.py` packs them (at most 16 kB)."""

    __tablename__ = "passage_tokens"

    passage_id: Mapped[int] = mapped_column(ForeignKey("passages.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(String(120), primary_key=True)
    packed: Mapped[bytes] = mapped_column(LargeBinary)
