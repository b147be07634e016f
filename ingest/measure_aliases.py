"""`geo eval entities --aliases`: names of entities, half of them known, found again however they are written.

Of each entity a half of the aliases, chosen by hash, and its main names are the catalogue. Every known alias
is then looked up as somebody else writes it (case, width, script, accents, punctuation), every unknown one
as it is, and names that must resolve to nothing are looked up with fuzzy matching on.
"""

from __future__ import annotations

import hashlib
import json
import string
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import regex

from core.errors import InvalidInput
from core.measured import machine, versions
from core.types import Span
from ingest.catalogue import Alias, Catalogue, CatalogueEntity, alias_key
from ingest.disambiguate import Context, link
from ingest.name_forms import without_accents
from ingest.values import Mention

FAIL = "FAIL"
"""Id of the names that must resolve to nothing."""
_HAN = regex.compile(r"\p{Han}")
_WIDE = {ord(c): ord(c) + 0xFEE0 for c in string.ascii_letters + string.digits}
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class AliasSet:
    """One entity: its id, its main names and all its other ones."""

    id: str
    names: tuple[str, ...]
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AliasCase:
    """One name to look up. `form` is `known`, `variant` (of a known one), `unknown` or `fail`."""

    entity_id: str
    surface: str
    form: str

    @property
    def fails(self) -> bool:
        """Whether it must resolve to nothing."""
        return self.form == "fail"

    @property
    def lang(self) -> str:
        """`zh` for names in Han characters, `en` for all others."""
        return "zh" if _HAN.search(self.surface) else "en"


def read_alias_sets(path: Path) -> list[AliasSet]:
    """Entities of JSON lines: `{id, aliases}` or `{geonameid, name, zh, latin}`."""
    sets: list[AliasSet] = []
    for line in path.read_text("utf-8").splitlines():
        if not line.strip():
            continue
        row = json.loads(line)
        if "aliases" in row and "id" in row:
            names = [row["name"]] if row.get("name") else row["aliases"][:0]
            sets.append(AliasSet(str(row["id"]), tuple(names), tuple(dict.fromkeys(row["aliases"]))))
        elif "geonameid" in row:
            names = [row["name"], *row["zh"][:1]]
            others = [a for a in (*row["zh"], *row["latin"]) if a not in names]
            sets.append(AliasSet(str(row["geonameid"]), tuple(names), tuple(dict.fromkeys(others))))
        else:
            raise InvalidInput(f"{path.name}: a row has neither id and aliases nor geonameid.")
    if not sets:
        raise InvalidInput(f"{path.name} holds no names.")
    return sets


def alias_cases(sets: Sequence[AliasSet]) -> tuple[Catalogue, list[AliasCase]]:
    """The catalogue of one half of the names, and every case in a fixed order."""
    entities: list[CatalogueEntity] = []
    aliases: list[Alias] = []
    cases: list[AliasCase] = []
    for one in sets:
        if one.id == FAIL:
            cases.extend(AliasCase(FAIL, name, "fail") for name in (*one.names, *one.aliases))
            continue
        seen = [a for a in one.aliases if _first_half(one.id, a)]
        known = list(dict.fromkeys((*one.names, *seen)))
        entities.append(CatalogueEntity(one.id, "", known[0] if known else one.id))
        aliases.extend(Alias(one.id, alias_key(a), a) for a in known if alias_key(a))
        for name in known:
            cases.append(AliasCase(one.id, name, "known"))
            cases.extend(AliasCase(one.id, written, "variant") for written in variants(name))
        cases.extend(AliasCase(one.id, a, "unknown") for a in one.aliases if a not in known)
    catalogue = Catalogue.build(entities, aliases)
    return catalogue, _without_shared(cases)


def variants(name: str) -> list[str]:
    """The name as others write it: case, width, script, accents, punctuation; without the name itself."""
    forms = [
        name.upper(),
        name.lower(),
        name.translate(_WIDE),
        without_accents(name),
        name.replace("-", " "),
        name.replace(" ", "-") if not _HAN.search(name) else name,
        name.replace("'", "\u2019"),
        name.replace(".", ""),
        f"{name[: len(name) // 2]}\u200b{name[len(name) // 2 :]}",
    ]
    if _HAN.search(name):
        forms += [_converted(name, table) for table in ("s2t", "t2s")]
    return [form for form in dict.fromkeys(forms) if form != name and form.strip()]


