"""Hot segments become few large ones, beside the questions and beside the writer.

A question searches the structure of every hot segment, and one of a hundred thousand vectors costs little
more than one of five thousand. The writer merges what takes a moment (`tier_writer.py`); a structure that
takes tens of seconds is built here from links to the served files, and only its publishing needs the
writer's lease:

| step | writer's lease | what a kill leaves |
|---|---|---|
| choose segments of the served generation and link them | no | a folder that the next merge empties |
| write the merged segment aside | no | the same |
| move it into the tier, bury what died in it meanwhile, publish | held | a file that a publish collects |

Segments that were replaced meanwhile, by a rebuild for instance, end the merge without a change.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence

from core.db import Database
from core.errors import LeaseLost, TransientError
from core.settings import get_settings
from core.types import Tier
from retrieval.build_files import link_segment
from retrieval.build_parts import layout
from retrieval.files import DamagedIndex, sync_folder
from retrieval.lease import writer_lease
from retrieval.manifest import IndexFolder, Manifest, TierFolder
from retrieval.segments import merge_rows, open_segment, write_segments
from retrieval.structures import QUICK16_FROM
from retrieval.tier_writer import dead_masks, open_tier
from retrieval.vector_tier import SegmentRef
from retrieval.writer import IndexWriter, index_writer

log = logging.getLogger(__name__)

_LEASE = "side_merge"  # one merge at a time, whatever process
_ASIDE = "merging"  # beside the tiers
_GROWTH = (
    0.25  # what joins the largest segment of a merge makes it larger by so much, so rows are copied rarely
)
_LEAST_ROWS = QUICK16_FROM  # a smaller segment is scanned in a moment, and the writer soon merges it


def worth_merging(counts: Sequence[int], full: int) -> list[int]:
    """Which segments to merge into one.

    The smallest with a structure whose sum is not above `full`, without a large one that the others would
    hardly add to. Every merge makes its largest segment larger by a quarter, so a row is copied as often as
    the logarithm of the tier's size says, and the segments left are few.

    Args:
        counts: rows of each segment.
        full: rows of a segment at most.

    Returns:
        Places in `counts`, ascending by size; empty when nothing is worth its work.
    """
    chosen: list[int] = []
    rows = 0
    for at in sorted(range(len(counts)), key=lambda n: (counts[n], n)):
        if counts[at] < _LEAST_ROWS:
            continue
        if rows + counts[at] > full:
            break
        chosen.append(at)
        rows += counts[at]
    while len(chosen) > 1:
        largest = counts[chosen[-1]]
        if rows - largest >= _GROWTH * largest:
            return chosen
        chosen.pop()
        rows -= largest
    return []


def merge_aside(db: Database, folder: IndexFolder | None = None, tier: Tier = Tier.HOT) -> int:
    """Merge segments of a tier until nothing is worth merging; says how many merges were published.

    Args:
        db: where leases stand.
        folder: of the index; that of the settings by default.
        tier: whose segments.
    """
    place = folder or IndexFolder(get_settings().index_dir)
    merges = 0
    try:
        with writer_lease(db, name=_LEASE, wait_s=0):
            while _merge_once(db, place, tier):
                merges += 1
    except (TransientError, LeaseLost) as error:  # another process merges or writes: there is a next time
        log.info("merge_left", extra={"tier": tier.value, "detail": error.detail})
    return merges


def _merge_once(db: Database, folder: IndexFolder, tier: Tier) -> bool:
    aside = IndexFolder(folder.root / _ASIDE)
    shutil.rmtree(aside.root, ignore_errors=True)  # of a merge that was killed
    begun = time.perf_counter()
    try:
        generation = folder.current_generation()
        if generation is None:
            return False
        manifest = folder.read_manifest(generation)
        chosen = _chosen(manifest, tier)
        if not chosen:
            return False
        made = _written(folder, aside, tier, manifest, chosen)
    except DamagedIndex as error:  # replaced while it was read, or a reader meets it too and tells
        log.warning("merge_left", extra={"tier": tier.value, "detail": error.detail})
        return False
    else:
        with index_writer(db, folder=folder) as writer:
            published = made is not None and _swapped(writer, aside, tier, chosen, made)
    finally:
        shutil.rmtree(aside.root, ignore_errors=True)
    seconds = round(time.perf_counter() - begun, 2)
    told = {
        "tier": tier.value,
        "segments": len(chosen),
        "rows": made.count if made else 0,
        "seconds": seconds,
    }
    log.info("segments_merged" if published else "merge_left", extra=told)
    return published


def _chosen(manifest: Manifest, tier: Tier) -> list[SegmentRef]:
    ref = manifest.tier(tier.value)
    if tier.value in manifest.refused:
        return []
    full = layout().rows(tier)
    return [ref.segments[at] for at in worth_merging([one.count for one in ref.segments], full)]


def _written(
    folder: IndexFolder, aside: IndexFolder, tier: Tier, manifest: Manifest, chosen: Sequence[SegmentRef]
) -> SegmentRef | None:
    """The merged segment, or None when no row of them is alive."""
    served, ref = folder.tier(tier.value), manifest.tier(tier.value)
    source, target = TierFolder(aside.root / "source"), aside.tier(tier.value)
    for one in chosen:
        link_segment(served, source, one)
    target.segments.mkdir(parents=True, exist_ok=True)
    segments = [open_segment(source.segments, one) for one in chosen]
    masks = dead_masks(served.dead, ref.dead, segments)
    made = write_segments(
        target.segments,
        merge_rows([(segment, masks.get(segment.ref.name)) for segment in segments]),
        dimension=manifest.dimension,
        max_rows=layout().rows(tier),
        plan=layout().plan(tier),
    )
    return made[0] if made else None


def _swapped(
    writer: IndexWriter, aside: IndexFolder, tier: Tier, chosen: Sequence[SegmentRef], made: SegmentRef
) -> bool:
    """Serve the merged segment; False when one of those it was made of is not served any more."""
    manifest = writer.current()
    ref = manifest.tier(tier.value)
    if tier.value in manifest.refused or not set(chosen) <= set(ref.segments):
        return False
    served = writer.folder.tier(tier.value)
    (aside.tier(tier.value).segments / made.name).rename(served.segments / made.name)
    sync_folder(served.segments)
    changed = open_tier(served, tier, ref, dimension=manifest.dimension, layout=writer.layout)
    if not changed.exchange({one.name for one in chosen}, made):
        return False
    writer.publish(manifest.with_tier(tier.value, changed.commit()))
    return True
