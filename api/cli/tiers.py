"""`geo tiers`: what the index serves, builds, moves of documents and recall, for operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import quote

import typer

from api.cli import tier_builds
from api.cli.http import Service
from api.cli.output import Json, emit, note

tiers_app = typer.Typer(help="Index tiers: builds, moves of documents, recall.", no_args_is_help=True)

_RULE = "▁▂▃▄▅▆▇█"


def register(app: typer.Typer) -> None:
    """Add the group to the command line."""
    tier_builds.add_to(tiers_app)
    app.add_typer(tiers_app, name="tiers")


@tiers_app.command("list")
def list_tiers(as_json: Json = False) -> None:
    """What each tier serves. Exit 1 when one is refused."""
    with Service.of() as service:
        found = service.call("GET", "/v1/admin/tiers")
    if as_json:
        emit(found)
    else:
        for tier in found["items"]:
            print(_tier_line(tier))
    if any(tier["status"] == "refused" for tier in found["items"]):
        raise typer.Exit(1)


def _tier_line(tier: dict[str, Any]) -> str:
    words = [f"{tier['tier']:<8}{tier['status']:<9}{tier['vectors']:>10,} vectors"]
    size = tier.get("bytes")
    if size:
        each = f" ({size / tier['vectors']:,.0f} B each)" if tier["vectors"] else ""
        words.append(f"{size / 1e6:,.1f} MB{each}")
    if tier["segments"]:
        words.append(f"{tier['segments']} segments")
    words.append(f"generation {tier['generation']}")
    for name, told in (("pending", "{} not searchable yet"), ("moving", "{} documents moving in")):
        if tier.get(name):
            words.append(told.format(tier[name]))
    if tier.get("recall") is not None:
        words.append(f"recall@10 {tier['recall']:.3f}")
    if tier.get("effort", 1.0) != 1.0:
        words.append(f"effort ×{tier['effort']:g}")
    if tier["open_build"]:
        words.append(f"build {tier['open_build']}")
    if tier["refused"]:
        words.append(f"refused: {tier['refused']}")
    return "  ".join(words)


# -- placement ---------------------------------------------------------------------------------


@tiers_app.command("place")
def place(
    target: Annotated[str, typer.Argument(help="A collection (id or name), a document id, or all.")],
    tier: Annotated[str, typer.Argument(help="hot, warm, cold, or auto: as use and age decide.")] = "auto",
    dry_run: Annotated[bool, typer.Option(help="Change nothing, tell what would move.")] = False,
    as_json: Json = False,
) -> None:
    """Move a collection or a document and keep it there, or let use and age decide again."""
    body = {"target": None if target == "all" else target, "tier": tier, "dry_run": dry_run}
    with Service.of() as service:
        placing = service.call("POST", "/v1/admin/placement", json=body)
    if as_json:
        emit(placing)
        return
    for move in placing["moves"]:
        print(f"{_route(move)}  {_why(move)}  {move['document_id']}  {move['document_name']}")
    verb = "would move" if placing["dry_run"] else "are on their way"
    print(f"{placing['documents']} documents, {placing['vectors']} vectors {verb}{_others(placing)}")


def _others(placing: dict[str, Any]) -> str:
    return f"; {placing['others']} others then have to make room" if placing["others"] else ""


@tiers_app.command("policy")
def policy(
    collection: Annotated[str, typer.Argument(help="Name or id.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="hot_days=30, hot_uses=2, warm_days=180, warm_uses=0.25 or pinned=cold."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show when documents of a collection change tiers, or change that: a new version."""
    path = f"/v1/admin/placement/{quote(collection, safe='')}"
    with Service.of() as service:
        found = service.call("GET", path)
        if set_:
            changed = {**found["policy"], **dict(_choice(one) for one in set_)}
            found = service.call("PUT", path, json=changed)
    if as_json:
        emit(found)
        return
    by = f" by {found['created_by']}" if found["created_by"] else " (the default)"
    print(f"version {found['version']}{by}")
    for name, value in found["policy"].items():
        print(f"  {name} {'-' if value is None else value}")


def _choice(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"write {text}=VALUE", param_hint="--set")
    if name == "pinned":
        return name, None if value in ("", "none", "auto") else value
    try:
        return name, float(value)
    except ValueError as error:
        raise typer.BadParameter(f"{name} takes a number, not {value}", param_hint="--set") from error


@tiers_app.command("moves")
def list_moves(
    collection: Annotated[str | None, typer.Option(help="Id of a collection.")] = None,
    document: Annotated[str | None, typer.Option(help="Id of a document.")] = None,
    tier: Annotated[str | None, typer.Option(help="Moves from it or to it.")] = None,
    status: Annotated[str | None, typer.Option(help="planned, done, dropped or superseded")] = None,
    reason: Annotated[str | None, typer.Option(help="pinned, new, used, idle or budget")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Moves shown.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: Json = False,
) -> None:
    """Moves of documents between tiers, newest first: who, what, from, to, why."""
    asked = {
        "collection": collection, "document": document, "tier": tier, "status": status, "reason": reason,
        "limit": limit, "cursor": cursor,
    }  # fmt: skip
    with Service.of() as service:
        page = service.call(
            "GET", "/v1/admin/moves", params={k: v for k, v in asked.items() if v is not None}
        )
    if as_json:
        emit(page)
        return
    for move in page["items"]:
        name = move["document_name"] or "(deleted)"
        print(
            f"{move['created_at']}  {_route(move)}  {move['status']:<10}  {_why(move)}  "
            f"by {move['moved_by']}  {move['document_id']}  {name}"
        )
    if page["next_cursor"]:
        note(f"more: --cursor {page['next_cursor']}")


def _route(move: dict[str, Any]) -> str:
    return f"{move['from_tier']:>4} → {move['to_tier']:<4}"


def _why(move: dict[str, Any]) -> str:
    facts = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in move["facts"].items())
    return f"{move['reason']} ({facts})" if facts else move["reason"]


# -- recall ------------------------------------------------------------------------------------


@tiers_app.command("recall")
def recall(
    hours: Annotated[float, typer.Option(min=0.1, max=8760, help="How far back.")] = 24.0,
    as_json: Json = False,
) -> None:
    """Recall@10 of live questions against exact search. Exit 1 when a tier is below the floor."""
    with Service.of() as service:
        report = service.call("GET", "/v1/admin/recall", params={"hours": hours, "points": 40})
    if as_json:
        emit(report)
    else:
        print(f"floor {report['floor']:.2f}, {report['sample_share']:.1%} of all questions are sampled")
        for tier in report["tiers"]:
            print(_recall_line(tier))
    low = [t for t in report["tiers"] if t["mean"] is not None and t["mean"] < report["floor"]]
    if low:
        raise typer.Exit(1)


def _recall_line(tier: dict[str, Any]) -> str:
    if tier["mean"] is None:
        return f"{tier['tier']:<5} no samples"
    drawn = "".join(map(_bar(tier["points"]), tier["points"]))
    return f"{tier['tier']:<5} {tier['mean']:.3f} over {tier['samples']}, effort ×{tier['effort']:g}  {drawn}"


def _bar(points: list[dict[str, Any]]) -> Callable[[dict[str, Any]], str]:
    low = min((p["recall"] for p in points), default=1.0)
    span = max(1e-9, 1.0 - low)
    return lambda p: _RULE[min(len(_RULE) - 1, int((p["recall"] - low) / span * (len(_RULE) - 1)))]
