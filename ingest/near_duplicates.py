"""Which documents of a collection have nearly the same text: met in a band, rated, then compared.

A version's signature is stored with its text. The stage after looks for others: of two documents that come
in together, the one that looks later finds the other, because each has committed its own signature before. A
pair is kept with both versions and shown while both are served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlalchemy import CompoundSelect, TextClause, and_, delete, or_, select, text, tuple_, union
from sqlalchemy import insert as sql_insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased

from core.models import (
    DocumentRow,
    DocumentVersionRow,
    NearDuplicateRow,
    SignatureBandRow,
    SignatureRow,
)
from core.types import DocumentStatus
from ingest.values import NearDuplicate

if TYPE_CHECKING:
    from ingest.near import Signature

REPORTED_FROM = 0.5
"""Jaccard index of shingles from which a pair is kept: about a third of either text differs, or fewer than
one word in ten in scattered places."""
_PER_BAND = 40  # documents looked at per band, so that a thousand copies do not cost a thousand looks each
_COMPARED = 10  # texts compared exactly, and pairs kept, per version
_ESTIMATED_FROM = REPORTED_FROM - 0.15  # three standard errors of the estimate below

Key = tuple[str, int]
"""A document and a version of it."""


def write_signature(
    session: Session, row: DocumentRow, version: int, values: Signature | None, *, first: bool = False
) -> None:
    """Replace a version's signature and bands; None when its text is too short to have one.

    `first` says that there is none to replace.
    """
    if not first:
        for table in (SignatureBandRow, SignatureRow):
            session.execute(delete(table).where(table.document_id == row.id, table.version == version))
    if values is None:
        return
    from ingest.near import band_keys

    session.execute(
        sql_insert(SignatureRow).values(
            document_id=row.id, version=version, values=values.astype("<u4").tobytes()
        )
    )
    own = {"document_id": row.id, "version": version, "collection_id": row.collection_id}
    session.execute(
        sql_insert(SignatureBandRow), [{**own, "key": key} for key in sorted(set(band_keys(values)))]
    )


def find_pairs(session: Session, document_id: str, version: int) -> list[tuple[Key, float]]:
    """Versions of other documents of the collection whose text is nearly this one's, most alike first."""
    import numpy as np

    from ingest.near import band_keys, estimate, jaccard, shingles

    own = session.get(SignatureRow, (document_id, version))
    row = session.get(DocumentRow, document_id)
    if own is None or row is None:
        return []
    values = np.frombuffer(own.values, dtype="<u4")
    met = _met(session, row, band_keys(values))
    if not met:
        return []
    signatures = session.execute(
        select(SignatureRow.document_id, SignatureRow.version, SignatureRow.values).where(
            tuple_(SignatureRow.document_id, SignatureRow.version).in_(met)
        )
    ).all()
    rated = sorted(
        ((estimate(values, np.frombuffer(other, dtype="<u4")), (d, v)) for d, v, other in signatures),
        reverse=True,
    )
    likely = [key for share, key in rated[:_COMPARED] if share >= _ESTIMATED_FROM]
    if not likely:
        return []
    mine = shingles(_text(session, (document_id, version)))
    exact = [(key, jaccard(mine, shingles(_text(session, key)))) for key in likely]
    return sorted(((k, s) for k, s in exact if s >= REPORTED_FROM), key=lambda pair: (-pair[1], pair[0]))


def write_pairs(session: Session, document_id: str, version: int, pairs: Sequence[tuple[Key, float]]) -> None:
    """Replace the pairs of a version; one whose other side was deleted meanwhile is left out."""
    near = NearDuplicateRow
    session.execute(
        delete(near).where(
            or_(
                and_(near.document_id == document_id, near.version == version),
                and_(near.other_id == document_id, near.other_version == version),
            )
        )
    )
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    for other, similarity in sorted(pairs):
        (first, first_version), (second, second_version) = sorted(((document_id, version), other))
        row = insert(near).values(
            document_id=first,
            version=first_version,
            other_id=second,
            other_version=second_version,
            similarity=similarity,
        )
        try:
            with session.begin_nested():
                session.execute(row.on_conflict_do_nothing())
        except IntegrityError:  # its row is gone
            continue


def near_duplicates_of(session: Session, ids: Sequence[str]) -> dict[str, tuple[NearDuplicate, ...]]:
    """Per document: those whose served version is nearly its own served version, most alike first."""
    near, one, two = NearDuplicateRow, aliased(DocumentRow), aliased(DocumentRow)
    found: dict[str, list[NearDuplicate]] = {}
    for side in (near.document_id, near.other_id):
        rows = session.execute(
            select(near.document_id, near.other_id, near.similarity, one.name, two.name)
            .join(one, and_(one.id == near.document_id, one.live_version == near.version))
            .join(two, and_(two.id == near.other_id, two.live_version == near.other_version))
            .where(side.in_(ids))
        )
        for first, second, similarity, first_name, second_name in rows:
            mine, other, name = (
                (first, second, second_name) if side is near.document_id else (second, first, first_name)
            )
            found.setdefault(mine, []).append(NearDuplicate(other, name, round(similarity, 4)))
    return {
        document_id: tuple(sorted(pairs, key=lambda p: (-p.similarity, p.document_id))[:_COMPARED])
        for document_id, pairs in found.items()
    }


def ids_with_near_duplicates() -> CompoundSelect[str]:
    """Ids of the documents that `near_duplicates_of` has something to say of."""
    near, one, two = NearDuplicateRow, aliased(DocumentRow), aliased(DocumentRow)
    both = (
        select(near.document_id, near.other_id)
        .join(one, and_(one.id == near.document_id, one.live_version == near.version))
        .join(two, and_(two.id == near.other_id, two.live_version == near.other_version))
        .subquery()
    )
    return union(select(both.c.document_id), select(both.c.other_id))


def _met(session: Session, row: DocumentRow, keys: Sequence[int]) -> list[Key]:
    """The versions that share most bands, those that are or will be served."""
    given = {f"k{n}": key for n, key in enumerate(keys)}
    rows = session.execute(_lookup(len(keys)), {**given, "collection": row.collection_id, "document": row.id})
    shared = Counter((document_id, version) for document_id, version in rows)
    if not shared:
        return []
    served = {
        (document_id, version)
        for document_id, live, latest in session.execute(
            select(DocumentRow.id, DocumentRow.live_version, DocumentRow.latest_version).where(
                DocumentRow.id.in_({document_id for document_id, _ in shared}),
                DocumentRow.status != DocumentStatus.DELETING.value,
            )
        )
        for version in (live, latest)
        if version is not None
    }
    return [key for key, _ in shared.most_common(5 * _COMPARED) if key in served]


@lru_cache(maxsize=4)
def _lookup(bands: int) -> TextClause:
    """One bounded look per band."""
    one = (
        "SELECT * FROM (SELECT document_id, version FROM signature_bands WHERE collection_id = :collection"
        " AND key = :k{n} AND document_id <> :document LIMIT {limit}) AS b{n}"
    )
    return text(" UNION ALL ".join(one.format(n=n, limit=_PER_BAND) for n in range(bands)))


def _text(session: Session, key: Key) -> str:
    v = DocumentVersionRow
    return session.scalar(select(v.text).where(v.document_id == key[0], v.version == key[1])) or ""
