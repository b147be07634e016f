"""Cancelled queries, as the worker hears of them: by message at once; the rows are looked at as well."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from redis.client import PubSub
from redis.exceptions import RedisError

from core.redis_client import get_redis
from core.streams import CANCEL_CHANNEL

log = logging.getLogger(__name__)


class CancelWatch:
    """One subscriber thread per worker; calls back when a query that runs here is cancelled."""

    def __init__(self) -> None:
        self._callbacks: dict[str, Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, query_id: str, callback: Callable[[], None]) -> None:
        """Call `callback` (from the watch's thread) when `query_id` is cancelled."""
        with self._lock:
            self._callbacks[query_id] = callback
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._listen, name="cancel-watch", daemon=True)
                self._thread.start()

    def remove(self, query_id: str) -> None:
        """Forget a query."""
        with self._lock:
            self._callbacks.pop(query_id, None)

    def call_all(self) -> None:
        """Call back for every query that runs here (this process is being stopped)."""
        with self._lock:
            callbacks = list(self._callbacks.values())
        for callback in callbacks:
            callback()

    def _listen(self) -> None:
        client = get_redis()  # held: its connections close with it
        while True:
            try:
                with client.pubsub(ignore_subscribe_messages=True) as channel:
                    channel.subscribe(CANCEL_CHANNEL)
                    self._receive(channel)
            except (RedisError, OSError):
                # Rows are looked at as well, so a cancel during an outage is only slower.
                log.warning("cancel_watch_reconnects")
                time.sleep(1.0)

    def _receive(self, channel: PubSub) -> None:
        while True:
            message = channel.get_message(timeout=30.0)
            if message is None:
                continue
            with self._lock:
                callback = self._callbacks.get(str(message["data"]))
            if callback is not None:
                callback()
