"""The builds of `geo tiers`: rebuild, roll back, pause, resume, cancel, and follow one to its end."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any
from urllib.parse import quote

import typer

from api.cli.http import Service
from api.cli.output import Json, emit, note

TierArgument = Annotated[str, typer.Argument(help="hot, warm, cold, lexical or all")]
BuildId = Annotated[str, typer.Argument(help="The build's id, as geo tiers builds lists it.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Show its progress until it ends.")]

OPEN = ("queued", "running")
_POLL_S = 0.5


def add_to(app: typer.Typer) -> None:
    """Add the commands to the group."""
    for command in (rebuild, rollback, builds, follow, pause, resume, cancel):
        app.command(command.__name__)(command)


def rebuild(
    tier: TierArgument,
    mode: Annotated[str, typer.Option(help="full or compact")] = "full",
    model: Annotated[str | None, typer.Option(help="Another encoder pack, for all tiers together.")] = None,
    accept_moved: Annotated[
        bool, typer.Option(help="Publish although many saved questions find something else first.")
    ] = False,
    follow_it: Follow = False,
    as_json: Json = False,
) -> None:
    """Build the next generation beside the served one; queries do not notice. Exit 1 if it fails."""
    body: dict[str, Any] = {"mode": mode}
    if model:
        body["model"] = model
    if accept_moved:
        body["accept_moved"] = True
    _begin(f"/v1/admin/tiers/{_quoted(tier)}/rebuild", body, follow_it, as_json)


def rollback(
    tier: TierArgument,
    generation: Annotated[int | None, typer.Option(min=1, help="One of those kept.")] = None,
    follow_it: Follow = False,
    as_json: Json = False,
) -> None:
    """Serve an earlier generation again, with everything that came since. Exit 1 if it fails."""
    body = {} if generation is None else {"generation": generation}
    _begin(f"/v1/admin/tiers/{_quoted(tier)}/rollback", body, follow_it, as_json)


def builds(
    limit: Annotated[int, typer.Option(min=1, max=200, help="Builds shown.")] = 20,
    as_json: Json = False,
) -> None:
    """The newest builds, newest first."""
    with Service.of() as service:
        found = service.call("GET", "/v1/admin/builds", params={"limit": limit})
    if as_json:
        emit(found)
        return
    for build in found["items"]:
        print(f"{build['id']}  {build['created_at']}  {_build_line(build)}")


def follow(build_id: BuildId, as_json: Json = False) -> None:
    """Show a build's progress until it ends. Exit 1 unless it is published, or paused."""
    with Service.of() as service:
        _end(_followed(service, build_id), as_json)


def pause(build_id: BuildId, as_json: Json = False) -> None:
    """Stop a build for now; what it has made is kept."""
    _steer(build_id, "pause", as_json)


def resume(build_id: BuildId, follow_it: Follow = False, as_json: Json = False) -> None:
    """Let a paused build go on where it stopped."""
    _steer(build_id, "resume", as_json, to_its_end=follow_it)


def cancel(build_id: BuildId, as_json: Json = False) -> None:
    """Stop a build for good; what is served does not change."""
    _steer(build_id, "cancel", as_json)


def _begin(path: str, body: dict[str, Any], to_its_end: bool, as_json: bool) -> None:
    with Service.of() as service:
        build = service.call("POST", path, json=body)
        _end(_followed(service, build["id"]) if to_its_end else build, as_json)


def _steer(build_id: str, action: str, as_json: bool, *, to_its_end: bool = False) -> None:
    with Service.of() as service:
        build = service.call("POST", f"/v1/admin/builds/{_quoted(build_id)}/{action}")
        _end(_followed(service, build["id"]) if to_its_end else build, as_json)


def _end(build: dict[str, Any], as_json: bool) -> None:
    emit(build) if as_json else print(f"{build['id']}  {_build_line(build)}")
    if build["status"] == "failed":
        raise typer.Exit(1)


def _followed(service: Service, build_id: str) -> dict[str, Any]:
    """Poll until the build stands still; a person sees one line that moves."""
    line = _ProgressLine()
    while True:
        build = service.call("GET", f"/v1/admin/builds/{_quoted(build_id)}")
        if build["status"] not in OPEN:
            line.end()
            return build
        line.show(_build_line(build))
        time.sleep(_POLL_S)


class _ProgressLine:
    """One line on stderr: overwritten on a terminal, printed when it changes elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._told = ""

    def show(self, text: str) -> None:
        if text == self._told:
            return
        self._told = text
        if self._live:
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()
        else:
            note(text)

    def end(self) -> None:
        if self._live and self._told:
            sys.stderr.write("\r\033[K")


def _build_line(build: dict[str, Any]) -> str:
    words = [f"{build['mode']} of {build['tier']}", build["status"]]
    progress = build["progress"]
    if build["status"] in (*OPEN, "paused") and progress["total"]:
        share = progress["done"] / progress["total"]
        words.append(f"{progress['done']:,} of {progress['total']:,} ({share:.0%})")
        if build.get("eta_s") is not None:
            words.append(f"about {_duration(build['eta_s'])} left")
        elif build["stats"].get("step") == "verify":
            words.append("checking recall and saved questions")
    if build["to_generation"]:
        words.append(f"generation {build['to_generation']}")
    if build["error"]:
        words.append(f"{build['error']['code']}: {build['error']['detail']}")
    return "  ".join(words)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _quoted(part: str) -> str:
    return quote(part, safe="")
