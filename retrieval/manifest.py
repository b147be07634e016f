"""What the index serves: one manifest per generation, and a pointer to the one in service.

    <index>/CURRENT                    {"generation": n}; replaced by rename, never backwards
    <index>/manifests/0000000012.json
    <index>/<tier>/segments/<name>/    see vector_pages.py
    <index>/<tier>/dead/<name>.npz     tombstones, by segment and row
    <index>/lexical/<name>/            a tantivy index
    <index>/building/<build id>/       a build that is not published yet, laid out like an index

A generation names all tiers and the lexical index together, so every route changes in one step.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from core.types import Tier
from retrieval.files import DamagedIndex, checksum, write_durably
from retrieval.vector_tier import TierRef

_FORMAT = 2
LEXICAL = "lexical"
PARTS: tuple[str, ...] = (*(tier.value for tier in Tier), LEXICAL)
"""What can be damaged and rebuilt by itself."""

_NO_TIER = TierRef()


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of all tiers and of the lexical index.

    Attributes:
        generation: grows by one with every publish, rebuilds and rollbacks included.
        applied_seq: every index log entry up to this one is in the files.
        model, dimension: the encoder pack whose vectors these are; 0 while nothing was indexed.
        tiers: by name; one that is left out is empty.
        lexical: folder of the lexical index under `<index>/lexical`; empty while there is none.
        refused: parts (`PARTS`) that hold less than they should, with the reason: their files were damaged
            and a rebuild is under way. What came since is in them.
        fence: the writer's fencing number at publish.
    """

    generation: int = 0
    applied_seq: int = 0
    model: str = ""
    dimension: int = 0
    tiers: Mapping[str, TierRef] = field(default_factory=dict[str, TierRef])
    lexical: str = ""
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    fence: int = 0
    published_at: str = ""

    def tier(self, name: str) -> TierRef:
        """What the generation holds of a tier."""
        return self.tiers.get(name, _NO_TIER)

    def with_tier(self, name: str, ref: TierRef) -> Manifest:
        """The same generation with another content of one tier."""
        return replace(self, tiers={**self.tiers, name: ref})

    @property
    def live_count(self) -> int:
        """Vectors that a search can return, of all tiers."""
        return sum(ref.live_count for ref in self.tiers.values())

    def to_json(self) -> bytes:
        """Serialized form with a checksum over its body."""
        body = json.dumps({"format": _FORMAT, **asdict(self)}, separators=(",", ":"), sort_keys=True)
        return json.dumps({"checksum": checksum(body.encode()), "body": body}).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Manifest:
        """Read the serialized form, of this format or of the one before. Raises `DamagedIndex`."""
        try:
            outer = json.loads(content)
            body = str(outer["body"])
            if checksum(body.encode()) != outer["checksum"]:
                raise DamagedIndex("A manifest does not match its checksum.")
            fields: dict[str, Any] = json.loads(body)
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedIndex("A manifest cannot be read.") from error
        found = fields.pop("format")
        if found == 1:  # one tier, which was hot
            fields["tiers"] = {Tier.HOT.value: {key: fields.pop(key) for key in ("segments", "dead")}}
        elif found != _FORMAT:
            raise DamagedIndex("A manifest has an unknown format.")
        fields["tiers"] = {name: TierRef.from_fields(ref) for name, ref in fields["tiers"].items()}
        return cls(**fields)


class TierFolder:
    """Where the files of one tier are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.segments = root / "segments"
        self.dead = root / "dead"


class IndexFolder:
    """Paths of an index and the operations on its pointer.

    An index that an earlier release wrote has its pointer and manifests under `hot`; they are read until the
    first publish puts the pointer where it is now.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tiers = {tier.value: TierFolder(root / tier.value) for tier in Tier}
        self.manifests = root / "manifests"
        self.lexical = root / "lexical"
        self.building = root / "building"
        self.current = root / "CURRENT"
        self._earlier = root / Tier.HOT.value

    def tier(self, name: str) -> TierFolder:
        """Where a tier's files are."""
        return self.tiers[name]

    def create(self) -> None:
        """Make the folders."""
        tiers = [place for tier in self.tiers.values() for place in (tier.segments, tier.dead)]
        for folder in (*tiers, self.manifests, self.lexical, self.building):
            folder.mkdir(parents=True, exist_ok=True)

    def current_generation(self) -> int | None:
        """The generation in service, or None before the first publish.

        Raises:
            DamagedIndex: the pointer cannot be read.
        """
        content = self._pointer()
        if content is None:
            return None
        try:
            return int(json.loads(content)["generation"])
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedIndex("The pointer to the current generation cannot be read.") from error

    def current_stamp(self) -> tuple[int, int] | None:
        """A cheap value that changes with every publish: one `stat`."""
        for path in self._pointers():
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            return status.st_ino, status.st_mtime_ns
        return None

    def manifest_path(self, generation: int) -> Path:
        """Where a generation's manifest is or would be."""
        earlier = self._earlier / "manifests" / f"{generation:010d}.json"
        return earlier if earlier.is_file() else self.manifests / earlier.name

    def generations(self) -> list[int]:
        """Generations whose manifest is stored, newest first."""
        places = (self.manifests, self._earlier / "manifests")
        return sorted({int(path.stem) for place in places for path in place.glob("*.json")}, reverse=True)

    def read_manifest(self, generation: int) -> Manifest:
        """Read one generation's manifest. Raises `DamagedIndex`."""
        try:
            content = self.manifest_path(generation).read_bytes()
        except FileNotFoundError as error:
            raise DamagedIndex(f"The manifest of generation {generation} is missing.") from error
        manifest = Manifest.from_json(content)
        if manifest.generation != generation:
            raise DamagedIndex(
                f"The manifest of generation {generation} says it is generation {manifest.generation}."
            )
        return manifest

    def write_manifest(self, manifest: Manifest) -> None:
        """Store a manifest; it is not in service until `point_to`."""
        write_durably(self.manifest_path(manifest.generation), manifest.to_json())

    def point_to(self, generation: int) -> None:
        """Put a generation in service. A lower one than the present is left alone.

        A writer that slept past its lease must not turn the pointer back, hence the lock and the check.
        """
        with self._pointer_lock():
            try:
                present = self.current_generation() or 0
            except DamagedIndex:
                present = 0
            if generation > present:
                write_durably(self.current, json.dumps({"generation": generation}).encode())
                (self._earlier / "CURRENT").unlink(missing_ok=True)

    @contextmanager
    def _pointer_lock(self) -> Generator[None]:
        with (self.root / ".pointer.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _pointers(self) -> tuple[Path, Path]:
        return self.current, self._earlier / "CURRENT"

    def _pointer(self) -> bytes | None:
        for path in self._pointers():
            try:
                return path.read_bytes()
            except FileNotFoundError:
                continue
        return None
