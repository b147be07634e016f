"""What the index serves: one manifest per generation, and a pointer to the one in service.

    <index>/hot/CURRENT                   {"generation": n}; replaced by rename, never backwards
    <index>/hot/manifests/0000000012.json
    <index>/hot/segments/<name>/          see vector_pages.py
    <index>/hot/dead/<name>.npz           tombstones, by segment and row
    <index>/lexical/<name>/               a tantivy index
    <index>/building/<build id>/          a rebuild that is not published yet

A generation names the vectors and the lexical index together, so both routes change in one step.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from retrieval.files import DamagedIndex, checksum, write_durably

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """A segment as a manifest names it; `checksum` is that of its header, which names the others."""

    name: str
    count: int
    checksum: str


@dataclass(frozen=True, slots=True)
class DeadRef:
    """The tombstone file of a generation."""

    name: str
    count: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation of the hot tier and of the lexical index.

    Attributes:
        generation: grows by one with every publish, rebuilds and rollbacks included.
        applied_seq: every index log entry up to this one is in the files.
        model, dimension: the encoder pack whose vectors these are; 0 while nothing was indexed.
        lexical: folder of the lexical index under `<index>/lexical`; empty while there is none.
        fence: the writer's fencing number at publish.
    """

    generation: int = 0
    applied_seq: int = 0
    model: str = ""
    dimension: int = 0
    segments: tuple[SegmentRef, ...] = ()
    dead: DeadRef | None = None
    lexical: str = ""
    fence: int = 0
    published_at: str = ""

    @property
    def live_count(self) -> int:
        """Vectors that a search can return."""
        return sum(s.count for s in self.segments) - (self.dead.count if self.dead else 0)

    def to_json(self) -> bytes:
        """Serialized form with a checksum over its body."""
        body = json.dumps({"format": _FORMAT, **asdict(self)}, separators=(",", ":"), sort_keys=True)
        return json.dumps({"checksum": checksum(body.encode()), "body": body}).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Manifest:
        """Read the serialized form. Raises `DamagedIndex`."""
        try:
            outer = json.loads(content)
            body = str(outer["body"])
            if checksum(body.encode()) != outer["checksum"]:
                raise DamagedIndex("A manifest does not match its checksum.")
            fields: dict[str, Any] = json.loads(body)
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedIndex("A manifest cannot be read.") from error
        if fields.pop("format") != _FORMAT:
            raise DamagedIndex("A manifest has an unknown format.")
        fields["segments"] = tuple(SegmentRef(**s) for s in fields["segments"])
        fields["dead"] = DeadRef(**fields["dead"]) if fields["dead"] else None
        return cls(**fields)


class IndexFolder:
    """Paths of an index and the operations on its pointer."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hot = root / "hot"
        self.segments = self.hot / "segments"
        self.dead = self.hot / "dead"
        self.manifests = self.hot / "manifests"
        self.lexical = root / "lexical"
        self.building = root / "building"
        self.current = self.hot / "CURRENT"

    def create(self) -> None:
        """Make the folders."""
        for folder in (self.segments, self.dead, self.manifests, self.lexical, self.building):
            folder.mkdir(parents=True, exist_ok=True)

    def current_generation(self) -> int | None:
        """The generation in service, or None before the first publish.

        Raises:
            DamagedIndex: the pointer cannot be read.
        """
        try:
            content = self.current.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return int(json.loads(content)["generation"])
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedIndex("The pointer to the current generation cannot be read.") from error

    def current_stamp(self) -> tuple[int, int] | None:
        """A cheap value that changes with every publish: one `stat`."""
        try:
            status = self.current.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

    def manifest_path(self, generation: int) -> Path:
        """Where a generation's manifest is or would be."""
        return self.manifests / f"{generation:010d}.json"

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

    @contextmanager
    def _pointer_lock(self) -> Generator[None]:
        with (self.hot / ".pointer.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
