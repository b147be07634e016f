"""One round of the recall monitor on the served index: measure, judge, act. Opens index files."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

from core.db import Database, utcnow
from core.errors import GeoError
from core.settings import get_settings
from retrieval import recall_monitor as monitor
from retrieval.manifest import IndexFolder, Manifest
from retrieval.recall_monitor import Action, ServedTier
from retrieval.recall_store import Window, waiting_since
from retrieval.tier_repository import ram_untold, set_ram_bytes
from retrieval.tiers import IndexReader, IndexSnapshot

log = logging.getLogger(__name__)

_ENOUGH = 10
_PATIENCE = timedelta(minutes=5)


def recall_round(db: Database) -> int:
    """Measure the questions that wait, and act on tiers that fell below the floor.

    The index is opened for the round and let go after it, so that the worker holds none of it in between;
    few questions wait for more of them, because opening costs the same for one as for many. A first round
    without questions notes what the tiers take in memory, which placement and operators want to know.

    Returns:
        How many questions were run again.
    """
    with db.read() as session:
        count, since = waiting_since(session)
        untold = ram_untold(session)
    asked = since is not None and (count >= _ENOUGH or utcnow() - since >= _PATIENCE)
    if not asked and not untold:
        return 0
    folder = IndexFolder(get_settings().index_dir)
    snapshot = IndexReader(folder).snapshot()
    if not snapshot.generation:
        return 0
    manifest = folder.read_manifest(snapshot.generation)
    tiers = served_tiers(snapshot, manifest)
    measured = monitor.measure(db, tiers, snapshot.generation, manifest.model) if asked else 0
    with db.write() as session:
        found = monitor.verdicts(session, tiers)
        for tier, one in snapshot.tiers.items():
            set_ram_bytes(session, tier.value, one.stats().ram_bytes)
    for tier, (seen, judgement) in found.items():
        if judgement.action in (Action.RAISE, Action.LOWER):
            set_effort(db, manifest, tier, judgement.effort, seen)
        elif judgement.action is Action.REBUILD:
            monitor.ask_for_rebuild(db, tier, seen)
    return measured


def served_tiers(snapshot: IndexSnapshot, manifest: Manifest) -> list[ServedTier]:
    """The tiers of a generation, each with the effort that it is searched with."""
    return [
        ServedTier(tier.value, manifest.tier(tier.value).effort, one)
        for tier, one in snapshot.tiers.items()
        if one.live_count and not one.refused
    ]


def set_effort(db: Database, manifest: Manifest, tier: str, effort: float, seen: Window) -> bool:
    """Publish a generation that differs in a tier's search effort alone; readers follow within a second.

    Args:
        db: where the writer's lease stands.
        manifest: of the generation that was measured.
        tier: its name.
        effort: the new one.
        seen: what was measured, for the audit entry.

    Returns:
        False when nothing was done: the writer was busy, or the tier was changed or rebuilt meanwhile.
    """
    from retrieval.writer import VectorSpace, index_writer

    try:
        with index_writer(db, VectorSpace(manifest.model, manifest.dimension)) as writer:
            current = writer.catch_up()
            ref, measured = current.tier(tier), manifest.tier(tier)
            if ref.effort != measured.effort or set(measured.segments).isdisjoint(ref.segments):
                return False
            served = writer.publish(current.with_tier(tier, replace(ref, effort=effort)))
    except GeoError as error:  # damaged files or a busy writer: the next round tries again
        log.warning("effort_not_set", extra={"tier": tier, "detail": error.detail})
        return False
    with db.write() as session:
        details = {"from": ref.effort, "to": effort, "generation": served.generation, **monitor.told(seen)}
        monitor.note(session, "tier.effort", tier, details)
    log.info("effort_set", extra={"tier": tier, "effort": effort, "generation": served.generation})
    return True
