"""`geo tune profiles` against the running doors: what it prints, and files that are no profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from api.cli import make_cli
from core.errors import ConfigError, GeoError, InvalidInput
from core.settings import RetrievalSettings
from retrieval.profile import built_in
from tests.api.conftest import OPERATOR_KEY, Configure

PROFILE = built_in(RetrievalSettings()).model_dump(mode="json")
COMPARED = {"n": 40, "present": 0.5, "tuned": 0.6, "difference": 0.1, "ci95": [0.02, 0.18], "p": 0.01}


def geo(*words: str) -> Result:
    """Runs a command; an error of the service or of its use is raised."""
    result = CliRunner().invoke(make_cli(), ["tune", "profiles", *words])
    if isinstance(result.exception, GeoError):
        raise result.exception
    return result


@pytest.fixture
def signed_in(url: str, configure: Configure) -> None:
    configure(client__url=url, client__key=OPERATOR_KEY)


def written(folder: Path, **members: object) -> str:
    path = folder / "profile.json"
    path.write_text(json.dumps(members), encoding="utf-8")
    return str(path)


@pytest.mark.usefixtures("signed_in")
def test_a_written_profile_is_stored_listed_applied_and_taken_back(tmp_path: Path) -> None:
    stored = geo("add", written(tmp_path, profile=PROFILE, figures={"held_out": COMPARED}), "--json")
    profile_id = json.loads(stored.stdout)["id"]
    assert "not measured" not in geo("list").stdout
    assert geo("apply", profile_id).exit_code == 0
    shown = geo("list").stdout
    assert shown.startswith(f"* {profile_id}  tenant  version 1")
    assert "0.5000 → 0.6000  (+0.1000 [+0.0200, +0.1800], p 0.01)" in shown
    assert geo("rollback").exit_code == 0
    assert geo("list").stdout.startswith(f"  {profile_id}")


@pytest.mark.usefixtures("signed_in")
def test_a_profile_with_a_part_of_the_figures_is_listed_and_a_worse_one_needs_force(tmp_path: Path) -> None:
    figures = {"base": "built-in", "held_out": {"difference": -0.01}}
    profile_id = json.loads(geo("add", written(tmp_path, profile=PROFILE, figures=figures), "--json").stdout)[
        "id"
    ]
    assert "not measured" in geo("list").stdout
    with pytest.raises(GeoError, match="worse"):
        geo("apply", profile_id)
    assert geo("apply", profile_id, "--force").exit_code == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"figures": {}}'])
def test_a_file_that_is_no_profile_is_refused_before_anything_is_asked(tmp_path: Path, text: str) -> None:
    file = tmp_path / "profile.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="geo tune --out writes one"):
        geo("add", str(file))


@pytest.mark.parametrize("words", [[], ["--queries", "q.jsonl", "--qrels", "q.tsv"]])
def test_a_tune_without_its_files_names_the_options(words: list[str], tmp_path: Path) -> None:
    for name in ("q.jsonl", "q.tsv"):
        (tmp_path / name).touch()
    given = [str(tmp_path / w) if "." in w else w for w in words]
    done = CliRunner().invoke(make_cli(), ["tune", *given])
    assert done.exit_code == 2
    assert "--corpus or --collection" in done.stderr


def test_an_unknown_measure_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    file = str(tmp_path / "empty")
    Path(file).touch()
    words = ["--queries", file, "--qrels", file, "--corpus", file, "--measure", "map"]
    done = CliRunner().invoke(make_cli(), ["tune", *words])
    assert isinstance(done.exception, InvalidInput)
    assert "ndcg@10" in done.exception.detail