def _converted(name: str, table: str) -> str:
    return str(_converter(table).convert(name))


@lru_cache(maxsize=2)
def _converter(table: str) -> Any:
    import opencc

    return opencc.OpenCC(table)


def eval_aliases(
    files: Sequence[Path], *, threshold: float = 0.5, progress: Progress | None = None
) -> dict[str, Any]:
    """Measure each file of names.

    Args:
        files: JSON lines, as `read_alias_sets` takes them.
        threshold: of the product: below it a name stays unlinked.
        progress: called as `progress(done, total)` after each thousand names.

    Returns:
        Per file and language: `variants` and `known` right (a name that several entities have counts for each
        of them), `unknown_right`, `unknown_wrong`, `fail_linked`, with counts. `limit` is what is wanted.
    """
    started, count = time.perf_counter(), 0
    by_file: dict[str, Any] = {}
    for file in files:
        catalogue, cases = alias_cases(read_alias_sets(file))
        tallies: dict[tuple[str, str], list[bool]] = defaultdict(list)
        for number, case in enumerate(cases, 1):
            found = _resolve(case.surface, catalogue, threshold)
            _count(case, found, catalogue, tallies)
            if progress is not None and (number % 1000 == 0 or number == len(cases)):
                progress(number, len(cases))
        count += len(cases)
        by_file[file.stem] = {lang: _figures(tallies, lang) for lang in ("zh", "en")}
    return {
        "by_file": by_file,
        "machine": machine(),
        "versions": versions("rapidfuzz"),
        "seed": 0,
        "sizes": {"names": count},
        "names_per_s": round(count / max(1e-9, time.perf_counter() - started), 1),
        "threshold": threshold,
        "peer": None,
        "limit": {"variants": 0.98, "fail_linked": 0},
    }


def _first_half(entity_id: str, alias: str) -> bool:
    return hashlib.sha256(f"{entity_id}\0{alias}".encode()).digest()[0] % 2 == 0


def _without_shared(cases: Iterable[AliasCase]) -> list[AliasCase]:
    """Without unknown names that are a known name of another entity: nobody could know better."""
    listed = list(cases)
    known = {alias_key(c.surface) for c in listed if c.form == "known"}
    return [c for c in listed if c.form != "unknown" or alias_key(c.surface) not in known]


def _resolve(surface: str, catalogue: Catalogue, threshold: float) -> str | None:
    mention = Mention(1, Span(0, len(surface)), surface, "")
    found = link([mention], {1: Context("")}, catalogue, document_id="", threshold=threshold)
    return found[0].entity_id


def _count(
    case: AliasCase,
    found: str | None,
    catalogue: Catalogue,
    tallies: dict[tuple[str, str], list[bool]],
) -> None:
    if case.fails:
        tallies[case.lang, "fail_linked"].append(found is not None)
    elif case.form == "unknown":
        tallies[case.lang, "unknown_right"].append(found == case.entity_id)
        tallies[case.lang, "unknown_wrong"].append(found not in (None, case.entity_id))
    else:
        several = len(catalogue.readings(case.surface)) > 1
        tallies[case.lang, case.form].append(found == case.entity_id)
        if not several:
            tallies[case.lang, f"{case.form}_of_one"].append(found == case.entity_id)


def _figures(tallies: dict[tuple[str, str], list[bool]], lang: str) -> dict[str, Any]:
    def share(form: str) -> float | None:
        values = tallies.get((lang, form), [])
        return round(sum(values) / len(values), 4) if values else None

    names = _names()
    counts = {
        form: len(tallies.get((lang, form), []))
        for form in ("known", "variant", "unknown_right", "fail_linked")
    }
    return {**{name: share(form) for name, form in names}, "n": counts}


def _names() -> Iterator[tuple[str, str]]:
    yield "known", "known"
    yield "variants", "variant"
    yield "variants_of_one", "variant_of_one"
    yield "unknown_right", "unknown_right"
    yield "unknown_wrong", "unknown_wrong"
    yield "fail_linked", "fail_linked"
