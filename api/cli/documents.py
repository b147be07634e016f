"""`geo documents | reprocess`: what stands where, and making documents anew with other choices."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any
from urllib.parse import quote

import typer

from api.cli.http import Service
from api.cli.output import Json, emit, note
from core.errors import TransientError

_POLL_S = 1.0
Collection = Annotated[str, typer.Argument(help="Name or id.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("documents")(documents)
    app.command("reprocess")(reprocess)


def documents(
    collection: Collection = "default",
    status: Annotated[str | None, typer.Option(help="queued, processing, ready, failed or deleting")] = None,
    outdated: Annotated[
        bool | None, typer.Option("--outdated/--current", help="Read with other choices or parsers.")
    ] = None,
    near_duplicates: Annotated[
        bool | None, typer.Option("--near-duplicates/--unique", help="Nearly the same text as another.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List documents with their state."""
    wanted = {
        "collection": collection, "status": status, "outdated": outdated, "near_duplicates": near_duplicates,
        "limit": 200,
    }  # fmt: skip
    found: list[dict[str, Any]] = []
    with Service.of() as service:
        cursor: str | None = None
        while True:
            asked = {k: v for k, v in {**wanted, "cursor": cursor}.items() if v is not None}
            page = service.call("GET", "/v1/documents", params=asked)
            found += page["items"]
            cursor = page["next_cursor"]
            if not cursor:
                break
    if as_json:
        emit({"items": found})
        return
    for document in found:
        print("  ".join(_told(document)))


def _told(document: dict[str, Any]) -> list[str]:
    words = [document["id"], f"{document['status']:10}", document["name"]]
    version, live = document["version"], document["live_version"]
    if document["error"]:
        words.append(f"({document['error']['code']}: {document['error']['detail']})")
    if live and live != version:
        words.append(f"[version {live} is served]")
    if document["outdated"]:
        words.append("[outdated]")
    if near := document["near_duplicates"]:
        words.append(f"[{near[0]['similarity']:.0%} like {near[0]['name']}]")
    return words


def reprocess(
    collection: Collection,
    only: Annotated[str, typer.Option(help="outdated, failed or all")] = "outdated",
    set_choices: Annotated[
        list[str] | None,
        typer.Option("--set", help="Choice of the collection from now on: ocr=off, passage_tokens=200 …"),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Follow it to its end.")] = True,
    cancel: Annotated[bool, typer.Option("--cancel", help="Stop the walk that is under way.")] = False,
    timeout_s: Annotated[float, typer.Option(min=1, help="How long --wait watches.")] = 86_400.0,
    as_json: Json = False,
) -> None:
    """Make a collection's documents anew from their originals, without downtime. Exit 1 if some failed."""
    place = f"/v1/collections/{quote(collection, safe='')}"
    with Service.of() as service:
        if cancel:
            walk = _cancelled(service, place)
        else:
            if set_choices:
                service.call("PATCH", place, json={"parse": dict(_choice(c) for c in set_choices)})
            walk = service.call("POST", f"{place}/reprocess", json={"only": only})
            if wait:
                walk = _followed(service, walk, timeout_s)
    if as_json:
        emit(walk)
    else:
        print(_line(walk))
    if walk["failed"]:
        raise typer.Exit(1)


def _choice(given: str) -> tuple[str, Any]:
    """`name=value`; an empty value gives the choice back to the settings."""
    name, sign, value = given.partition("=")
    if not sign:
        raise typer.BadParameter(f"{given!r} is not NAME=VALUE", param_hint="--set")
    try:
        return name, json.loads(value) if value else None
    except ValueError:
        return name, value


def _followed(service: Service, walk: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """Show progress until the walk ends; stopping to watch does not stop the walk."""
    deadline, shown = time.monotonic() + timeout_s, ""
    while walk["status"] == "running":
        if (line := _line(walk)) != shown:
            note(line)
            shown = line
        if time.monotonic() > deadline:
            raise TransientError(f"the walk goes on after {timeout_s:.0f} s; look again with: geo reprocess")
        time.sleep(_POLL_S)
        walk = service.call("GET", walk["status_url"])
    return walk


def _cancelled(service: Service, place: str) -> dict[str, Any]:
    walks = service.call("GET", f"{place}/reprocess")["items"]
    for walk in walks:
        if walk["status"] == "running":
            return service.call("DELETE", walk["status_url"])
    print("nothing is under way")
    raise typer.Exit(0)


def _line(walk: dict[str, Any]) -> str:
    told = f"{walk['status']}: {walk['done']} of {walk['total']} {walk['only']} documents made anew"
    for count, word in ((walk["failed"], "failed"), (walk["skipped"], "left alone")):
        told += f", {count} {word}" if count else ""
    return told
