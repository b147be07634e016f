from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import InvalidInput
from ingest.measure_aliases import alias_cases, eval_aliases, read_alias_sets, variants


@pytest.fixture
def names(tmp_path: Path) -> Path:
    rows = [
        {"id": "FAIL", "aliases": ["unknown", "abroad", "其他"]},
        {"id": "DE", "name": "Germany", "aliases": ["Germany", "Deutschland", "Allemagne", "德国", "德意志"]},
        {"id": "CI", "name": "Côte d'Ivoire", "aliases": ["Ivory Coast", "Côte-d'Ivoire", "科特迪瓦"]},
        {"id": "KR", "name": "South Korea", "aliases": ["Korea, South", "大韩民国", "韩国", "韓國"]},
    ]
    path = tmp_path / "countries.jsonl"
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
    return path


def test_variants_of_known_names_are_found_and_names_of_nothing_are_not(names: Path) -> None:
    seen: list[tuple[int, int]] = []
    figures = eval_aliases([names], progress=lambda done, total: seen.append((done, total)))
    countries = figures["by_file"]["countries"]
    for lang in ("zh", "en"):
        assert countries[lang]["known"] == 1.0
        assert countries[lang]["variants"] == 1.0
        assert countries[lang]["fail_linked"] == 0.0
    assert countries["en"]["n"]["fail_linked"] == 2
    assert seen[-1][0] == seen[-1][1] == figures["sizes"]["names"]
    assert {"machine", "versions", "seed", "peer", "limit"} <= set(figures)


def test_half_of_the_names_is_unknown_and_always_the_same_half(names: Path) -> None:
    first, again = (alias_cases(read_alias_sets(names))[1] for _ in range(2))
    assert first == again
    forms = {case.form for case in first}
    assert forms == {"known", "variant", "unknown", "fail"}
    known = {c.surface for c in first if c.form == "known"}
    assert {"Germany", "Côte d'Ivoire", "South Korea"} <= known, "the main names are always known"
    assert not known & {c.surface for c in first if c.form == "unknown"}


def test_variants_change_case_width_script_accents_and_punctuation() -> None:
    assert {"CÔTE D'IVOIRE", "Cote d'Ivoire", "Côte d\u2019Ivoire", "Côte-d'Ivoire"} <= set(
        variants("Côte d'Ivoire")
    )
    assert "韓國" in variants("韩国")
    assert "韩国" not in variants("韩国")


def test_cities_are_read_and_other_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cities.jsonl"
    path.write_text(
        '{"geonameid": 1, "name": "Lagos", "zh": ["拉各斯", "拉哥斯"], "latin": ["Eko", "Lagos"]}\n'
    )
    (lagos,) = read_alias_sets(path)
    assert lagos.names == ("Lagos", "拉各斯")
    assert lagos.aliases == ("拉哥斯", "Eko")
    path.write_text('{"name": "Lagos"}\n')
    with pytest.raises(InvalidInput, match="geonameid"):
        read_alias_sets(path)
    path.write_text("\n")
    with pytest.raises(InvalidInput, match="no names"):
        read_alias_sets(path)
