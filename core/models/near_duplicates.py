"""Signatures of texts, and the pairs of documents that say nearly the same."""

from __future__ import annotations

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from core.models.base import Base


class SignatureRow(Base):
    """MinHash signature of a version's text, for near-duplicates (see `ingest/near.py`)."""

    __tablename__ = "signatures"
    __table_args__ = (
        ForeignKeyConstraint(
            ["document_id", "version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
    )

    document_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    values: Mapped[bytes] = mapped_column(LargeBinary, doc="uint32, little endian")


class SignatureBandRow(Base):
    """One band of a signature: documents of a collection that share a key may be near-duplicates."""

    __tablename__ = "signature_bands"
    __table_args__ = (
        ForeignKeyConstraint(
            ["document_id", "version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
        Index("ix_signature_bands_key", "collection_id", "key"),
    )

    document_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[int] = mapped_column(BigInteger, primary_key=True, doc="hash of band number and values")
    collection_id: Mapped[str] = mapped_column(String(40))


class NearDuplicateRow(Base):
    """Two versions of different documents whose texts overlap; `document_id` is the smaller id."""

    __tablename__ = "near_duplicates"
    __table_args__ = (
        ForeignKeyConstraint(
            ["document_id", "version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["other_id", "other_version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
        Index("ix_near_duplicates_other", "other_id", "other_version"),
    )

    document_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    other_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    other_version: Mapped[int] = mapped_column(primary_key=True)
    similarity: Mapped[float] = mapped_column(doc="Jaccard index of shingles, 0 to 1")
