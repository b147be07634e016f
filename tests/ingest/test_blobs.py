from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import DiskFull, NotFound, TooLarge
from ingest.blobs import BlobStore


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def files(store: BlobStore) -> list[Path]:
    return [p for p in store.root.rglob("*") if p.is_file()] if store.root.exists() else []


def test_a_committed_blob_reads_back_under_its_hash(store: BlobStore) -> None:
    blob = store.stage([b"ab", b"", b"c"], cap=3)
    assert (blob.digest, blob.size_bytes) == (hashlib.sha256(b"abc").hexdigest(), 3)
    store.commit(blob)
    assert store.read(blob.digest) == b"abc"
    assert files(store) == [store.path(blob.digest)]


def test_committing_the_same_bytes_twice_keeps_one_file(store: BlobStore) -> None:
    for _ in range(2):
        store.commit(store.stage([b"abc"], cap=3))
    assert len(files(store)) == 1


def test_the_cap_stops_the_stream_and_leaves_nothing(store: BlobStore) -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1000

    with pytest.raises(TooLarge):
        store.stage(endless(), cap=2500)
    assert taken == 3
    assert files(store) == []


def test_a_client_that_goes_away_leaves_nothing(store: BlobStore) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.stage(broken(), cap=10)
    assert files(store) == []


def test_a_full_disk_is_named_and_leaves_nothing(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BufferedWriter):
        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fdopen", lambda handle, mode: Full(io.FileIO(handle, mode)))
    with pytest.raises(DiskFull):
        store.stage([b"x"], cap=10)
    assert files(store) == []


def test_less_free_space_than_the_reserve_refuses_the_upload(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "deep" / "blobs", min_free_bytes=1 << 60)
    with pytest.raises(DiskFull):
        store.stage([b"x"], cap=10)
    assert files(store) == []


def test_a_digest_that_is_a_path_is_refused(store: BlobStore) -> None:
    for bad in ("../../etc/passwd", "a" * 63, "A" * 64, "a" * 63 + "/"):
        with pytest.raises(ValueError):
            store.path(bad)


def test_a_missing_blob_is_not_found_and_may_be_deleted_again(store: BlobStore) -> None:
    digest = "0" * 64
    with pytest.raises(NotFound):
        store.open(digest)
    with pytest.raises(NotFound):
        store.existing(digest)
    store.delete(digest)


def test_old_staging_files_are_swept_and_young_ones_stay(store: BlobStore) -> None:
    old, young = store.stage([b"old"], cap=10), store.stage([b"young"], cap=10)
    os.utime(old.path, (1000, 1000))
    os.utime(young.path, (5000, 5000))
    assert store.delete_stale_staging(older_than_s=3600, now=5001) == 1
    assert not old.path.exists()
    assert young.path.exists()


def test_discard_after_commit_is_harmless(store: BlobStore) -> None:
    blob = store.stage([b"x"], cap=1)
    store.commit(blob)
    blob.discard()
    assert store.digests() == {blob.digest}
