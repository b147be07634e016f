"""The documents name only what exists: settings, commands, doors, files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from api.app import create_app, doors
from api.cli import make_cli
from core.settings import Settings
from scripts.env_example import variables

ROOT = Path(__file__).parents[2]
DOCS = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/benchmarks/*.md")),
    *sorted(ROOT.glob("docs/adr/*.md")),
]
_PATH = re.compile(
    r"`((?:core|ingest|retrieval|generation|api|migrations|tests|scripts|docs|deploy)/[\w./-]+)`"
)
_DOOR = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE)(?:\|[A-Z]+)* (/v1/[\w/{}|.-]*[\w}])")
_PARAMETER = re.compile(r"\{[^}]*\}")  # `/v1/admin/tiers/{hot|warm}/rebuild` names a parameter's values


@cache
def commands() -> Any:
    return get_command(make_cli())


@cache
def known_doors() -> frozenset[str]:
    return frozenset(_PARAMETER.sub("{}", route.path) for route in doors(create_app(Settings())))


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
    for line in re.findall(r"(?:`|^|\$ )geo ([a-z][^`\n]*)", text, re.MULTILINE):
        words = re.findall(r"[a-z][a-z-]*|\S+", line)
        at = commands()
        while getattr(at, "commands", None) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
            assert words[0] in at.commands, f"geo {line}"
            at = at.commands[words.pop(0)]


def test_doors_exist(text: str) -> None:
    for path in _DOOR.findall(text):
        door = _PARAMETER.sub("{}", path)
        assert door in known_doors() or any(one.startswith(f"{door}/") for one in known_doors()), path


def test_files_exist(text: str) -> None:
    for name in _PATH.findall(text):
        assert (ROOT / name.rstrip("/")).exists(), name
