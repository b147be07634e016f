"""Catalogue import: JSONL or CSV rows, each checked by itself; a bad row is reported, the rest is taken."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.models import EntityAliasRow, EntityRow
from core.types import Scope
from ingest import entity_repository as store
from ingest.catalogue import alias_key
from ingest.catalogue_repository import ask_relink
from ingest.entities import RENAME
from ingest.names import clean_text
from ingest.values import EntityImport, RejectedRow

_FIELDS = frozenset({"id", "type", "name", "description", "aliases", "same_as", "lang"})
_MAX_ALIASES = 500
_CHUNK = 500
_WIKIDATA = re.compile(r"Q[1-9]\d*")
IMPORT = "import"


@dataclass(frozen=True, slots=True)
class ImportRow:
    """One checked row. `aliases` holds (alias, language, weight), the name first."""

    external_id: str
    type: str
    name: str
    description: str
    aliases: tuple[tuple[str, str, float], ...]
    same_as: tuple[str, ...]


def import_entities(
    session: Session, scope: Scope, *, lines: Iterable[str], form: Literal["jsonl", "csv"]
) -> EntityImport:
    """Create or update catalogue entities.

    A row has `name`, and may have `id` (the caller's own, for updates), `type`, `description`, `lang`,
    `aliases` (a list of strings or of `{alias, lang, weight}`; in CSV separated by `|`) and `same_as` (URLs).
    Importing a row twice changes nothing; a name that a person changed stays.

    Returns:
        Counts, the rejected rows with reasons, and the entity id of each external id.
    """
    created = updated = 0
    rejected: list[RejectedRow] = []
    ids: dict[str, str] = {}
    chunk: dict[str, ImportRow] = {}

    def flush() -> None:
        nonlocal created, updated
        new = _write(session, scope, chunk)
        created, updated = created + new, updated + len(chunk) - new
        chunk.clear()

    for number, raw in enumerate(_read(lines, form), start=1):
        try:
            row = check_row(raw)
        except ValueError as error:
            rejected.append(RejectedRow(number, str(error)))
            continue
        entity_id = entity_id_of(scope.tenant_id, row)
        ids[row.external_id or row.name] = entity_id
        chunk[entity_id] = row
        if len(chunk) >= _CHUNK:
            flush()
    flush()
    if created or updated:
        event = store.add_event(session, scope, "*", IMPORT, {"created": created, "updated": updated})
        ask_relink(session, scope.tenant_id, f"import:{event.id}")
    return EntityImport(created, updated, tuple(rejected), ids)


def entity_id_of(tenant_id: str, row: ImportRow) -> str:
    """The entity's id: the same for the same external id (or the same type, name and description)."""
    key = row.external_id or "\0".join((row.type, row.name, row.description))
    return "ent_" + hashlib.sha256(f"{tenant_id}\0{key}".encode()).hexdigest()[:26]


def check_row(raw: Mapping[str, Any] | ValueError) -> ImportRow:
    """Validate one row; raises `ValueError` with the reason."""
    if isinstance(raw, ValueError):
        raise raw
    unknown = sorted(set(raw) - _FIELDS)
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}; known are {', '.join(sorted(_FIELDS))}")
    name = _text(raw, "name", 300)
    if not alias_key(name):
        raise ValueError("name is blank")
    external_id = _text(raw, "id", 200)
    same_as = _same_as(raw.get("same_as"), external_id)
    lang = _text(raw, "lang", 8) or "und"
    aliases = [(name, lang, 1.0), *(_alias(a, lang) for a in _list(raw.get("aliases"), "aliases"))]
    if len(aliases) > _MAX_ALIASES:
        raise ValueError(f"more than {_MAX_ALIASES} aliases")
    return ImportRow(
        external_id,
        _text(raw, "type", 40) or "Thing",
        name,
        _text(raw, "description", 4000),
        tuple(aliases),
        same_as,
    )


def _read(lines: Iterable[str], form: str) -> Iterator[Mapping[str, Any] | ValueError]:
    lines = (line.lstrip("\ufeff") if number == 0 else line for number, line in enumerate(lines))
    if form == "csv":
        yield from _read_csv(lines)
        return
    for line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            yield ValueError("not a JSON object")
            continue
        yield value if isinstance(value, dict) else ValueError("not a JSON object")


def _read_csv(lines: Iterator[str]) -> Iterator[Mapping[str, Any] | ValueError]:
    reader = csv.DictReader(lines)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield ValueError(f"not a CSV row: {error}")
            continue
        if None in row:
            yield ValueError("more cells than the header has")
            continue
        fields: dict[str, Any] = {k: v for k, v in row.items() if v}
        for name in ("aliases", "same_as"):
            if name in fields:
                fields[name] = [part for part in str(fields[name]).split("|") if part.strip()]
        yield fields


def _text(raw: Mapping[str, Any], field: str, cap: int) -> str:
    value = raw.get(field)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f"{field} is not text")
    text = " ".join(clean_text(str(value)).split())
    if len(text) > cap:
        raise ValueError(f"{field} is longer than {cap} characters")
    return text


def _list(value: Any, field: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{field} is not a list")
    return value


def _alias(value: Any, lang: str) -> tuple[str, str, float]:
    if isinstance(value, str):
        value = {"alias": value}
    if not isinstance(value, dict):
        raise ValueError("an alias is neither text nor an object")
    alias = _text(value, "alias", 300)
    if not alias_key(alias):
        raise ValueError("an alias is blank")
    weight = value.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight < 1e12:
        raise ValueError("an alias weight is not a positive number")
    return alias, _text(value, "lang", 8) or lang, float(weight)


def _same_as(value: Any, external_id: str) -> tuple[str, ...]:
    urls = [_text({"same_as": v}, "same_as", 500) for v in _list(value, "same_as")]
    if _WIKIDATA.fullmatch(external_id):
        urls.append(f"http://www.wikidata.org/entity/{external_id}")
    for url in urls:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"same_as {url!r} is not an http(s) URL")
    return tuple(dict.fromkeys(urls))


def _write(session: Session, scope: Scope, rows: Mapping[str, ImportRow]) -> int:
    """Insert or update one chunk; returns how many are new."""
    known = {
        r.id: r for r in session.scalars(select(EntityRow).where(EntityRow.id.in_(rows)).with_for_update())
    }
    present = {
        (a.entity_id, a.folded): a
        for a in session.scalars(select(EntityAliasRow).where(EntityAliasRow.entity_id.in_(rows)))
    }
    renamed = (
        {e.entity_id for e in store.active_events(session, scope.tenant_id, [RENAME])}
        if known
        else set[str]()
    )
    for entity_id, row in rows.items():
        entity = known.get(entity_id)
        if entity is None:
            entity = EntityRow(id=entity_id, tenant_id=scope.tenant_id, provenance=IMPORT)
            session.add(entity)
        if entity_id not in renamed:
            entity.name = row.name
        entity.type, entity.description, entity.same_as = row.type, row.description, list(row.same_as)
    session.flush()
    for entity_id, row in rows.items():
        for alias, lang, weight in row.aliases:
            key = (entity_id, alias_key(alias))
            if key in present:
                present[key].weight = max(present[key].weight, weight)
                continue
            present[key] = EntityAliasRow(
                entity_id=entity_id,
                folded=key[1],
                tenant_id=scope.tenant_id,
                alias=alias,
                lang=lang,
                weight=weight,
            )
            session.add(present[key])
    session.flush()
    return len(rows) - len(known)
