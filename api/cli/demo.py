"""`geo demo`: the whole product on the sample documents, from an empty folder to cited answers."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.answers import print_answer
from api.cli.http import Service
from api.cli.output import Json, emit, note
from core.errors import ConfigError, GeoError

_SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
_FORMATS = {".txt", ".md", ".html", ".pdf", ".docx"}
_MARK = ".geo-demo"  # only a folder that the demo made is emptied by it
_READY_WITHIN_S = 180.0
_PARTS = {"start_s": "start", "documents_s": "documents", "questions_s": "questions", "stop_s": "stop"}


@dataclass(slots=True)
class Result:
    """One question with its answer and what is wrong with it."""

    question: dict[str, Any]
    answer: dict[str, Any]
    seconds: float
    faults: list[str] = field(default_factory=list)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    samples: Annotated[Path, typer.Option(help="Folder with documents and questions.json.")] = _SAMPLES,
    folder: Annotated[Path, typer.Option(help="Data folder; emptied at the start.")] = Path(".geo-demo"),
    as_json: Json = False,
) -> None:
    """Upload the sample documents, ask ten questions, show every answer with its citations.

    Exit 1 when a document or a question fails: an answerable question needs the right words and a supported
    citation of the right document, and the unanswerable one must be refused.
    """
    if not (samples / "questions.json").is_file():
        raise ConfigError(f"there are no sample documents in {samples}; run this from a checkout")
    timings: dict[str, float] = {}
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        results = _run(samples, folder.resolve(), timings)
    _report(results, timings, as_json=as_json)
    if any(result.faults for result in results):
        raise typer.Exit(1)


def _run(samples: Path, folder: Path, timings: dict[str, float]) -> list[Result]:
    started = time.monotonic()
    questions = json.loads((samples / "questions.json").read_text(encoding="utf-8"))
    with _stack(folder, timings) as service:
        since = time.monotonic()
        _upload(service, samples)
        timings["documents_s"] = time.monotonic() - since
        since = time.monotonic()
        results = [_ask(service, number, question) for number, question in enumerate(questions, 1)]
        timings["questions_s"] = time.monotonic() - since
    timings["total_s"] = time.monotonic() - started
    return results


@contextmanager
def _stack(folder: Path, timings: dict[str, float]) -> Generator[Service]:
    """A stack of the demo's own: fresh folder, free port, one-time key; stopped at the end."""
    _empty(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    key = "demo-" + secrets.token_urlsafe(24)
    env = {name: value for name, value in os.environ.items() if not _leads_elsewhere(name)}
    env |= {
        "GEO_DATA_DIR": str(folder),
        "GEO_API__HOST": "127.0.0.1",
        "GEO_API__PORT": str(port),
        "GEO_AUTH__BOOTSTRAP_KEY": key,
        "GEO_DATABASE__URL": "",  # a .env file may name a server; the demo must not touch it
        "GEO_REDIS__URL": "",
    }
    note("starting the stack (Redis, five workers, the engine, the API)")
    since = time.monotonic()
    _geo(env, "up", "--detach")
    timings["start_s"] = time.monotonic() - since
    note(f"ready after {timings['start_s']:.0f} s; it is stopped at the end")
    try:
        with Service(f"http://127.0.0.1:{port}", key) as service:
            yield service
    finally:
        since = time.monotonic()
        _geo(env, "down")
        timings["stop_s"] = time.monotonic() - since


def _leads_elsewhere(name: str) -> bool:
    return name.startswith(("GEO_DATABASE__", "GEO_REDIS__", "GEO_API__", "GEO_AUTH__", "GEO_CLIENT__"))


def _empty(folder: Path) -> None:
    if folder.exists():
        if not (folder / _MARK).exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder} was not made by geo demo; choose another with --folder")
        subprocess.run(
            [sys.executable, "-m", "api.cli", "down"],
            env={**os.environ, "GEO_DATA_DIR": str(folder)},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()


def _geo(env: dict[str, str], *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "api.cli", *words], env=env, stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        raise GeoError(f"geo {' '.join(words)} ended with exit code {done.returncode}")


def _upload(service: Service, samples: Path) -> None:
    files = sorted(p for p in samples.iterdir() if p.suffix in _FORMATS)
    note(f"uploading {len(files)} documents")
    collection = service.collection("samples")["id"]
    ids = [service.upload(path, collection)["id"] for path in files]
    documents = service.settle(collection, ids, within_s=_READY_WITHIN_S, watch=_settled)
    failed = [d for d in documents if d["status"] != "ready"]
    if failed:
        told = "; ".join(f"{d['name']}: {(d['error'] or {}).get('detail')}" for d in failed)
        raise GeoError(f"{len(failed)} of {len(documents)} documents failed: {told}")


def _settled(document: dict[str, Any]) -> None:
    """Say once what became of a document."""
    if document["status"] in ("ready", "failed"):
        counts = ", ".join(f"{n} {what}" for what, n in document["counts"].items())
        note(f"  {document['status']:<8}{document['name']}  ({counts})")


def _ask(service: Service, number: int, question: dict[str, Any]) -> Result:
    body = {
        "question": question["question"],
        "collection": "samples",
        "policy": {"mode": question["mode"]},
    }
    since = time.monotonic()
    answer = service.ask(body, lambda _event, _payload: None)
    result = Result(question, answer, time.monotonic() - since)
    result.faults = judge(question, answer)
    print(f"\n{number}. {question['question']}   [{question['lang']}, {question['mode']}]")
    print_answer(answer)
    verdict = "ok" if not result.faults else "FAILED: " + "; ".join(result.faults)
    print(f"    {verdict} in {result.seconds:.2f} s")
    return result


def judge(question: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """What is wrong with an answer; empty when it is as it should be."""
    if not question["answerable"]:
        return (
            [] if answer["status"] == "refused" else [f"status {answer['status']}, but no document holds it"]
        )
    if answer["status"] != "answered":
        return [f"status {answer['status']}: {(answer.get('error') or {}).get('detail', 'no reason given')}"]
    supported = {
        citation["document_name"]
        for claim in answer["claims"]
        if claim["verdict"] == "supported"
        for citation in claim["citations"]
    }
    missing = [name for name in question["expect_document"] if name not in supported]
    faults = [f"no supported citation of {', '.join(missing)}"] if missing else []
    said = " ".join(claim["text"] for claim in answer["claims"])
    unsaid = [text for text in question["expect_text"] if text not in said]
    return faults + ([f"the answer does not say {', '.join(unsaid)}"] if unsaid else [])


def _report(results: list[Result], timings: dict[str, float], *, as_json: bool) -> None:
    good = sum(1 for result in results if not result.faults)
    rounded = {name: round(seconds, 2) for name, seconds in timings.items()}
    if as_json:
        items = [
            {"question": r.question, "answer": r.answer, "seconds": round(r.seconds, 3), "faults": r.faults}
            for r in results
        ]
        emit(
            {
                "ok": good == len(results),
                "passed": good,
                "n": len(results),
                "timings": rounded,
                "items": items,
            }
        )
    else:
        parts = ", ".join(f"{_PARTS[name]} {s:.0f} s" for name, s in timings.items() if name in _PARTS)
        print(f"\n{good} of {len(results)} questions as expected in {timings['total_s']:.0f} s ({parts})")
        if good == len(results):
            print("Next: make up, then upload documents of your own (README.md)")
