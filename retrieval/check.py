"""Compare the served index with the database, for `geo doctor`. Reads only; `remove_strays` alone removes.

Every file of the served generation is read against its checksum, and every id against the rows: each live
passage with a vector is in exactly one tier, the one that its document is in, under its own tenant and
collection; the lexical index holds the live passages and nothing else. The files of the generations that
are kept for a rollback are read too, those that the served one shares once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from core.db import Database
from core.models import DocumentRow, PassageRow, PassageVectorRow
from core.types import DocumentStatus, Tier
from retrieval import index_repository as repository
from retrieval.check_files import PartFiles, differing_vectors, stray_files, wrong_width
from retrieval.check_kept import kept_faults
from retrieval.check_rows import row_faults
from retrieval.fault import Fault, some
from retrieval.files import DamagedIndex
from retrieval.lexical_store import open_lexical
from retrieval.manifest import LEXICAL, IndexFolder, Manifest
from retrieval.segments import Segment, open_segment
from retrieval.tier_repository import tier_state
from retrieval.tier_writer import dead_masks

Ids = npt.NDArray[np.int64]
_REBUILD = "geo tiers rebuild {}"
_FOLLOWS = "geo up (the index worker brings the files up to the log)"


@dataclass(frozen=True, slots=True)
class IndexCheck:
    """What was found; whole when it equals `IndexCheck()`.

    Attributes:
        faults: what is wrong, each with the command that mends it.
        pending: log entries that no file holds yet; while there are any, ids are not compared.
    """

    faults: tuple[Fault, ...] = ()
    pending: int = 0


@dataclass(frozen=True, slots=True)
class _Live:
    """Live passages, ascending by id: owner, tier, and whether a vector of the served encoder is stored."""

    ids: Ids
    owners: npt.NDArray[np.str_]
    tiers: npt.NDArray[np.str_]
    with_vector: npt.NDArray[np.bool_]


def check_index(db: Database, folder: IndexFolder) -> IndexCheck:
    """Read what is served and kept; minutes for millions of vectors; queries and uploads may go on."""
    with db.read() as session:
        state = tier_state(session, Tier.HOT.value)
        pending = max(repository.last_seq(session) - state.applied_seq, 0)
        live = _live(session, state.model)
        faults = row_faults(session, state.model, state.dimension)
        strays = stray_files(session, folder)
    if strays:
        names = some([str(path.relative_to(folder.root)) for path in strays])
        told = f"files of the index folder that no generation and no open build names: {names}"
        faults.append(Fault("index_strays", len(strays), told, "geo doctor --fix"))
    if state.generation == 0:
        return IndexCheck(tuple(faults), pending)
    files = PartFiles(folder)
    try:
        manifest = folder.read_manifest(folder.current_generation() or 0)
    except (DamagedIndex, OSError) as error:
        told = f"what is served cannot be read: {error}"
        unreadable = Fault("index_damaged", 1, told, _REBUILD.format("all"))
        return IndexCheck((unreadable, *faults, *kept_faults(db, files)))
    if (manifest.model, manifest.dimension) != (state.model, state.dimension):
        told = f"files hold {manifest.dimension}-wide vectors of {manifest.model}, the row says {state.model}"
        faults.append(Fault("index_encoder", 1, told, _REBUILD.format("all")))
    damaged = {part: why for part in (*manifest.tiers, LEXICAL) if (why := files.damage(manifest, part))}
    for part, why in damaged.items():
        told = f"files of {_called(part)} cannot be trusted: {why}"
        faults.append(Fault("index_damaged", 1, told, _REBUILD.format(part)))
    faults += kept_faults(db, files)
    if pending or manifest.generation != state.generation:
        return IndexCheck(tuple(faults), max(pending, 1))
    faults += _vectors(db, folder, manifest, live, damaged)
    if LEXICAL not in damaged:
        faults += _words(folder, manifest, live)
    return IndexCheck(tuple(faults), 0)


def _called(part: str) -> str:
    return "the lexical index" if part == LEXICAL else f"the {part} tier"


def _live(session: Session, model: str) -> _Live:
    has_vector = and_(PassageVectorRow.passage_id == PassageRow.id, PassageVectorRow.model == model)
    rows = session.execute(
        select(
            PassageRow.id, PassageRow.tenant_id, PassageRow.collection_id, DocumentRow.tier,
            PassageVectorRow.passage_id,
        )
        .join(
            DocumentRow,
            and_(DocumentRow.id == PassageRow.document_id, DocumentRow.live_version == PassageRow.version),
        )
        .outerjoin(PassageVectorRow, has_vector)
        .where(DocumentRow.status != DocumentStatus.DELETING.value)
        .order_by(PassageRow.id)
    ).all()  # fmt: skip
    found = cast(
        "list[tuple[int, str, str, str, int | None]]", rows
    )  # an outer join may leave the last empty
    return _Live(
        np.asarray([row[0] for row in found], np.int64),
        np.asarray([f"{row[1]}/{row[2]}" for row in found], np.str_),
        np.asarray([row[3] for row in found], np.str_),
        np.asarray([row[4] is not None for row in found], np.bool_),
    )


# -- vectors -----------------------------------------------------------------------------------


def _vectors(
    db: Database, folder: IndexFolder, manifest: Manifest, live: _Live, damaged: dict[str, str]
) -> list[Fault]:
    """Ids of every tier against the rows; a damaged one is left out, and what belongs in it is not missed."""
    faults: list[Fault] = []
    seen: list[Ids] = []
    for name, ref in manifest.tiers.items():
        if name in damaged or name in manifest.refused:
            continue
        segments = [open_segment(folder.tier(name).segments, one) for one in ref.segments]
        dead = dead_masks(folder.tier(name).dead, ref.dead, segments)
        held = [_held(segment, dead.get(segment.ref.name)) for segment in segments]
        ids = np.concatenate([np.empty(0, np.int64), *(i for i, _ in held)])
        owners = np.concatenate([np.empty(0, np.str_), *(o for _, o in held)])
        seen.append(ids)
        faults += _tier_faults(name, ids, owners, live)
        faults += wrong_width(name, segments, manifest.dimension)
        faults += differing_vectors(db, name, segments, dead, manifest.model)
    everywhere = np.concatenate([np.empty(0, np.int64), *seen])
    unique, times = np.unique(everywhere, return_counts=True)
    faults += _told(
        "vectors_twice", unique[times > 1], "passages that are in the index more than once", "all"
    )
    served = live.with_vector & ~np.isin(live.tiers, [*damaged, *manifest.refused])
    for name in np.unique(live.tiers[served]).tolist():
        missing = np.setdiff1d(live.ids[served & (live.tiers == name)], unique)
        faults += _told(
            "vectors_not_indexed", missing, "live passages that the dense route cannot return", name
        )
    return faults


def _held(segment: Segment, dead: npt.NDArray[np.bool_] | None) -> tuple[Ids, npt.NDArray[np.str_]]:
    """Ids that a search of the segment could return, and whom it takes them to belong to."""
    owners = np.repeat(
        np.asarray([f"{s.tenant_id}/{s.collection_id}" for s in segment.spans], np.str_),
        [s.end - s.start for s in segment.spans],
    )
    ids = segment.ids.all()
    return (ids, owners) if dead is None else (ids[~dead], owners[~dead])


def _tier_faults(name: str, ids: Ids, owners: npt.NDArray[np.str_], live: _Live) -> list[Fault]:
    at = np.searchsorted(live.ids, ids)
    at[at == len(live.ids)] = 0
    known = live.ids[at] == ids if len(live.ids) else np.zeros(len(ids), np.bool_)
    faults = _told("vectors_left_over", ids[~known], f"ids in the {name} tier without a live passage", name)
    ids, owners, at = ids[known], owners[known], at[known]
    foreign = ids[live.owners[at] != owners]
    faults += _told(
        "vectors_of_others", foreign, f"passages that the {name} tier gives to another owner", name
    )
    elsewhere = ids[live.tiers[at] != name]
    return faults + _told(
        "vectors_misplaced", elsewhere, f"passages in the {name} tier whose document is in another", "all"
    )


# -- words -------------------------------------------------------------------------------------


def _words(folder: IndexFolder, manifest: Manifest, live: _Live) -> list[Fault]:
    try:
        reader = open_lexical(folder.lexical, manifest.lexical)
        words = np.asarray(sorted(reader.ids()), np.int64)
    except (DamagedIndex, OSError, ValueError) as error:
        told = f"files of {_called(LEXICAL)} cannot be trusted: {error}"
        return [Fault("index_damaged", 1, told, _REBUILD.format(LEXICAL))]
    return [
        *_told(
            "words_not_indexed", np.setdiff1d(live.ids, words),
            "live passages that the lexical route cannot return", LEXICAL,
        ),
        *_told(
            "words_left_over", np.setdiff1d(words, live.ids),
            "ids in the lexical index without a live passage", LEXICAL,
        ),
    ]  # fmt: skip


def _told(check: str, ids: Ids, meaning: str, part: str) -> list[Fault]:
    if not len(ids):
        return []
    return [Fault(check, len(ids), f"{meaning}: {some(ids[:6].tolist(), len(ids))}", _REBUILD.format(part))]
