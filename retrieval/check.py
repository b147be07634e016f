"""Compare the served index with the database, for `geo doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from core.db import Database
from core.models import DocumentRow, PassageRow, PassageVectorRow
from core.types import DocumentStatus, Tier
from retrieval import index_repository as repository
from retrieval.files import DamagedIndex
from retrieval.lexical_store import open_lexical
from retrieval.manifest import IndexFolder, Manifest
from retrieval.tier_repository import tier_state
from retrieval.tier_writer import open_tier
from retrieval.writer import verify_segments


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """What was found.

    Attributes:
        damage: why files cannot be trusted, or None.
        unlisted: live passages with a vector that the vector index does not return.
        leftover: ids that the vector index returns and no live passage has.
        lexical_unlisted, lexical_leftover: the same of the lexical index.
        pending: log entries that no file holds yet; while there are any, the four above are not looked at.
    """

    damage: str | None = None
    unlisted: tuple[int, ...] = ()
    leftover: tuple[int, ...] = ()
    lexical_unlisted: tuple[int, ...] = ()
    lexical_leftover: tuple[int, ...] = ()
    pending: int = 0


def check_index(db: Database, folder: IndexFolder) -> IndexCheck:
    """Read every file of the served generation against its checksum, and every id against the rows."""
    with db.read() as session:
        state = tier_state(session, Tier.HOT.value)
        pending = repository.last_seq(session) - state.applied_seq
        live, with_vector = _live(session, state.model)
    if state.generation == 0:
        return IndexCheck(pending=max(pending, 0))
    try:
        manifest = folder.read_manifest(folder.current_generation() or 0)
        verify_segments(folder, manifest)
        if pending > 0 or manifest.generation != state.generation:
            return IndexCheck(pending=max(pending, 1))
        listed = _listed(folder, manifest)
        words = open_lexical(folder.lexical, manifest.lexical, thorough=True).ids()
    except (DamagedIndex, OSError, ValueError) as error:
        return IndexCheck(damage=str(error))
    return IndexCheck(
        None,
        tuple(sorted(with_vector - listed)),
        tuple(sorted(listed - live)),
        tuple(sorted(live - words)),
        tuple(sorted(words - live)),
    )


def _live(session: Session, model: str) -> tuple[set[int], set[int]]:
    """Ids of live passages, and of those that have a vector of this encoder."""
    has_vector = and_(PassageVectorRow.passage_id == PassageRow.id, PassageVectorRow.model == model)
    rows = session.execute(
        select(PassageRow.id, PassageVectorRow.passage_id)
        .join(
            DocumentRow,
            and_(DocumentRow.id == PassageRow.document_id, DocumentRow.live_version == PassageRow.version),
        )
        .outerjoin(PassageVectorRow, has_vector)
        .where(DocumentRow.status != DocumentStatus.DELETING.value)
    ).all()
    found = cast("list[tuple[int, int | None]]", rows)  # an outer join leaves the second empty
    return {passage for passage, _ in found}, {passage for passage, vector in found if vector is not None}


def _listed(folder: IndexFolder, manifest: Manifest) -> set[int]:
    listed: set[int] = set()
    for name, ref in manifest.tiers.items():
        tier = open_tier(folder.tier(name), Tier(name), ref, dimension=manifest.dimension)
        listed.update(tier.live_ids().tolist())
    return listed
