"""`geo up | down | status | serve`: the embedded stack and the API process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from importlib import import_module
from typing import Annotated, Any

import typer

from api.cli.metric_files import name_metric_files
from api.cli.output import Json, emit, note
from core.errors import ConfigError, GeoError, TransientError
from core.settings import Settings, get_settings

_READY_WITHIN_S = 300.0
_DOWN_WITHIN_S = 60.0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("up")(up)
    app.command("down")(down)
    app.command("status")(status)
    app.command("serve")(serve)


def up(
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when everything is ready.")] = False,
    as_json: Json = False,
    prepared: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Start Redis, the workers and the API for this data folder, and keep them running.

    The first start fetches the model packs, makes the database, and prints the first operator key once.
    """
    from api.cli.embedded.state import prepare_folders, stack_lock
    from core.logs import configure_logs

    _settle_port()
    settings = get_settings()
    prepare_folders(settings)
    with stack_lock(settings):
        key = None if prepared else _prepare(settings)
        if key is not None:
            note(f"\nFirst operator key (shown once, store it now): {key}\n")
        if not detach:
            from api.cli.embedded.supervisor import Supervisor

            configure_logs(settings.log, process="supervisor")
            shutil.rmtree(settings.run_dir / "metrics", ignore_errors=True)
            (settings.run_dir / "metrics").mkdir()
            Supervisor(settings, note).run()
            return
    state = _detach(settings)
    if as_json:
        emit({**state, "first_operator_key": key})
    else:
        print(f"geo is ready at {state['url']} (pid {state['pid']}); stop it with: geo down")


def _settle_port() -> None:
    """Port 0 means any free one; every process of the stack must know the same."""
    settings = get_settings()
    if settings.api.port == 0:
        with socket.socket() as probe:
            probe.bind((settings.api.host, 0))
            os.environ["GEO_API__PORT"] = str(probe.getsockname()[1])
        get_settings.cache_clear()


def _prepare(settings: Settings) -> str | None:
    """Check the machine, fetch packs, migrate; returns the first operator key when one was made."""
    from api.cli.embedded import preflight
    from api.cli.models import configured_packs
    from api.keys import ensure_bootstrap
    from core.db import Database
    from core.packs import pack_path
    from migrations.run import upgrade

    preflight.check(settings)
    missing: list[str] = []
    for pack_id in configured_packs():
        try:
            pack_path(pack_id)
        except ConfigError:
            missing.append(pack_id)
    if missing:  # in a process of its own, so that its libraries do not stay in this one
        command = [sys.executable, "-m", "api.cli", "models", "fetch", *missing]
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
            raise TransientError(f"could not fetch {', '.join(missing)}; see above")
    db = Database(settings.database_url, settings=settings)
    try:
        upgrade(db)
        return ensure_bootstrap(db, settings)
    finally:
        db.dispose()


def _detach(settings: Settings) -> dict[str, Any]:
    """Start the supervisor in a session of its own; returns its state once all is ready."""
    from api.cli.embedded.state import log_dir, read_state

    log_path = log_dir(settings) / "supervisor.log"
    with log_path.open("ab") as sink:
        child = subprocess.Popen(
            [sys.executable, "-m", "api.cli", "up", "--prepared"],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env={**os.environ, "GEO_DATA_DIR": str(settings.root)},
            start_new_session=True,
        )
    deadline = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < deadline:
        state = read_state(settings)
        if child.poll() is not None:
            tail = log_path.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise GeoError(f"the stack ended while starting:\n{tail}")
        if state.get("pid") == child.pid:
            if state["state"] == "ready":
                return state
            looping = [p for p in state["processes"] if p["state"] == "crash_loop"]
            if looping:
                child.terminate()
                child.wait(_DOWN_WITHIN_S)
                raise GeoError(
                    "; ".join(f"{p['name']} keeps ending, see {p['log']}" for p in looping)
                    + "; stopped again"
                )
        time.sleep(0.1)
    waiting = [p["name"] for p in read_state(settings).get("processes", []) if p["state"] != "ready"]
    raise TransientError(
        f"not ready after {_READY_WITHIN_S:.0f} s: {', '.join(waiting)}; it goes on starting, see geo status"
    )


def down(as_json: Json = False) -> None:
    """Stop the stack of this data folder: the API first, then the workers, then Redis."""
    from api.cli.embedded.state import is_running, read_state

    settings = get_settings()
    pid = read_state(settings).get("pid")
    if not is_running(settings) or pid is None:
        _report_down(as_json, stopped=False)
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _DOWN_WITHIN_S
    while is_running(settings):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)  # its guard ends the rest
            raise GeoError(f"the stack (pid {pid}) did not stop within {_DOWN_WITHIN_S:.0f} s and was killed")
        time.sleep(0.1)
    _report_down(as_json, stopped=True)


def _report_down(as_json: bool, *, stopped: bool) -> None:
    if as_json:
        emit({"stopped": stopped})
    else:
        print("stopped" if stopped else "nothing is running for this data folder")


def status(as_json: Json = False) -> None:
    """Show processes with their memory, queues, jobs, the engine and the index tiers."""
    from api.cli.embedded.status import gather, render

    seen = gather(get_settings())
    if as_json:
        emit(seen)
    else:
        print(render(seen))
    if not seen["running"]:
        raise typer.Exit(3)


def serve() -> None:
    """Run the API process alone (server mode; workers, Redis and database run elsewhere)."""
    import uvicorn

    from core.logs import configure_logs
    from core.steady import answer_evenly

    settings = get_settings()
    name_metric_files("api")
    configure_logs(settings.log, process="api")
    _allow_many_streams()
    import_module("api.app")  # what is loaded before it is left out of the collector's rounds
    answer_evenly()
    uvicorn.run(
        "api.app:create_app",
        factory=True,
        host=settings.api.host,
        port=settings.api.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application decides whose X-Forwarded-For it believes
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=64 * 1024,
    )


def _allow_many_streams() -> None:
    """Take as many open files as the system allows: each event stream has two, and 1,024 is a usual limit."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
