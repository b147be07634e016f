"""Why engines were lost lately, kept in Redis: the worker that starts the next one tells of it."""

from __future__ import annotations

import json
import logging
import time

from redis.exceptions import RedisError

from core.redis_client import get_redis

log = logging.getLogger(__name__)

_KEY = "geo:engine:losses"
_KEEP, _KEEP_S = 20, 600


def note_loss(why: str) -> None:
    """Keep that an engine was lost (`died` or `hung`) now."""
    try:
        with get_redis().pipeline() as pipe:
            pipe.lpush(_KEY, json.dumps({"why": why, "at": time.time()}))
            pipe.ltrim(_KEY, 0, _KEEP - 1)
            pipe.expire(_KEY, _KEEP_S)
            pipe.execute()
    except RedisError:
        log.warning("engine_loss_not_kept", exc_info=True)


def loss_told() -> str:
    """A sentence about the last loss, for people, or nothing when there was none in the last minutes."""
    try:
        entries = [json.loads(str(e)) for e in get_redis().lrange(_KEY, 0, -1)]
    except RedisError:
        return ""
    recent = [e for e in entries if time.time() - e["at"] < _KEEP_S]
    if not recent:
        return ""
    ago_s = round(time.time() - recent[0]["at"])
    times = f", the {len(recent)}. time within {_KEEP_S // 60} minutes" if len(recent) > 1 else ""
    return f"The engine {recent[0]['why']} {ago_s} s ago{times}; it is starting again."
