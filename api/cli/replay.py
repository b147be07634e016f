"""`geo replay`: answer a stored question again and tell what came out the same."""

from __future__ import annotations

from typing import Annotated

import typer

from api.cli.http import Service
from api.cli.output import Json, emit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("replay")(replay)


def replay(
    query_id: Annotated[str, typer.Argument(help="The query to repeat.")],
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Retrieve anew instead of using the stored passages.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Repeat a query: evidence, prompt, seed, plan, policy, verdicts. Exit 1 when something differs."""
    with Service.of() as service:
        path = f"/v1/queries/{query_id}/replay?evidence={'fresh' if fresh else 'stored'}"
        accepted = service.call("POST", path)
        service.follow(accepted["events_url"], lambda _name, _payload: None)
        found = service.call("GET", f"{accepted['status_url']}/comparison")
    if as_json:
        emit(found)
    else:
        print(f"{found['old']} → {found['new']}: {'the same' if found['reproduced'] else 'differs'}")
        for name, same in found["same"].items():
            print(f"  {name:10}{'same' if same else 'differs'}")
        for line in found["differences"]:
            print(f"  {line}")
    if not found["reproduced"]:
        raise typer.Exit(1)
