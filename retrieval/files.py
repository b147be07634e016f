"""Durable files: written aside, synced, checksummed, then renamed; nothing published ever changes."""

from __future__ import annotations

import os
from pathlib import Path

import xxhash

from core.errors import TransientError

_BLOCK = 1 << 20


class DamagedIndex(TransientError):
    """An index file is missing, cut or changed; the tier is refused and rebuilt from the database."""

    code = "tier_refused"
    title = "An index tier is damaged and is being rebuilt"


def checksum(content: bytes | memoryview) -> str:
    """XXH3-128 in hex: guards against damage, not against forgery."""
    return xxhash.xxh3_128_hexdigest(content)


def checksum_of_file(path: Path) -> str:
    """The same over a file that may be large.

    Raises:
        DamagedIndex: it is missing.
    """
    digest = xxhash.xxh3_128()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except FileNotFoundError as error:
        raise DamagedIndex(f"Index file {path.name} of {path.parent.name} is missing.") from error
    return digest.hexdigest()


def write_durably(path: Path, content: bytes) -> str:
    """Write a whole file so that after a crash it is either absent (or its old self) or complete.

    Returns:
        The checksum of `content`.
    """
    aside = path.with_name(f".{path.name}.tmp")
    with aside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    sync_folder(path.parent)
    return checksum(content)


def read_checked(path: Path, expected: str) -> bytes:
    """Read a whole file and compare its checksum.

    Raises:
        DamagedIndex: the file is missing, or its content is not what was written.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DamagedIndex(f"Index file {path.name} of {path.parent.name} is missing.") from error
    if checksum(content) != expected:
        raise DamagedIndex(f"Index file {path.name} of {path.parent.name} does not match its checksum.")
    return content


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
