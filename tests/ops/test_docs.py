"""The documents name only what exists: settings, commands, doors, files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from api.app import create_app, doors
from api.cli import make_cli
from core.settings import Settings
from scripts.env_example import variables

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/adr/*.md"))]
_PATH = re.compile(
    r"`((?:core|ingest|retrieval|generation|api|migrations|tests|scripts|docs|deploy)/[\w./-]+)`"
)
_DOOR = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE)(?:\|[A-Z]+)* (/v1/[\w/{}|.-]*[\w}])")


@pytest.fixture(params=DOCS, ids=lambda path: path.name)
def text(request: pytest.FixtureRequest) -> str:
    return request.param.read_text(encoding="utf-8")


def test_settings_exist(text: str) -> None:
    known = {name for name, _ in variables()}
    for name in re.findall(r"\bGEO_[A-Z]+__[A-Z0-9_]+\b(?!\*)", text):
        assert name in known or name.endswith("_"), name  # `GEO_GENERATION__NLI_*` names several
    for end in re.findall(r"…([A-Z][A-Z0-9_]{3,})`", text):
        assert any(name.endswith(f"__{end}") for name in known), end


def test_commands_exist(text: str) -> None:
    cli: Any = get_command(make_cli())
    for line in re.findall(r"(?:`|^|\$ )geo ([a-z][^`\n]*)", text, re.MULTILINE):
        words = re.findall(r"[a-z][a-z-]*|\S+", line)
        at = cli
        while getattr(at, "commands", None) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
            assert words[0] in at.commands, f"geo {line}"
            at = at.commands[words.pop(0)]


def test_doors_exist(text: str) -> None:
    known = {re.sub(r"\{\w+\}", "{}", route.path) for route in doors(create_app(Settings()))}
    for path in _DOOR.findall(text):
        for one in _alternatives(re.sub(r"\{\w+\}", "{}", path)):
            assert one in known or any(k.startswith(f"{one}/") for k in known), path


def _alternatives(path: str) -> list[str]:
    """`/v1/admin/tiers/{hot|warm}/rebuild` is a door with a parameter."""
    return [re.sub(r"\{[^}]*\|[^}]*\}", "{}", path)]


def test_files_exist(text: str) -> None:
    for name in _PATH.findall(text):
        assert (ROOT / name.rstrip("/")).exists(), name
