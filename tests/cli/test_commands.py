from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import exit_code, make_cli
from api.keys import ensure_bootstrap, find_scope
from core.db import Database
from core.errors import ConfigError, Conflict, DiskFull, NotFound, TransientError
from core.settings import Settings
from core.types import Role

ROOT = Path(__file__).parents[2]


def geo(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GEO_")}
    return subprocess.run(
        [sys.executable, "-m", "api.cli", *words], capture_output=True, text=True, cwd=cwd, timeout=60,
        env={**clean, "PYTHONPATH": str(ROOT), "GEO_DATA_DIR": str(cwd / "geo"), **env},
    )  # fmt: skip


def test_exit_codes_tell_the_kinds_of_failure_apart() -> None:
    assert [exit_code(e) for e in (Conflict(), NotFound(), ConfigError(), TransientError(), DiskFull())] == [
        1, 1, 2, 3, 3,
    ]  # fmt: skip


def test_unknown_setting_ends_with_usage_error_and_one_line(tmp_path: Path) -> None:
    done = geo("status", cwd=tmp_path, GEO_NO_SUCH_THING="1")
    assert done.returncode == 2
    assert done.stderr.strip() == "geo: unknown setting GEO_NO_SUCH_THING; .env.example lists the known ones"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("bench", "tiers", "--peer", "annoy"), "annoy: choose from usearch, hnsw, lancedb"),
        (("bench", "generate", "--part", "all"), "all: choose from service, engine, grammar"),
        (("eval", "rgb", str(ROOT / "README.md"), "--mode", "chat"), "choose extract, quote or free"),
    ],
)
def test_a_choice_that_there_is_not_is_refused_before_any_work(words: tuple[str, ...], told: str) -> None:
    done = CliRunner().invoke(make_cli(), words)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())


def test_service_that_is_away_ends_with_unavailable(tmp_path: Path) -> None:
    done = geo("search", "x", cwd=tmp_path, GEO_CLIENT__URL="http://127.0.0.1:9", GEO_CLIENT__KEY="k" * 16)
    assert done.returncode == 3
    assert "geo up" in done.stderr
    assert geo("status", "--json", cwd=tmp_path).returncode == 3


def test_client_without_a_key_says_which_variable_to_set(tmp_path: Path) -> None:
    done = geo("ask", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "GEO_CLIENT__KEY" in done.stderr


@pytest.mark.parametrize("command", [("serve",), ("up", "--detach")])
@pytest.mark.parametrize("value", ["", "   ", "fifteen-chars-x"])
def test_start_with_a_blank_or_short_first_key_is_refused(
    tmp_path: Path, command: tuple[str, ...], value: str
) -> None:
    done = geo(*command, cwd=tmp_path, GEO_AUTH__BOOTSTRAP_KEY=value, GEO_API__PORT="0")
    assert done.returncode == 2, done.stderr
    assert "GEO_AUTH__BOOTSTRAP_KEY" in done.stderr
    assert "16 characters" in done.stderr
    assert not (tmp_path / "geo" / "geo.sqlite3").exists()


@pytest.mark.parametrize("words", [("doctor",), ("keys", "list"), ("backup", "b.tar.gz")])
def test_commands_on_data_make_none_where_there_is_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = geo(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "geo up" in done.stderr
    assert not list(tmp_path.iterdir())


def test_data_folder_that_cannot_be_used_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "geo").touch()
    done = geo("status", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("geo: Not a directory: ")
    assert len(done.stderr.splitlines()) == 1


def test_starting_the_command_loads_no_model_library() -> None:
    code = (
        "import sys; from api.cli import make_cli; make_cli()\n"
        "heavy = {'torch', 'vllm', 'faiss', 'spacy', 'sentence_transformers', 'transformers', 'tantivy'}\n"
        "sys.exit(','.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_migrate_twice_ends_at_the_same_revision(tmp_path: Path) -> None:
    first = json.loads(geo("migrate", "--json", cwd=tmp_path).stdout)
    second = json.loads(geo("migrate", "--json", cwd=tmp_path).stdout)
    assert first["before"] is None
    assert first["after"] == second["before"] == second["after"]


@pytest.fixture
def born(sqlite_database: Database, settings: Settings) -> Database:
    ensure_bootstrap(sqlite_database, settings)
    return sqlite_database


def _run(*words: str) -> dict:
    done = CliRunner().invoke(make_cli(), [*words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_made_key_works_and_a_revoked_one_does_not(born: Database) -> None:
    made = _run("keys", "create", "reports", "--role", "writer")
    with born.read() as session:
        scope = find_scope(session, made["key"])
    assert scope is not None
    assert scope.may is Role.WRITER
    assert "key" not in _run("keys", "list")["items"][-1]
    assert {k["name"] for k in _run("keys", "list")["items"]} == {"first operator key", "reports"}
    _run("keys", "revoke", made["id"])
    with born.read() as session:
        assert find_scope(session, made["key"]) is None


def test_last_operator_key_cannot_be_revoked_but_replaced(born: Database) -> None:
    [first] = _run("keys", "list")["items"]
    with pytest.raises(Conflict, match="last operator key"):
        _run("keys", "revoke", first["id"])
    _run("keys", "create", "rescue", "--role", "operator")
    _run("keys", "revoke", first["id"])
