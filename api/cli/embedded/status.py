"""What `geo status` shows."""

from __future__ import annotations

import json
import time
from typing import Any

import psutil
import redis
from sqlalchemy import func, select

from api.cli.embedded.state import is_running, read_state
from core.canary import last_seen
from core.db import Database
from core.errors import GeoError
from core.models import DocumentRow, EnginePlanRow, JobRow, TierRow
from core.settings import Settings
from core.worker import WORKERS, waiting_messages
from generation.service import ENGINE_KEY


def gather(settings: Settings) -> dict[str, Any]:
    """Collect the state; parts that do not answer are None."""
    running = is_running(settings)
    state = read_state(settings) if running else {}
    processes = [_with_memory(p) for p in state.get("processes", [])]
    if running and state.get("pid"):
        processes.append(_with_memory({"name": "supervisor", "pid": state["pid"], "state": "ready"}))
    return {
        "running": running,
        "state": state.get("state", "down"),
        "url": state.get("url"),
        "pid": state.get("pid"),
        "data_dir": str(settings.root),
        "redis_url": settings.redis_url,
        "processes": processes,
        "rss_bytes": sum(p["rss_bytes"] for p in processes),
        **_from_broker(settings),
        **_from_database(settings),
    }


def _with_memory(process: dict[str, Any]) -> dict[str, Any]:
    """Add the resident memory of the process and of all its descendants (not of supervised siblings)."""
    total = 0
    pid = process.get("pid")
    try:
        if pid:
            main = psutil.Process(pid)
            family = [main] if process["name"] == "supervisor" else [main, *main.children(recursive=True)]
            total = sum(one.memory_info().rss for one in family)
    except psutil.Error:
        pass
    return {**process, "rss_bytes": total}


def _from_broker(settings: Settings) -> dict[str, Any]:
    client = redis.Redis.from_url(
        settings.redis_url, decode_responses=True, socket_timeout=2, socket_connect_timeout=2
    )
    try:
        queues = {
            queue: waiting_messages(client, queue) for spec in WORKERS.values() for queue in spec.queues
        }
        now = time.time()
        seen = {name: last_seen(client, name) for name in WORKERS}
        engine = client.get(ENGINE_KEY)
        return {
            "queues": queues,
            "seen_s_ago": {n: round(now - at, 1) if at is not None else None for n, at in seen.items()},
            "engine": json.loads(str(engine)) if engine else None,
        }
    except (redis.RedisError, ValueError):
        return {"queues": None, "seen_s_ago": None, "engine": None}
    finally:
        client.close()


def _from_database(settings: Settings) -> dict[str, Any]:
    empty = {"jobs": None, "documents": None, "tiers": None, "engine_plan": None}
    if not settings.database.url and not (settings.root / "geo.sqlite3").exists():
        return empty
    db = Database(settings.database_url, settings=settings)
    try:
        with db.read() as session:
            jobs: dict[str, dict[str, int]] = {}
            for queue, state, count in session.execute(
                select(JobRow.queue, JobRow.status, func.count()).group_by(JobRow.queue, JobRow.status)
            ):
                jobs.setdefault(queue, {})[state] = count
            documents = session.execute(
                select(DocumentRow.status, func.count()).group_by(DocumentRow.status)
            ).tuples()
            tiers = session.scalars(select(TierRow)).all()
            plan = session.scalar(
                select(EnginePlanRow.body).order_by(EnginePlanRow.published_at.desc()).limit(1)
            )
            return {
                "jobs": jobs,
                "documents": dict(documents.all()),
                "tiers": {t.tier: {"generation": t.generation, "model": t.model} for t in tiers},
                "engine_plan": plan,
            }
    except GeoError:
        return empty
    finally:
        db.dispose()


def render(seen: dict[str, Any]) -> str:
    """The same for people."""
    if not seen["running"]:
        return f"not running (data folder {seen['data_dir']}); start it with: geo up"
    lines = [f"{seen['state']} at {seen['url']}   data folder {seen['data_dir']}", ""]
    lines.append(f"{'process':<20}{'pid':>8}  {'state':<11}{'restarts':>8}  {'memory':>9}")
    lines += [
        f"{p['name']:<20}{p.get('pid') or '-':>8}  {p['state']:<11}{p.get('restarts', 0):>8}  "
        f"{p['rss_bytes'] / (1 << 20):>5.0f} MiB"
        for p in seen["processes"]
    ]
    lines.append(f"{'total':<51}{seen['rss_bytes'] / (1 << 20):>5.0f} MiB")
    lines.append("")
    for queue, waiting in (seen["queues"] or {}).items():
        states = ", ".join(f"{n} {s}" for s, n in sorted((seen["jobs"] or {}).get(queue, {}).items()))
        lines.append(f"queue {queue:<10} {waiting} in the broker; jobs: {states or 'none yet'}")
    if seen["engine"]:
        lines.append(f"engine          {seen['engine']['state']} {seen['engine']['detail']}".rstrip())
    for tier, facts in (seen["tiers"] or {}).items():
        lines.append(f"tier {tier:<11} generation {facts['generation']}")
    if seen["documents"]:
        lines.append("documents       " + ", ".join(f"{n} {s}" for s, n in sorted(seen["documents"].items())))
    return "\n".join(lines)
