"""Original bytes by content hash: staged aside, synced, then renamed into place.

The name that a client sent is display text and never becomes a path; a blob's path follows from its
SHA-256 alone.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from core.errors import DiskFull, NotFound, TooLarge
from core.settings import Settings, get_settings

STALE_STAGING_S = 6 * 3600.0
"""A staged file of this age has lost its request."""
_FREE_CHECK_BYTES = 8 << 20  # looking at the disk after every chunk would cost more than writing it
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StagedBlob:
    """Bytes that are safely on disk but not yet in the store. Discard it when the request fails."""

    path: Path
    digest: str
    size_bytes: int

    def discard(self) -> None:
        """Remove the staged file; harmless after `BlobStore.commit`."""
        self.path.unlink(missing_ok=True)


class BlobWriter:
    """Takes chunks as they arrive; `finish` gives the staged blob. Leaving the block early cleans up."""

    def __init__(self, store: BlobStore, cap: int) -> None:
        self._store, self._cap = store, cap
        self._hash = hashlib.sha256()
        self._size = self._checked = 0
        self._path: Path | None = None
        store.require_free()
        with _disk_full_named():
            store.staging.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=store.staging)
        self._file: BinaryIO = os.fdopen(handle, "wb")
        self._path = Path(name)

    def __enter__(self) -> BlobWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def write(self, chunk: bytes) -> None:
        """Append; raises `TooLarge` as soon as the cap is passed and `DiskFull` before the disk is."""
        self._size += len(chunk)
        if self._size > self._cap:
            self.abort()
            raise TooLarge(f"The file is larger than {self._cap:,} bytes.", cap=self._cap)
        if self._size - self._checked >= _FREE_CHECK_BYTES:
            self._checked = self._size
            self._store.require_free()
        self._hash.update(chunk)
        with _disk_full_named():
            self._file.write(chunk)

    def finish(self) -> StagedBlob:
        """Sync to disk and hand over."""
        with _disk_full_named():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        path, self._path = self._path, None
        if path is None:
            raise ValueError("the writer was aborted or finished before")
        return StagedBlob(path, self._hash.hexdigest(), self._size)

    def abort(self) -> None:
        """Drop what was written; a no-op after `finish`."""
        if self._path is None:
            return
        try:
            self._file.close()
        except OSError as error:  # closing flushes, and a full disk says so once more
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
        finally:
            self._path.unlink(missing_ok=True)
            self._path = None


class BlobStore:
    """Blobs under `root/ab/abcd…`, staging under `root/.staging` on the same file system."""

    def __init__(self, root: Path, *, min_free_bytes: int = 0) -> None:
        self.root = root
        self.staging = root / ".staging"
        self._min_free = min_free_bytes

    @classmethod
    def of(cls, settings: Settings | None = None) -> BlobStore:
        """The store of the configured data folder."""
        settings = settings or get_settings()
        return cls(settings.blob_dir, min_free_bytes=settings.min_free_bytes)

    def require_free(self) -> None:
        """Raise `DiskFull` when less than the configured reserve is free."""
        folder = self.root
        while not folder.exists():
            folder = folder.parent
        if shutil.disk_usage(folder).free < self._min_free:
            raise DiskFull("The data disk is nearly full; free space and upload again.")

    def writer(self, cap: int) -> BlobWriter:
        """A writer for one upload of at most `cap` bytes."""
        return BlobWriter(self, cap)

    def stage(self, chunks: Iterable[bytes], cap: int) -> StagedBlob:
        """Write all chunks aside.

        Raises:
            TooLarge: more than `cap` bytes came; nothing is left behind.
            DiskFull: no space; nothing is left behind.
        """
        with self.writer(cap) as writer:
            for chunk in chunks:
                writer.write(chunk)
            return writer.finish()

    def commit(self, blob: StagedBlob) -> Path:
        """Move a staged blob into place; the same bytes may already be there."""
        target = self.path(blob.digest)
        with _disk_full_named():
            target.parent.mkdir(parents=True, exist_ok=True)
            blob.path.replace(target)
            _sync_folder(target.parent)
        return target

    def path(self, digest: str) -> Path:
        """Where the blob of this SHA-256 stands; it need not exist."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"not a SHA-256 in hex: {digest!r}")
        return self.root / digest[:2] / digest

    def existing(self, digest: str) -> Path:
        """Path of a stored blob; `NotFound` when it is gone."""
        path = self.path(digest)
        if not path.is_file():
            raise NotFound("The original is no longer stored.", blob_hash=digest)
        return path

    def open(self, digest: str) -> BinaryIO:
        """Open for reading; `NotFound` when the blob is gone."""
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError:
            raise NotFound("The original is no longer stored.", blob_hash=digest) from None

    def read(self, digest: str) -> bytes:
        """The whole blob."""
        with self.open(digest) as file:
            return file.read()

    def delete(self, digest: str) -> None:
        """Remove a blob; absent ones are fine. The caller has made sure that no version needs it."""
        self.path(digest).unlink(missing_ok=True)

    def digests(self) -> set[str]:
        """All stored digests (for the orphan check)."""
        return {p.name for p in self.root.glob("??/*") if _DIGEST.fullmatch(p.name)}

    def stale_staging(self, older_than_s: float, now: float) -> list[Path]:
        """Staged files that no living request can own any more."""
        found: list[Path] = []
        for path in sorted(self.staging.glob("*")):
            try:
                if now - path.stat().st_mtime > older_than_s:
                    found.append(path)
            except FileNotFoundError:  # its request ended meanwhile
                continue
        return found

    def delete_stale_staging(self, older_than_s: float, now: float) -> int:
        """Remove those files; returns how many."""
        stale = self.stale_staging(older_than_s, now)
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)


class _disk_full_named:
    """Turn ENOSPC and a used-up quota into `DiskFull`."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull("The data disk is full; free space and upload again.") from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
