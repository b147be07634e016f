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
from retrieval.tier_repository import set_ram_bytes
from retrieval.tiers import IndexReader, IndexSnapshot

log = logging.getLogger(__name__)

_ENOUGH = 10
_PATIENCE = timedelta(minutes=5)


def recall_round(db: Database) -> int:
    """Measure the questions that wait, and act on tiers that fell below the floor.

    The index is opened for the round and let go after it, so that the worker holds none of it in between;
    few questions wait for more of them, because opening costs the same for one as for many.

    Returns:
        How many questions were run again.
    """
    with db.read() as session:
        count, since = waiting_since(session)
    if since is None or (count < _ENOUGH and utcnow() - since < _PATIENCE):
        return 0
    folder = IndexFolder(get_settings().index_dir)
    snapshot = IndexReader(folder).snapshot()
    if not snapshot.generation:
        return 0
    manifest = folder.read_manifest(snapshot.generation)
    tiers = served_tiers(snapshot, manifest)
    measured = monitor.measure(db, tiers, snapshot.generation, manifest.model)
    with db.write() as session:
        found = monitor.verdicts(session, tiers)
        for tier in tiers:
            set_ram_bytes(session, tier.name, tier.snapshot.stats().ram_bytes)
    for tier, (seen, judgement) in found.items():
        if judgement.action is Action.RAISE:
            raise_effort(db, manifest, tier, judgement.effort, seen)
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


def raise_effort(db: Database, manifest: Manifest, tier: str, effort: float, seen: Window) -> bool:
    """Publish a generation that differs in a tier's search effort alone; readers follow within a second."""
    from retrieval.writer import VectorSpace, index_writer

    try:
        with index_writer(db, VectorSpace(manifest.model, manifest.dimension)) as writer:
            current = writer.catch_up()
            ref = current.tier(tier)
            if ref.effort >= effort:
                return False
            served = writer.publish(current.with_tier(tier, replace(ref, effort=effort)))
    except GeoError as error:  # damaged files or a busy writer: the next round tries again
        log.warning("effort_not_raised", extra={"tier": tier, "detail": error.detail})
        return False
    with db.write() as session:
        details = {"from": ref.effort, "to": effort, "generation": served.generation, **monitor.told(seen)}
        monitor.note(session, "tier.effort", tier, details)
    log.info("effort_raised", extra={"tier": tier, "effort": effort, "generation": served.generation})
    return True
