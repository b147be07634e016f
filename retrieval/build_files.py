"""The files of a build that is not published: laid out like an index, with a note of how far it is.

    <index>/building/<build id>/state.json     written after each finished segment
    <index>/building/<build id>/<tier>/…       what will be served
    <index>/building/<build id>/source/…       links to the files that a compaction reads

Files go from one place to another by hard links: both places stay whole until one is given up, so a build
that is killed while it hands its files over hands them over again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from retrieval.files import DamagedIndex, checksum, sync_folder, write_durably
from retrieval.index_repository import START, Place
from retrieval.manifest import LEXICAL, IndexFolder, Manifest, TierFolder
from retrieval.vector_tier import SegmentRef, TierRef

_STATE = "state.json"
_LOCK = ".lock"  # tantivy's; a link would share the lock of the index it comes from


@dataclass(slots=True)
class PartState:
    """How far one part is: everything up to `after` is in finished files."""

    after: Place = START
    done: bool = False


@dataclass(slots=True)
class BuildState:
    """What a later attempt has to know.

    Attributes:
        seq: the log entry from which on the build replays.
        model, dimension: the encoder whose vectors are built.
        applied_seq: up to here the log is in the finished parts.
        lexical: folder of the lexical index.
        parts: progress by part.
        tiers: finished files by tier.
        sources: what a compaction reads, by tier.
        stats: counts so far.
    """

    seq: int
    model: str
    dimension: int
    applied_seq: int
    lexical: str = ""
    parts: dict[str, PartState] = field(default_factory=dict[str, PartState])
    tiers: dict[str, TierRef] = field(default_factory=dict[str, TierRef])
    sources: dict[str, TierRef] = field(default_factory=dict[str, TierRef])
    stats: dict[str, Any] = field(default_factory=dict[str, Any])

    def manifest(self) -> Manifest:
        """The finished files."""
        return Manifest(
            applied_seq=self.applied_seq, model=self.model, dimension=self.dimension,
            tiers=dict(self.tiers), lexical=self.lexical,
        )  # fmt: skip

    def take(self, manifest: Manifest) -> None:
        """Take over what a replay made of the files."""
        self.applied_seq, self.lexical = manifest.applied_seq, manifest.lexical
        self.tiers = dict(manifest.tiers)


class BuildFolder:
    """Folder of one build."""

    def __init__(self, served: IndexFolder, build_id: str) -> None:
        self.index = IndexFolder(served.building / build_id)
        self.source = IndexFolder(self.index.root / "source")
        self._served = served

    def load(self) -> BuildState | None:
        """What an earlier attempt left, or None when there is nothing to go on with."""
        try:
            outer = json.loads((self.index.root / _STATE).read_bytes())
            body = str(outer["body"])
            if checksum(body.encode()) != outer["checksum"]:
                return None
            fields: dict[str, Any] = json.loads(body)
            parts = {
                name: PartState((p["after"][0], p["after"][1], p["after"][2]), p["done"])
                for name, p in fields.pop("parts").items()
            }
            tiers, sources = (
                {name: TierRef.from_fields(ref) for name, ref in fields.pop(key).items()}
                for key in ("tiers", "sources")
            )
            return BuildState(**fields, parts=parts, tiers=tiers, sources=sources)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, state: BuildState) -> None:
        """Note how far the build is; durable on return."""
        fields = asdict(state)
        for key, refs in (("tiers", state.tiers), ("sources", state.sources)):
            fields[key] = {name: ref.to_fields() for name, ref in refs.items()}
        body = json.dumps(fields, separators=(",", ":"))
        content = json.dumps({"checksum": checksum(body.encode()), "body": body}).encode()
        write_durably(self.index.root / _STATE, content)

    def start(self) -> None:
        """Make the folders, empty."""
        self.discard()
        self.index.create()

    def discard(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.index.root, ignore_errors=True)

    def borrow_tier(self, part: str, ref: TierRef, *, into: IndexFolder) -> None:
        """Link the served files of a tier.

        Raises:
            DamagedIndex: one is missing.
        """
        _link_tier(self._served, into, part, ref)

    def borrow_lexical(self, name: str) -> None:
        """Link a served lexical index.

        Raises:
            DamagedIndex: it is missing.
        """
        _link_folder(self._served.lexical / name, self.index.lexical / name)

    def hand_over(self, manifest: Manifest, parts: Iterable[str]) -> None:
        """Link the finished files of these parts into the served index; no manifest names them yet."""
        for part in parts:
            if part != LEXICAL:
                _link_tier(self.index, self._served, part, manifest.tier(part))
                continue
            name = manifest.lexical
            _link_folder(self.index.lexical / name, self._served.lexical / name)
            sync_folder(self._served.lexical)


def remove_abandoned(served: IndexFolder, open_builds: set[str]) -> None:
    """Remove the folders of builds that ended without their worker."""
    if not served.building.is_dir():
        return
    for entry in served.building.iterdir():
        if entry.name not in open_builds:
            shutil.rmtree(entry, ignore_errors=True)


def _link_tier(source: IndexFolder, target: IndexFolder, part: str, ref: TierRef) -> None:
    there, here = source.tier(part), target.tier(part)
    here.segments.mkdir(parents=True, exist_ok=True)
    here.dead.mkdir(parents=True, exist_ok=True)
    for segment in ref.segments:
        link_segment(there, here, segment)
    if ref.dead is not None:
        _link(there.dead / ref.dead.name, here.dead / ref.dead.name)
    sync_folder(here.segments)
    sync_folder(here.dead)


def link_segment(source: TierFolder, target: TierFolder, ref: SegmentRef) -> None:
    """Link the files of a segment, so that they stay whoever collects the source.

    Raises:
        DamagedIndex: they are missing.
    """
    _link_folder(source.segments / ref.name, target.segments / ref.name)


def _link_folder(source: Path, target: Path) -> None:
    if not source.is_dir():
        raise DamagedIndex(f"The folder {source.name} of {source.parent.parent.name} is missing.")
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.is_file() and not path.name.endswith(_LOCK):
            _link(path, target / path.name)
    sync_folder(target)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:  # an earlier attempt; published files never change
        return
    except FileNotFoundError as error:
        raise DamagedIndex(f"Index file {source.name} of {source.parent.name} is missing.") from error
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)
