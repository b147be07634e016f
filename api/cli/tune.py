"""`geo tune`: search a better retrieval profile on judged questions; store, apply and roll back profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from api.cli.http import Service
from api.cli.judged import CORPUS, QRELS, QUERIES, Keep, Limit
from api.cli.output import Json, emit, note
from core.errors import ConfigError

tune_app = typer.Typer(help="Search a better retrieval profile on judged questions.")
profiles_app = typer.Typer(help="Retrieval profiles: list, store, apply, roll back.", no_args_is_help=True)
tune_app.add_typer(profiles_app, name="profiles")

_URL = "/v1/admin/retrieval-profiles"
# What a tune measures; figures that somebody else stores may have less.
_COMPARED = {"n", "present", "tuned", "difference", "ci95", "p"}
_Collection = Annotated[str | None, typer.Option(help="Id or name; without it, the whole tenant.")]


def register(app: typer.Typer) -> None:
    """Add the group to the command line."""
    app.add_typer(tune_app, name="tune")


@tune_app.callback(invoke_without_command=True)
def tune(
    context: typer.Context,
    queries: Annotated[Path | None, QUERIES] = None,
    qrels: Annotated[Path | None, QRELS] = None,
    corpus: Annotated[Path | None, CORPUS] = None,
    collection: Annotated[
        str | None,
        typer.Option(help="Tune on this live collection, and store the result."),
    ] = None,
    keep: Keep = None,
    trials: Annotated[int, typer.Option(min=1, max=10_000, help="Profiles that are tried.")] = 100,
    measure: Annotated[str, typer.Option(help="ndcg@10, mrr@10 or recall@1")] = "ndcg@10",
    seed: Annotated[int, typer.Option(help="Of the profiles that are tried.")] = 0,
    limit: Limit = None,
    out: Annotated[Path | None, typer.Option(dir_okay=False, help="Write profile and figures here.")] = None,
    as_json: Json = False,
) -> None:
    """Try weights and depths on judged questions; what is chosen on two thirds is judged on the rest.

    With --collection the result is stored as the collection's next version, not applied.
    """
    if context.invoked_subcommand is not None:
        return
    if queries is None or qrels is None or (corpus is None) == (collection is None):
        raise typer.BadParameter("name --queries, --qrels and either --corpus or --collection")
    from retrieval.measure import report_progress
    from retrieval.tune_set import Search, tune_on_collection, tune_on_corpus

    search = Search(measure, trials, seed, limit)
    if collection is not None:
        found = tune_on_collection(collection, queries, qrels, search, told=report_progress)
    else:
        assert corpus is not None
        found = tune_on_corpus(corpus, queries, qrels, search, keep=keep, told=report_progress)
    if out is not None:
        out.write_text(json.dumps(found, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    if collection is not None:
        with Service.of() as service:
            stored = service.call("POST", _URL, json={"collection": collection, **found})
        found = {"id": stored["id"], "version": stored["version"], **found}
    if as_json:
        emit(found)
        return
    for name in ("chosen_on", "held_out"):
        print(f"{name:10}{_compared_line(found['figures'][name])}")
    print(json.dumps(found["profile"]))
    if collection is not None:
        print(f"stored as {found['id']}; apply it with: geo tune profiles apply {found['id']}")


@profiles_app.command("list")
def list_profiles(
    limit: Annotated[int, typer.Option(min=1, max=200, help="Versions shown.")] = 20, as_json: Json = False
) -> None:
    """The newest versions, newest first; * is in force."""
    with Service.of() as service:
        found = service.call("GET", _URL, params={"limit": limit})
    if as_json:
        emit(found)
        return
    for one in found["items"]:
        judged = one["figures"].get("held_out") or {}
        words = _compared_line(judged) if set(judged) >= _COMPARED else "not measured"
        where = one["collection_id"] or "tenant"
        print(f"{'*' if one['in_force'] else ' '} {one['id']}  {where}  version {one['version']}  {words}")


@profiles_app.command("add")
def add(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What geo tune --out wrote.")],
    collection: _Collection = None,
    as_json: Json = False,
) -> None:
    """Store a profile as the next version; queries follow it once it is applied."""
    try:
        written: Any = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{file} is no JSON ({error}); geo tune --out writes one.") from error
    if not isinstance(written, dict) or "profile" not in written:
        raise ConfigError(f"{file} holds no profile; geo tune --out writes one, docs/tuning.md shows it.")
    body = {"collection": collection, "profile": written["profile"], "figures": written.get("figures", {})}
    _told("POST", _URL, body, as_json)


@profiles_app.command("apply")
def apply(
    profile_id: Annotated[str, typer.Argument(help="As `geo tune profiles list` shows it.")],
    force: Annotated[bool, typer.Option(help="Although its held-out result is worse.")] = False,
    as_json: Json = False,
) -> None:
    """Let queries follow a profile from the next one on. Exit 1 when its figures speak against it."""
    _told("POST", f"{_URL}/{quote(profile_id, safe='')}/apply", {"force": force}, as_json)


@profiles_app.command("rollback")
def rollback(collection: _Collection = None, as_json: Json = False) -> None:
    """Return to what was in force before the last change."""
    _told("POST", f"{_URL}/rollback", {"collection": collection}, as_json)


def _told(method: str, path: str, body: dict[str, Any], as_json: bool) -> None:
    with Service.of() as service:
        found = service.call(method, path, json=body)
    if as_json:
        emit(found)
    else:
        note(f"{found['id']}  version {found['version']}")


def _compared_line(figures: dict[str, Any]) -> str:
    low, high = figures["ci95"]
    return (
        f"{figures['n']:>5} questions  {figures['present']:.4f} → {figures['tuned']:.4f}"
        f"  ({figures['difference']:+.4f} [{low:+.4f}, {high:+.4f}], p {figures['p']})"
    )
