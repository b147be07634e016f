"""Decisions are referred to by number, so every number names one file, and its heading says the same."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))


def test_every_decision_has_a_number_of_its_own():
    numbers = Counter(file.name[:4] for file in DECISIONS)
    assert [number for number, count in numbers.items() if count > 1] == []


def test_headings_give_the_number_of_the_file():
    for file in DECISIONS:
        heading = file.read_text(encoding="utf-8").partition("\n")[0]
        number = re.match(r"# 0*(\d+)\.? ", heading)
        assert number, f"{file.name}: {heading}"
        assert int(number[1]) == int(file.name[:4]), f"{file.name}: {heading}"


def test_decisions_that_are_referred_to_exist():
    known = {int(file.name[:4]) for file in DECISIONS}
    places = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for package in ("core", "ingest", "retrieval", "generation", "api"):
        places += (ROOT / package).rglob("*.py")
    for place in places:
        for number in re.findall(r"ADRs? (\d{4})", place.read_text(encoding="utf-8")):
            assert int(number) in known, f"{place.relative_to(ROOT)} refers to ADR {number}"
