"""`geo backup` and `geo restore`: one archive with the database's rows and the originals.

Index files are not in it: they are derived from the stored vectors, and a restored installation builds
them anew. Redis is not in it either: the database is the truth about work.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

from sqlalchemy import Connection, inspect, select, update

from api.cli.data import tables
from core.db import Database
from core.errors import ConfigError, Conflict, GeoError
from core.models import DocumentVersionRow, TierRow
from core.packs import sha256_file
from core.settings import Settings
from ingest.blobs import BlobStore

MANIFEST = "manifest.json"
_FORMAT = 1
_SUFFIXES = (".tar.zst", ".tar.gz", ".tar")


def backup(settings: Settings, db: Database, target: Path) -> dict[str, Any]:
    """Write a consistent archive while the service runs.

    The rows are of one moment. Originals never change under their name, so copying them afterwards is
    safe; one that was purged meanwhile is listed as missing.

    Returns:
        The archive's manifest.
    """
    _require_suffix(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.part")
    try:
        with tempfile.TemporaryDirectory(prefix="geo-backup-", dir=target.parent) as scratch:
            manifest = _dump(db, Path(scratch))
            blobs, manifest["missing_blobs"] = _blobs(settings, manifest.pop("blob_hashes"))
            with _writing(draft, target) as archive:
                for name in sorted(manifest["rows"]):
                    _add(archive, Path(scratch) / f"{name}.jsonl", f"database/{name}.jsonl", manifest)
                for blob in blobs:
                    _add(archive, blob, f"blobs/{blob.relative_to(settings.blob_dir)}", manifest)
                listing = Path(scratch) / MANIFEST
                listing.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
                archive.add(listing, MANIFEST)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return manifest


def _dump(db: Database, folder: Path) -> dict[str, Any]:
    from migrations import run as migrations

    if migrations.current(db) != migrations.head():
        raise ConfigError("the database is not at this version's revision; run: geo migrate")
    with _snapshot(db) as connection:
        rows = tables.dump(connection, folder)
        return {
            "format": _FORMAT,
            "revision": migrations.head(),
            "made_at": datetime.now(UTC).isoformat(),
            "rows": rows,
            "counters": tables.counters(connection),
            "blob_hashes": sorted(set(connection.scalars(select(DocumentVersionRow.blob_hash)))),
            "files": {},
        }


@contextmanager
def _snapshot(db: Database) -> Generator[Connection]:
    """A connection that sees one state of the database to its end."""
    options: dict[str, Any] = (
        {"geo_begin": "BEGIN"} if db.is_sqlite else {"isolation_level": "REPEATABLE READ"}
    )
    with db.engine.connect().execution_options(**options) as connection:
        yield connection
        connection.rollback()


def _blobs(settings: Settings, hashes: list[str]) -> tuple[list[Path], list[str]]:
    store = BlobStore.of(settings)
    places = {h: store.path(h) for h in hashes}
    return [p for p in places.values() if p.is_file()], [h for h, p in places.items() if not p.is_file()]


def _add(archive: tarfile.TarFile, path: Path, name: str, manifest: dict[str, Any]) -> None:
    manifest["files"][name] = sha256_file(path)
    archive.add(path, name, recursive=False)


def restore(settings: Settings, source: Path, *, force: bool) -> dict[str, Any]:
    """Bring an archive back.

    Everything is unpacked and checked before anything is touched. What was there is kept aside.

    Args:
        settings: the installation to fill; nothing may be running on it.
        source: the archive.
        force: replace existing data.

    Returns:
        What was restored, and `safety_copy`: where the old data is, or None.

    Raises:
        Conflict: there is data and `force` is off.
        GeoError: the archive is damaged.
    """
    if _holds_data(settings) and not force:
        raise Conflict(f"{settings.root} holds data; --force replaces it and keeps a safety copy beside it")
    settings.root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".geo-restore-", dir=settings.root.parent) as scratch:
        unpacked = Path(scratch)
        manifest = _unpack(source, unpacked)
        safety_copy = _move_aside(settings)
        settings.root.mkdir(parents=True, exist_ok=True)
        if (unpacked / "blobs").is_dir():
            shutil.move(unpacked / "blobs", settings.blob_dir)
        rows = _load(settings, manifest, unpacked / "database")
    return {
        "rows": rows,
        "made_at": manifest["made_at"],
        "missing_blobs": manifest["missing_blobs"],
        "safety_copy": str(safety_copy) if safety_copy else None,
    }


def _load(settings: Settings, manifest: dict[str, Any], folder: Path) -> dict[str, int]:
    from migrations import run as migrations

    db = Database(settings.database_url, settings=settings)
    try:
        migrations.upgrade(db, manifest["revision"])
        with db.engine.begin() as connection:
            rows = tables.load(connection, folder)
            if rows != manifest["rows"]:
                raise GeoError(f"restored {rows}, but the archive's manifest says {manifest['rows']}")
            tables.set_counters(connection, manifest["counters"])
        migrations.upgrade(db)
        with db.write() as session:
            # The index worker builds the index from the stored vectors before it says that it is ready;
            # older generations are gone.
            session.execute(update(TierRow).values(previous=[]))
        return rows
    finally:
        db.dispose()


def _holds_data(settings: Settings) -> bool:
    if settings.blob_dir.exists() and any(settings.blob_dir.iterdir()):
        return True
    if not settings.database.url:
        return (settings.root / "geo.sqlite3").exists()
    db = Database(settings.database_url, settings=settings)
    try:
        return bool(inspect(db.engine).get_table_names())
    finally:
        db.dispose()


def _move_aside(settings: Settings) -> Path | None:
    """Keep what is there: the folder under another name, a server's rows as an archive in it."""
    if not _holds_data(settings):
        return None
    aside = settings.root.with_name(f"{settings.root.name}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    if settings.database.url:
        db = Database(settings.database_url, settings=settings)
        try:
            settings.root.mkdir(parents=True, exist_ok=True)
            backup(settings, db, settings.root / "database-before-restore.tar.gz")
            with db.engine.begin() as connection:
                tables.clear(connection)
        finally:
            db.dispose()
    settings.root.rename(aside)
    return aside


def _unpack(source: Path, folder: Path) -> dict[str, Any]:
    try:
        with _reading(source) as archive:
            archive.extractall(folder, filter="data")
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise GeoError(f"{source} is no whole backup archive: {error}") from error
    if manifest.get("format") != _FORMAT:
        raise GeoError(f"{source} has format {manifest.get('format')}; this version reads {_FORMAT}")
    for name, digest in manifest["files"].items():
        if not (folder / name).is_file() or sha256_file(folder / name) != digest:
            raise GeoError(f"{source} is damaged at {name}; nothing was changed")
    return manifest


def _require_suffix(path: Path) -> str:
    for suffix in _SUFFIXES:
        if path.name.endswith(suffix):
            if suffix == ".tar.zst" and shutil.which("zstd") is None:
                raise ConfigError("zstd is not installed; name the archive .tar.gz instead")
            return suffix
    raise ConfigError(f"{path.name} must end in one of {', '.join(_SUFFIXES)}")


@contextmanager
def _writing(draft: Path, target: Path) -> Generator[tarfile.TarFile]:
    suffix = _require_suffix(target)
    if suffix != ".tar.zst":
        with tarfile.open(draft, "w:gz" if suffix == ".tar.gz" else "w") as archive:
            yield archive
        return
    with draft.open("wb") as sink:
        packer = subprocess.Popen(["zstd", "-q", "-T1", "-c"], stdin=subprocess.PIPE, stdout=sink)  # noqa: S607 - found on PATH above
        stream = cast(IO[bytes], packer.stdin)
        try:
            with tarfile.open(fileobj=stream, mode="w|") as archive:
                yield archive
        finally:
            stream.close()
            code = packer.wait()
        if code != 0:
            raise GeoError(f"zstd ended with exit code {code}")


@contextmanager
def _reading(source: Path) -> Generator[tarfile.TarFile]:
    if _require_suffix(source) != ".tar.zst":
        with tarfile.open(source, "r:*") as archive:
            yield archive
        return
    unpacker = subprocess.Popen(["zstd", "-q", "-d", "-c", str(source)], stdout=subprocess.PIPE)  # noqa: S607 - found on PATH above
    stream = cast(IO[bytes], unpacker.stdout)
    with stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        yield archive
    if unpacker.wait() != 0:
        raise GeoError(f"zstd could not read {source}")
