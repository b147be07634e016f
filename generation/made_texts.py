"""Words of the made texts that benchmarks ask about."""

from __future__ import annotations

WORDS = (
    "pump", "house", "river", "gate", "level", "keeper", "door", "bridge",
    "water", "north", "morning", "book", "stone", "green", "old",
)  # fmt: skip
CHARACTERS = "水泵站河道闸门水位看守桥梁北方清晨记录石绿旧年月日高低清洗检查更换"
