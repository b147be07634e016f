"""How a build begins, and how it goes on where an earlier attempt of it stopped."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from core.db import Database
from core.types import Tier
from retrieval import build_control, tier_repository
from retrieval import index_repository as repository
from retrieval.build_files import BuildFolder, BuildState, remove_abandoned
from retrieval.build_gate import BuildRejected
from retrieval.builds import COMPACT, ROLLBACK
from retrieval.files import DamagedIndex
from retrieval.lease import writer_lease
from retrieval.lexical_store import is_of_before, verify_lexical
from retrieval.manifest import LEXICAL, IndexFolder
from retrieval.served import VectorSpace
from retrieval.tier_writer import verify_tier

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """What is to be built.

    Attributes:
        build_id: names the folder under `building/`.
        parts: tiers and `lexical`, in the order of `PARTS`.
        mode: `full`, `compact` or `rollback`.
        space: the encoder whose vectors are served afterwards.
        generation: where a rollback goes.
        accept_moved: publish although answers move.
    """

    build_id: str
    parts: tuple[str, ...]
    mode: str
    space: VectorSpace
    generation: int = 0
    accept_moved: bool = False

    @property
    def tiers(self) -> list[str]:
        """The parts that hold vectors."""
        return [part for part in self.parts if part != LEXICAL]


def resumed(files: BuildFolder, plan: BuildPlan) -> BuildState | None:
    """What an earlier attempt left, if it is whole."""
    state = files.load()
    if state is None or VectorSpace(state.model, state.dimension) != plan.space:
        return None
    try:
        for part, ref in state.tiers.items():
            verify_tier(files.index.tier(part), ref)
        if state.lexical:
            verify_lexical(files.index.lexical, state.lexical, thorough=True)
            if is_of_before(files.index.lexical, state.lexical):
                log.info("build_begun_anew", extra={"build_id": plan.build_id, "detail": "tokens of before"})
                return None
    except DamagedIndex as error:
        log.warning("build_begun_anew", extra={"build_id": plan.build_id, "detail": error.detail})
        return None
    return state


def begin(db: Database, served: IndexFolder, files: BuildFolder, plan: BuildPlan) -> BuildState:
    """An empty build folder, and the number of the log from which on the build will replay.

    Raises:
        BuildRejected: files that a compaction or a rollback needs are missing.
    """
    with writer_lease(db):
        # Under the lease no version is between its log entry and its going live: an index task holds it
        # from the one to the other, and one that was killed between them appends again. What the scan
        # misses is therefore in the log above this number.
        with db.read() as session:
            remove_abandoned(served, {*build_control.open_builds(session), plan.build_id})
            newest = repository.last_seq(session)
            present = tier_repository.tier_state(session, Tier.HOT.value)
        files.start()
        state = BuildState(newest, plan.space.model, plan.space.dimension, newest)
        if plan.mode in (COMPACT, ROLLBACK):
            _borrow(
                served, files, plan, state, present.generation if plan.mode == COMPACT else plan.generation
            )
    files.save(state)
    return state


def _borrow(
    served: IndexFolder, files: BuildFolder, plan: BuildPlan, state: BuildState, generation: int
) -> None:
    """Link what a compaction reads, or all that a rollback serves; the writer stands still meanwhile."""
    compact = plan.mode == COMPACT
    try:
        manifest = served.read_manifest(generation)
        for part in plan.tiers:
            files.borrow_tier(part, manifest.tier(part), into=files.source if compact else files.index)
            (state.sources if compact else state.tiers)[part] = manifest.tier(part)
        if LEXICAL in plan.parts and not compact:
            state.lexical = manifest.lexical
            files.borrow_lexical(manifest.lexical)
    except DamagedIndex as error:
        raise unreadable(plan, error) from error
    state.seq = state.applied_seq = manifest.applied_seq
    state.stats["source"] = generation


def unreadable(plan: BuildPlan, error: DamagedIndex) -> BuildRejected:
    """Files that a compaction or a rollback reads are damaged."""
    return BuildRejected(f"{error.detail} Rebuild in full, from the database.", build_id=plan.build_id)
