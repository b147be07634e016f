"""`geo upload | ask | search`: the everyday doors from a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.answers import print_answer
from api.cli.http import Service
from api.cli.output import Json, emit, note
from core.errors import InvalidInput

Collection = Annotated[str, typer.Option("--collection", "-c", help="Name or id.")]
NewCollection = Annotated[str, typer.Option("--collection", "-c", help="Name or id; made if it is new.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("upload")(upload)
    app.command("ask")(ask)
    app.command("search")(search)


def upload(
    paths: Annotated[list[Path], typer.Argument(exists=True, help="Files, or folders of files.")],
    collection: NewCollection = "default",
    wait: Annotated[bool, typer.Option(help="Wait until every document is searchable.")] = True,
    within_s: Annotated[float, typer.Option(min=1, help="Longest wait.")] = 600.0,
    as_json: Json = False,
) -> None:
    """Upload documents and follow them until they are ready. Exit 1 when one fails."""
    files = _files(paths)
    with Service.of() as service:
        target = service.collection(collection)["id"]
        documents = [service.upload(path, target) for path in files]
        if wait:
            ids = [d["id"] for d in documents]
            documents = service.settle(target, ids, within_s=within_s, watch=Progress().show)
    if as_json:
        emit({"items": documents})
    else:
        for path, document in zip(files, documents, strict=True):
            error = document.get("error") or {}
            print(
                f"{document['status']:<11}{document['id']}  {path.name}  {error.get('detail', '')}".rstrip()
            )
    if any(d["status"] == "failed" for d in documents):
        raise typer.Exit(1)


def _files(paths: list[Path]) -> list[Path]:
    found = [
        file
        for path in paths
        for file in (sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path])
        if not file.name.startswith(".")
    ]
    if not found:
        raise InvalidInput("there is no file in " + ", ".join(str(p) for p in paths))
    return found


class Progress:
    """Says each new stage of each document once."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[str, str | None]] = {}

    def show(self, document: dict[str, Any]) -> None:
        """Tell about a document's state if it is new."""
        state = (document["status"], document.get("stage"))
        if self._told.get(document["id"]) != state:
            self._told[document["id"]] = state
            note(f"  {document['name']}: {' '.join(part for part in state if part)}")


def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    collection: Collection = "default",
    mode: Annotated[str | None, typer.Option(help="extract, quote or free; default: the policy's.")] = None,
    as_json: Json = False,
) -> None:
    """Ask, and print the answer with its citations. Exit 1 unless it is answered or refused."""
    body: dict[str, Any] = {"question": question, "collection": collection}
    if mode:
        body["policy"] = {"mode": mode}
    with Service.of() as service:
        answer = service.ask(body, _show if sys.stderr.isatty() and not as_json else _silent)
    if as_json:
        emit(answer)
    else:
        print_answer(answer)
    if answer["status"] not in ("answered", "refused"):
        raise typer.Exit(1)


def _show(event: str, payload: dict[str, Any]) -> None:
    """Provisional text for a person who waits; the stored answer is printed after it."""
    if event == "delta":
        sys.stderr.write(payload["text"])
        sys.stderr.flush()
    elif event == "done":
        sys.stderr.write("\n")


def _silent(_event: str, _payload: dict[str, Any]) -> None:
    pass


def search(
    question: Annotated[str, typer.Argument(help="The question.")],
    collection: Collection = "default",
    top_k: Annotated[int, typer.Option(min=1, max=1000, help="Passages shown.")] = 5,
    explain: Annotated[bool, typer.Option(help="Show what each route found.")] = False,
    as_json: Json = False,
) -> None:
    """Find passages without generating an answer. Exit 1 when nothing is found."""
    with Service.of() as service:
        found = service.call(
            "POST",
            "/v1/search",
            json={"question": question, "collection": collection, "top_k": top_k, "explain": explain},
        )
    if as_json:
        emit(found)
    else:
        for hit in found["hits"]:
            routes = ", ".join(f"{r['route']} #{r['rank']}" for r in hit["routes"])
            print(f"{hit['rank']}. {hit['document_name']}  score {hit['score']:.3f}  ({routes})")
            print(f"   {' '.join(hit['text'].split())[:300]}")
    if not found["hits"]:
        raise typer.Exit(1)
