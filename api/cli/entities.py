"""`geo entities`: the catalogue of people, organisations and things, and what people decide about them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from api.cli.http import Service
from api.cli.output import Json, emit, note

entities_app = typer.Typer(help="Import, find and correct entities.", no_args_is_help=True)
EntityId = Annotated[str, typer.Argument(help="The entity's id.")]
_TYPES = {".csv": "text/csv", ".jsonl": "application/jsonl", ".ndjson": "application/x-ndjson"}


def register(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(entities_app, name="entities")


@entities_app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="JSONL or CSV.")],
    as_json: Json = False,
) -> None:
    """Create or update catalogue entities; documents that have their names are linked anew."""
    kind = _TYPES.get(file.suffix.lower())
    if kind is None:
        raise typer.BadParameter(f"name it {', '.join(_TYPES)}", param_hint="FILE")
    with Service.of() as service, file.open("rb") as stream:
        done = service.call(
            "POST", "/v1/entities/import", content=stream.read(), headers={"Content-Type": kind}
        )
    if as_json:
        emit(done)
    else:
        note(f"{done['created']} created, {done['updated']} updated, {len(done['rejected'])} rejected")
        for rejected in done["rejected"]:
            note(f"row {rejected['row']}: {rejected['reason']}")
    if done["rejected"]:
        raise typer.Exit(1)


@entities_app.command("find")
def find(
    text: Annotated[str, typer.Argument(help="Part of a name.")] = "",
    type: Annotated[str | None, typer.Option(help="PERSON, ORG, GPE …")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Entities shown.")] = 50,
    as_json: Json = False,
) -> None:
    """Find entities by a part of their names, whatever its width, case or script variant."""
    asked = {"q": text or None, "type": type, "limit": limit}
    with Service.of() as service:
        page = service.call("GET", "/v1/entities", params={k: v for k, v in asked.items() if v is not None})
    if as_json:
        emit(page)
        return
    for entity in page["items"]:
        print(_line(entity))


@entities_app.command("show")
def show(entity_id: EntityId, as_json: Json = False) -> None:
    """One entity with its names and what people decided about it."""
    with Service.of() as service:
        entity = service.call("GET", _path(entity_id))
        events = service.call("GET", f"{_path(entity_id)}/events")["items"]
    if as_json:
        emit({**entity, "events": events})
        return
    print(_line(entity))
    for label, value in (
        ("description", entity["description"]),
        ("names", " · ".join(entity["aliases"])),
        ("same as", " ".join(entity["same_as"])),
    ):
        if value:
            print(f"  {label}: {value}")
    for event in events:
        undone = " (undone)" if event["undone"] else ""
        print(f"  {event['at']} {event['action']}{undone} {event['payload']}")


@entities_app.command("pin")
def pin(
    entity_id: EntityId,
    names: Annotated[list[str], typer.Argument(help="Names that always mean this entity.")],
    as_json: Json = False,
) -> None:
    """Let names always mean this entity."""
    _change("PATCH", _path(entity_id), {"pin_aliases": names}, as_json)


@entities_app.command("rename")
def rename(
    entity_id: EntityId,
    name: Annotated[str, typer.Argument(help="The new one.")],
    as_json: Json = False,
) -> None:
    """Give it another name; the old one stays an alias."""
    _change("PATCH", _path(entity_id), {"name": name}, as_json)


@entities_app.command("block")
def block(
    entity_id: EntityId,
    undo: Annotated[bool, typer.Option("--unblock", help="Let it be linked again.")] = False,
    as_json: Json = False,
) -> None:
    """Never link this entity."""
    _change("PATCH", _path(entity_id), {"blocked": not undo}, as_json)


@entities_app.command("merge")
def merge(
    entity_id: EntityId,
    others: Annotated[list[str], typer.Argument(help="Entities that are the same.")],
    as_json: Json = False,
) -> None:
    """Let it stand for others, now and after every re-link."""
    _change("POST", f"{_path(entity_id)}/merge", {"entity_ids": others}, as_json)


@entities_app.command("split")
def split(
    entity_id: EntityId,
    name: Annotated[str, typer.Option(help="Name of the new entity.")],
    document: Annotated[list[str], typer.Option(help="Documents whose mentions mean the new one.")],
    description: Annotated[str, typer.Option(help="What tells it from the other.")] = "",
    as_json: Json = False,
) -> None:
    """Make a second entity out of the mentions in some documents."""
    body = {"name": name, "document_ids": document, "description": description}
    _change("POST", f"{_path(entity_id)}/split", body, as_json)


@entities_app.command("undo")
def undo(entity_id: EntityId, as_json: Json = False) -> None:
    """Take back the newest decision about it."""
    _change("POST", f"{_path(entity_id)}/undo", {}, as_json)


def _change(method: str, path: str, body: dict[str, Any], as_json: bool) -> None:
    with Service.of() as service:
        entity = service.call(method, path, json=body)
    if as_json:
        emit(entity)
    else:
        print(_line(entity))


def _path(entity_id: str) -> str:
    return f"/v1/entities/{quote(entity_id, safe='')}"


def _line(entity: dict[str, Any]) -> str:
    words = [entity["id"], f"{entity['type']:10}", entity["name"], f"({entity['mentions']} mentions)"]
    if entity["blocked"]:
        words.append("[blocked]")
    if entity["merged_into"]:
        words.append(f"[merged into {entity['merged_into']}]")
    return "  ".join(words)
