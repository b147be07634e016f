"""The server's files name only what exists: commands, variables, ports, metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner as CommandRunner
from prometheus_client.metrics import MetricWrapperBase
from typer.main import get_command
from typer.testing import CliRunner

from api.cli import make_cli
from core import metrics as core_metrics
from core.worker import WORKERS
from scripts.env_example import render, variables

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
OURS = {n: s for n, s in COMPOSE["services"].items() if str(s.get("image", "")).startswith("geo-engine")}
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_compose_has_every_process_of_the_design() -> None:
    assert {f"worker-{name}" for name in WORKERS} | {"api", "migrate"} <= set(OURS)
    assert {"postgres", "redis", "prometheus", "grafana"} <= set(COMPOSE["services"])


@pytest.mark.parametrize("service", sorted(OURS))
def test_compose_command_is_a_geo_command(service: str) -> None:
    words = OURS[service]["command"]
    done = CliRunner().invoke(make_cli(), [*[w for w in words if w not in WORKERS], "--help"])
    assert done.exit_code == 0, done.output
    if words[0] == "worker":
        assert words[1] in WORKERS
    check = OURS[service].get("healthcheck", {}).get("test")
    if check and check[1] == "geo":
        assert check[2:4] == words
        assert check[4] == "--check"


@pytest.mark.parametrize("service", sorted(OURS))
def test_compose_variable_is_a_setting(service: str) -> None:
    known = {name for name, _ in variables()}
    given = [name for name in OURS[service]["environment"] if name.startswith("GEO_")]
    assert given
    assert set(given) <= known


def test_dockerfile_variables_folders_and_targets_exist() -> None:
    known = {name for name, _ in variables()}
    assert set(re.findall(r"GEO_[A-Z_]+", DOCKERFILE)) <= known
    assert {"cpu", "gpu"} <= set(re.findall(r"^FROM \S+ AS (\w+)", DOCKERFILE, re.MULTILINE))
    for line in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((ROOT / name).exists() for name in line.split())


def test_compose_ports_are_on_loopback_and_match_the_api() -> None:
    published = [p for s in COMPOSE["services"].values() for p in s.get("ports", [])]
    assert published
    assert all(p.startswith("127.0.0.1:") for p in published)
    assert OURS["api"]["ports"] == [f"127.0.0.1:8000:{OURS['api']['environment']['GEO_API__PORT']}"]
    scrape = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    assert scrape["scrape_configs"][0]["static_configs"][0]["targets"] == ["api:8000"]


def test_compose_mounts_exist() -> None:
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


def _known_metrics() -> set[str]:
    suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"], "gauge": [""]}
    names = {"up"}
    for value in vars(core_metrics).values():
        if isinstance(value, MetricWrapperBase):
            for family in value.collect():
                names |= {family.name + suffix for suffix in suffixes[family.type]}
    stored = (ROOT / "api" / "metrics.py").read_text()  # counted from the database when asked
    return names | set(re.findall(r'GaugeMetricFamily\(\s*"(\w+)"', stored))


def _expressions() -> list[str]:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
    dashboard = json.loads((ROOT / "deploy/grafana/dashboards/geo.json").read_text())
    return [r["expr"] for g in rules["groups"] for r in g["rules"]] + [
        t["expr"] for p in dashboard["panels"] for t in p["targets"]
    ]


@pytest.mark.parametrize("expression", _expressions())
def test_alerts_and_dashboard_name_metrics_that_exist(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    bare = re.sub(r"\{[^}]*\}|\bby \([^)]*\)", "", expression)
    named = set(re.findall(r"\bgeo_\w+|\bup\b", bare))
    assert named
    assert named <= _known_metrics()


def test_every_alert_says_what_to_do() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    assert all({"summary", "action"} <= set(rule["annotations"]) for rule in rules)


def test_env_example_is_what_the_settings_say() -> None:
    assert (ROOT / ".env.example").read_text() == render()


def test_every_setting_has_help() -> None:
    assert [name for name, field in variables() if not field.description] == []


def test_every_command_has_help_and_json() -> None:
    """`serve` and the interactive parts print no result, so they need no `--json`."""
    runner, app = CommandRunner(), get_command(make_cli())
    without = {"serve", "parse"}

    def walk(command: Any, path: list[str]) -> None:
        for name, child in getattr(command, "commands", {}).items():
            if getattr(child, "commands", None):
                walk(child, [*path, name])
                continue
            shown = runner.invoke(app, [*path, name, "--help"])
            assert shown.exit_code == 0, shown.output
            if not {name, *path} & without:
                assert "--json" in shown.output, [*path, name]
            bare = [p.name for p in child.params if not getattr(p, "hidden", False) and not p.help]
            assert bare == [], [*path, name]

    walk(app, [])
