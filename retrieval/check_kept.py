"""Whether a rollback would find its files: the generations that are kept for one, for `geo doctor`."""

from __future__ import annotations

from core.db import Database
from core.settings import get_settings
from core.types import Tier
from retrieval.check_files import PartFiles
from retrieval.fault import Fault, some
from retrieval.files import DamagedIndex
from retrieval.manifest import PARTS
from retrieval.tier_repository import tier_state


def kept_faults(db: Database, files: PartFiles) -> list[Fault]:
    """One fault per kept generation that cannot be restored; what `files` has read is not read again.

    A generation that a publish lets go meanwhile is passed over: its files go with it.
    """
    found = {generation: damage for generation in _kept(db) if (damage := _damage(files, generation))}
    if not found:
        return []
    kept, most = _kept(db), get_settings().retrieval.keep_generations
    return [
        _told(generation, found[generation], rebuilds=max(1, most - 1 - place))
        for place, generation in enumerate(kept)
        if generation in found
    ]


def _kept(db: Database) -> tuple[int, ...]:
    """What a rollback may name, newest first."""
    with db.read() as session:
        return tier_state(session, Tier.HOT.value).previous


def _damage(files: PartFiles, generation: int) -> dict[str, str]:
    """Why parts of it cannot be trusted; the empty name stands for all of them."""
    try:
        manifest = files.folder.read_manifest(generation)
    except (DamagedIndex, OSError) as error:
        return {"": str(error)}
    return {part: why for part in PARTS if (why := files.damage(manifest, part))}


def _told(generation: int, damage: dict[str, str], *, rebuilds: int) -> Fault:
    whys = some([f"{part}: {why}" if part else why for part, why in damage.items()])
    parts = [part for part in damage if part]
    what = f"geo tiers rebuild {parts[0] if len(parts) == 1 else 'all'}"
    times = "" if rebuilds == 1 else f" ({rebuilds} times, as so many newer ones are kept before it goes)"
    told = (
        f"generation {generation}, which is kept for a rollback, cannot be restored ({whys}); "
        "a rebuild keeps the generation that it replaces, and lets the oldest one go"
    )
    return Fault("kept_damaged", len(damage), told, what + times)
