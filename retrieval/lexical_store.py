"""Folders of the lexical index: one per generation, complete, checksummed, and never changed again.

    <index>/lexical/<id>-<checksum>/   a tantivy index and `files.json`, which `checksum` is of: checksums of
                                       all files, and the version of the tokens (`retrieval/analyzer.py`)
    <index>/lexical/<id>/              one that is being written, or was left by a killed writer

tantivy commits in place, so a reader of generation N would see words of N + 1 as soon as they are committed.
A change therefore begins with a folder of its own whose files are hard links to those of the generation
before (tantivy never writes into a finished file; it makes new ones and unlinks), adds to it, and seals it
under a name that carries the checksum of its list of files. What a manifest names stays as it was.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import xxhash

from core.errors import TransientError
from core.ids import new_id
from retrieval.analyzer import VERSION
from retrieval.files import DamagedIndex, checksum, sync_folder, write_durably
from retrieval.lexical import LexicalReader
from retrieval.lexical_writer import LexicalDocument, LexicalWriter

FILES = "files.json"
_CHUNK = 1 << 20
_CHANGE_HEAP_BYTES = 32 << 20
_BUILD_HEAP_BYTES = 512 << 20  # fewer, larger segments: less to merge
_KNOWN_LIMIT = 4096
_known: dict[tuple[int, int, int, int], str] = {}
_known_lock = threading.Lock()


class DamagedLexical(DamagedIndex):
    """Files of the lexical index are missing, cut or changed; the vectors are not concerned."""


class LexicalBuild:
    """A lexical index that is being written. Sealed, or removed when the block ends without `seal`.

    Args:
        root: `<index>/lexical`.
        base: the sealed index to begin with; empty begins with nothing.

    Raises:
        DamagedLexical: `base` is not what was sealed, or holds tokens of another version of the analyser.
    """

    def __init__(self, root: Path, base: str = "") -> None:
        self._root, self._base, self._id = root, base, new_id("lex")
        self._folder = root / self._id
        if base:
            source, version = _verified(root, base)
            if version != VERSION:
                raise DamagedLexical(
                    f"The lexical index {base} holds tokens of version {version}, this release writes "
                    f"version {VERSION}; rebuild it: geo tiers rebuild lexical."
                )
            _link(source, self._folder)
        heap = _CHANGE_HEAP_BYTES if base else _BUILD_HEAP_BYTES
        try:
            self._writer = LexicalWriter(self._folder, heap_bytes=heap)
        except ValueError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise DamagedLexical(f"The lexical index {base} cannot be opened: {error}") from error

    def __enter__(self) -> LexicalBuild:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)  # gone already when it was sealed

    def change(self, add: Iterable[LexicalDocument], delete: Iterable[int] = ()) -> None:
        """Upsert and delete; searchable once the index is sealed and published.

        An index that begins with nothing takes each passage once.
        """
        self._writer.change(add, delete, all_new=not self._base)

    def seal(self) -> str:
        """Commit, checksum every file, and give the folder its final name, durably.

        Returns:
            The name for the manifest.
        """
        self._writer.commit()
        self._writer.close()
        listed = {path.name: _fingerprint(path) for path in _index_files(self._folder)}
        content = json.dumps({"analyzer": VERSION, "files": listed}, sort_keys=True)
        sum_ = write_durably(self._folder / FILES, content.encode())
        name = f"{self._id}-{sum_}"
        self._folder.rename(self._root / name)
        sync_folder(self._root)
        return name


def change_lexical(root: Path, name: str, add: Iterable[LexicalDocument], delete: Iterable[int] = ()) -> str:
    """The index `name` (none when empty) with these changes, as a new one; doing it again changes nothing.

    Raises:
        DamagedLexical: `name` is not what was sealed.
    """
    with LexicalBuild(root, name) as build:
        build.change(add, delete)
        return build.seal()


def verify_lexical(root: Path, name: str, *, thorough: bool = False) -> Path:
    """The folder of a sealed index after a look at its files.

    Args:
        root: `<index>/lexical`.
        name: as the manifest has it.
        thorough: read every byte; otherwise files that this process has read before are only looked at.

    Raises:
        DamagedLexical: a file is missing, or is not what was sealed.
    """
    return _verified(root, name, thorough=thorough)[0]


def _verified(root: Path, name: str, *, thorough: bool = False) -> tuple[Path, int]:
    """The folder, and the version of its tokens."""
    folder = root / name
    try:
        listed, version = _sealed(folder)
        for file, expected in listed.items():
            if _fingerprint(folder / file, anew=thorough) != expected:
                raise DamagedLexical(f"File {file} of the lexical index {name} does not match its checksum.")
    except FileNotFoundError as error:
        missing = Path(str(error.filename)).name
        raise DamagedLexical(f"{missing} of the lexical index {name} is missing.") from error
    return folder, version


def _sealed(folder: Path) -> tuple[dict[str, str], int]:
    """What `files.json` says: fingerprints by file, and the version of the tokens, 1 where it says none."""
    content = (folder / FILES).read_bytes()
    if checksum(content) != folder.name.rpartition("-")[2]:
        raise DamagedLexical(f"The list of files of the lexical index {folder.name} does not match its name.")
    said: dict[str, Any] = json.loads(content)
    return (said["files"], int(said["analyzer"])) if "analyzer" in said else (said, 1)


def open_lexical(root: Path, name: str, *, thorough: bool = False) -> LexicalReader:
    """A reader of an index whose files are what was sealed; one of the release before is read unchecked.

    Raises:
        DamagedLexical: see `verify_lexical`; or the files are in order and still cannot be read.
    """
    try:
        if is_unsealed(root, name):
            return LexicalReader(root / name, analyzer=1)
        folder, version = _verified(root, name, thorough=thorough)
        return LexicalReader(folder, analyzer=version)
    except (ValueError, OSError) as error:
        raise DamagedLexical(f"The lexical index {name} cannot be opened: {error}") from error


def is_of_before(root: Path, name: str) -> bool:
    """Whether an earlier release wrote it: it is read as it is, and never added to."""
    if is_unsealed(root, name):
        return True
    try:
        return _sealed(root / name)[1] != VERSION
    except (DamagedLexical, OSError):
        return False  # whoever opens it will say what is wrong


def is_unsealed(root: Path, name: str) -> bool:
    """Whether it is a folder that tantivy commits into, with nothing to check."""
    return "-" not in name and (root / name / "meta.json").is_file()


def _index_files(folder: Path) -> list[Path]:
    """What the commit consists of: `meta.json` and the files of the segments that it names.

    Not locks, nor what tantivy has yet to collect, nor its list of that, which changes after a commit.
    """
    meta = folder / "meta.json"
    deletes = {
        segment["segment_id"].replace("-", ""): segment["deletes"]
        for segment in json.loads(meta.read_bytes())["segments"]
    }
    found = [meta]
    for path in sorted(folder.iterdir()):
        segment, _, kind = path.name.partition(".")
        if segment not in deletes:
            continue
        tombstones = deletes[segment]
        if kind.endswith("del") and (tombstones is None or kind != f"{tombstones['opstamp']}.del"):
            continue  # of an earlier commit
        found.append(path)
    return found


def _fingerprint(path: Path, *, anew: bool = False) -> str:
    """Length and checksum of a file's content; links to one file are read once."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if not anew and (known := _known.get(key)) is not None:
            return known
        digest = xxhash.xxh3_128()
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    found = f"{status.st_size}:{digest.hexdigest()}"
    with _known_lock:
        if len(_known) >= _KNOWN_LIMIT:
            _known.clear()
        _known[key] = found
    return found


def _link(source: Path, target: Path) -> None:
    """`target` as a folder with the files of `source`; a copy where the file system has no hard links."""
    files = _index_files(source)
    target.mkdir()
    for path in files:
        try:
            os.link(path, target / path.name)
        except FileNotFoundError:
            raise
        except OSError as error:
            try:
                shutil.copy2(path, target / path.name)
            except OSError as failed:
                shutil.rmtree(target, ignore_errors=True)
                raise TransientError(f"The lexical index cannot be copied: {failed}") from error
