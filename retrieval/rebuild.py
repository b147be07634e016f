"""A build: generation N+1 is made beside N, verified, brought up to date and swapped in.

| step | lease | what readers see |
|---|---|---|
| note S, the newest log entry | held for a moment | N |
| fill the parts under `building/`: from the database, from pages, or from generation M | no | N |
| verify files, recall and saved answers | no | N |
| replay the log after S until little is left | no | N |
| replay the rest, link the files, publish | held | N, then N+1 |

Nothing of N is touched, so a build that fails, is paused or is cancelled changes nothing, and N is kept for
rollback. A rollback is a build too: its files are there already, only the log since then is missing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.orm import Session

from core.db import Database
from core.memory import return_freed_memory
from core.types import Route, Tier
from retrieval import build_control, build_repository, tier_repository
from retrieval import index_repository as repository
from retrieval.build_files import BuildFolder, BuildState
from retrieval.build_gate import Answers, BuildRejected, Gate
from retrieval.build_gate import Encode as EncodeQuestions
from retrieval.build_parts import PartBuilder, layout
from retrieval.build_start import BuildPlan as BuildPlan
from retrieval.build_start import begin, resumed, unreadable
from retrieval.builds import COMPACT, ROLLBACK
from retrieval.embed import Encode, embed_missing
from retrieval.files import DamagedIndex
from retrieval.index_files import apply_entries
from retrieval.index_repository import LogEntry
from retrieval.lexical_store import verify_lexical
from retrieval.manifest import LEXICAL, PARTS, IndexFolder, Manifest
from retrieval.tier_writer import verify_tier
from retrieval.vector_tier import Found
from retrieval.writer import IndexWriter, index_writer

log = logging.getLogger(__name__)

_SHORT_TAIL = 64  # passages of the log left for the step under the lease: 2 s if all are encoded
_ROUNDS = 50  # replays before the swap is made whatever is left: the log grows faster than it is replayed


@dataclass(slots=True)
class Builder:
    """One build. `build` makes the files, `swap` puts them in service.

    Args:
        db: the truth.
        folder: the served index.
        plan: what is to be built.
        encode: for passages that have no vector of the encoder.
        encode_questions: gives the question encoder of a model, or None when loading it is not worth it.
        step: called as `step(state, done, total)` between batches; raises when the build is to stop.
    """

    db: Database
    folder: IndexFolder
    plan: BuildPlan
    encode: Encode
    encode_questions: Callable[[str], EncodeQuestions | None] = lambda _model: None
    step: Callable[[BuildState, int, int], None] = lambda _state, _done, _total: None
    stats: dict[str, Any] = field(default_factory=dict[str, Any])
    _done: int = 0
    _total: int = 0

    @property
    def files(self) -> BuildFolder:
        """Where the build is made."""
        return BuildFolder(self.folder, self.plan.build_id)

    def build(self) -> BuildState:
        """Make, verify and bring up to date; goes on where an earlier attempt stopped.

        Raises:
            BuildRejected: the files are not what they should be, or answers worse.
            DamagedIndex: what a compaction or a rollback reads is damaged.
        """
        begun = time.perf_counter()
        state = resumed(self.files, self.plan) or begin(self.db, self.folder, self.files, self.plan)
        self.stats = state.stats
        self._fill(state)
        if not state.stats.get("verified"):
            state.take(self._verified(state))
            state.stats.pop("step", None)
            state.stats["verified"] = True
            self.files.save(state)
        self._replay(state, down_to=_SHORT_TAIL)
        self._add_seconds("build_s", begun)
        return state

    def swap(self, writer: IndexWriter, state: BuildState) -> Manifest:
        """Under the lease: replay the rest, hand the files over, publish, keep the replaced generation.

        Raises:
            BuildRejected: live passages are missing from the new files.
        """
        begun = time.perf_counter()
        parts = self.plan.parts
        served = Manifest() if parts == PARTS else writer.catch_up()
        self._replay(state, down_to=0)
        built = state.manifest()
        self._check_counts(built)
        self.files.hand_over(built, parts)
        manifest = replace(
            served,
            applied_seq=built.applied_seq,
            model=built.model,
            dimension=built.dimension,
            tiers={**served.tiers, **{part: built.tier(part) for part in parts if part != LEXICAL}},
            lexical=built.lexical if LEXICAL in parts else served.lexical,
            refused={part: why for part, why in served.refused.items() if part not in parts},
        )
        with self.db.read() as session:
            state_before = tier_repository.tier_state(session, Tier.HOT.value)
        kept = tuple(g for g in state_before.previous if g != self.plan.generation)
        kept = _restorable(self.folder, (state_before.generation, *kept))
        published = writer.publish(manifest, previous=kept, mended=parts)
        self._add_seconds("swap_s", begun)
        return published

    # -- fill --------------------------------------------------------------------------------------

    def _fill(self, state: BuildState) -> None:
        with self.db.read() as session:
            self._total = sum(
                build_repository.count_live(session, None if part == LEXICAL else part)
                for part in self.plan.parts
            )
        self._done = sum(state.stats.get(name, 0) for name in ("passages", "texts"))
        self.step(state, self._done, self._total)
        maker = PartBuilder(
            self.db, self.files, state, self.encode, lambda count: self._stepped(state, count)
        )
        for part in self.plan.parts if self.plan.mode != ROLLBACK else ():
            if part == LEXICAL:
                maker.scan_lexical()
            elif self.plan.mode == COMPACT:
                try:
                    maker.compact_tier(part, state.sources[part])
                except DamagedIndex as error:
                    raise unreadable(self.plan, error) from error
            else:
                maker.scan_tier(part)
            return_freed_memory()  # else what one part needed at its height stays beside the next

    def _stepped(self, state: BuildState, count: int) -> None:
        self._done += count
        self.step(state, self._done, max(self._total, self._done))

    # -- verify ------------------------------------------------------------------------------------

    def _checking(self, state: BuildState) -> None:
        """Between checks, which take minutes where many questions are encoded anew: tell, and let it stop."""
        state.stats["step"] = "verify"
        self.step(state, self._done, max(self._total, self._done))

    def _verified(self, state: BuildState) -> Manifest:
        built = state.manifest()
        try:
            rows = sum(verify_tier(self.files.index.tier(p), built.tier(p)) for p in self.plan.tiers)
            if built.lexical:
                verify_lexical(self.files.index.lexical, built.lexical, thorough=True)
        except DamagedIndex as error:
            raise BuildRejected(error.detail, build_id=self.plan.build_id) from error
        written = state.stats.get("vectors", rows)
        if rows != written:
            raise BuildRejected(f"{written} vectors were written, {rows} are there.")
        gate = Gate(self.db, self.plan.parts, self.plan.accept_moved, state.stats)
        self._checking(state)
        before = self._answers_before(gate)
        self._checking(state)
        questions = gate.questions(built.model, self.encode_questions(built.model))
        self._checking(state)
        built = gate.recall(self.files.index, built, questions)
        self._checking(state)
        if self.plan.mode != ROLLBACK:  # an operator goes back because answers are to move
            after = {route: gate.answers(route, self.files.index, built, questions) for route in before}
            gate.compare(questions, before, after)
        return built

    def _answers_before(self, gate: Gate) -> Answers:
        """What is served answers; a route with a damaged part answers nothing and is not compared."""
        before: dict[Route, dict[str, Found]] = {}
        try:
            with self.db.read() as session:
                generation = tier_repository.tier_state(session, Tier.HOT.value).generation
            served = self.folder.read_manifest(generation) if generation else Manifest()
            questions = gate.questions(served.model, self.encode_questions(served.model))
        except (DamagedIndex, ValueError, OSError) as error:
            log.info("nothing_to_compare", extra={"build_id": self.plan.build_id, "reason": str(error)})
            return before
        for route, parts in gate.routes().items():
            if any(part in served.refused for part in parts):
                continue
            try:
                before[route] = gate.answers(route, self.folder, served, questions)
            except (DamagedIndex, ValueError, OSError) as error:
                said = {"build_id": self.plan.build_id, "route": route.value, "reason": str(error)}
                log.info("nothing_to_compare", extra=said)
        return before

    def _check_counts(self, built: Manifest) -> None:
        with self.db.read() as session:
            for part in self.plan.tiers:
                live = build_repository.count_live_vectors(session, built.model, part)
                if built.tier(part).live_count < live:
                    raise BuildRejected(
                        f"The build holds {built.tier(part).live_count} vectors of the {part} tier, "
                        f"the database {live}; nothing was changed.",
                        build_id=self.plan.build_id,
                    )

    # -- replay ------------------------------------------------------------------------------------

    def _replay(self, state: BuildState, *, down_to: int) -> None:
        """Apply the log to the new files until at most `down_to` passages are left."""
        for round_ in range(_ROUNDS if down_to else 1_000_000):
            with self.db.read() as session:
                entries = repository.log_after(session, state.applied_seq)
            if not entries or (down_to and round_ and _passages(entries) <= down_to):
                return
            self._embed(entries, state)
            try:
                changed = apply_entries(
                    self.db, self.files.index, state.manifest(), entries, layout(),
                    model=state.model, dimension=state.dimension, parts=self.plan.parts, strict=True,
                )  # fmt: skip
            except DamagedIndex as error:
                raise BuildRejected(error.detail, build_id=self.plan.build_id) from error
            state.take(changed)
            state.stats["tail_entries"] = state.stats.get("tail_entries", 0) + len(entries)
            self.files.save(state)
            if down_to:
                self.step(state, self._done, max(self._total, self._done))

    def _embed(self, entries: Sequence[LogEntry], state: BuildState) -> None:
        """What arrived during a change of the encoder has vectors of the old one only."""
        ids = sorted({i for entry in entries if entry.op != "delete" for i in entry.passage_ids})
        embed_missing(self.db, ids, state.model, self.encode)

    def _add_seconds(self, name: str, begun: float) -> None:
        self.stats[name] = round(self.stats.get(name, 0.0) + time.perf_counter() - begun, 3)


def run(builder: Builder) -> Manifest:
    """Build beside, then swap under the lease; the build's folder goes with the success."""
    state = builder.build()
    with index_writer(builder.db, builder.plan.space, folder=builder.folder) as writer:
        published = builder.swap(writer, state)
    builder.files.discard()
    return published


def forget_old_vectors(db: Database, folder: IndexFolder) -> int:
    """Delete vectors of encoders that neither a kept generation nor an open build needs; says how many.

    What is needed is read anew with each batch: a change to another encoder may begin between two.
    """
    gone = 0
    while True:
        with db.write() as session:
            found = build_repository.forget_vectors(session, _needed_models(session, folder))
        gone += found
        if not found:
            return gone


def _needed_models(session: Session, folder: IndexFolder) -> set[str]:
    state = tier_repository.tier_state(session, Tier.HOT.value)
    needed = {state.model, *build_control.open_models(session)}
    for generation in state.previous:
        try:
            needed.add(folder.read_manifest(generation).model)
        except DamagedIndex:
            continue
    return needed


def _passages(entries: Sequence[LogEntry]) -> int:
    return sum(len(entry.passage_ids) for entry in entries)


def _restorable(folder: IndexFolder, generations: Sequence[int]) -> tuple[int, ...]:
    """Those generations whose manifest is still there."""
    return tuple(g for g in generations if g and folder.manifest_path(g).is_file())
