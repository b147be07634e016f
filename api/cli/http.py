"""A small client of our own doors, for commands that talk to a running service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from core.errors import ConfigError, GeoError, TransientError
from core.settings import Settings, get_settings

_SETTLED = ("ready", "failed")
_POLL_S = 0.5
_PATIENCE = 20  # times that a client waits when it is told to slow down
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


class Service:
    """The HTTP API as its client sees it. A problem document becomes a `GeoError`.

    Args:
        url: base address.
        key: API key.
        timeout_s: for one request.
    """

    def __init__(self, url: str, key: str, *, timeout_s: float = 180.0) -> None:
        self.url = url
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(timeout_s, connect=5),
        )

    @classmethod
    def of(cls, settings: Settings | None = None) -> Service:
        """The service that the settings name, or the embedded stack of this data folder.

        Raises:
            ConfigError: no key is set.
        """
        from api.cli.embedded.state import read_state

        settings = settings or get_settings()
        secret = settings.client.key or settings.auth.bootstrap_key
        if secret is None:
            raise ConfigError(
                "no API key: set GEO_CLIENT__KEY to the key that geo up printed at its first start"
            )
        local = read_state(settings).get("url") or f"http://{settings.api.host}:{settings.api.port}"
        return cls(
            settings.client.url or local, secret.get_secret_value(), timeout_s=settings.client.timeout_s
        )

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, method: str, path: str, **options: Any) -> Any:
        """One request; returns the decoded body.

        Raises:
            TransientError: nothing answers, or the service says to come back later.
            GeoError: any other problem; its detail is the service's own.
        """
        answer = self._request(method, path, **options)
        for _ in range(_PATIENCE):
            if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS or "files" in options:
                break
            time.sleep(max(0.2, float(answer.headers.get("Retry-After", 1))))
            answer = self._request(method, path, **options)
        if answer.is_success:
            return answer.json() if answer.content else None
        raise _problem(answer)

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise TransientError(f"{self.url} does not answer ({error}); start it with: geo up") from error

    def upload(self, path: Path, collection: str) -> dict[str, Any]:
        """Send one file; returns the document."""
        with path.open("rb") as stream:
            return self.call(
                "POST", "/v1/documents", files={"file": (path.name, stream)}, data={"collection": collection}
            )

    def collection(self, name: str) -> dict[str, Any]:
        """The collection of that name or id, made when there is none."""
        cursor: str | None = None
        while True:
            page = self.call("GET", "/v1/collections", params={"cursor": cursor} if cursor else {})
            for item in page["items"]:
                if name in (item["name"], item["id"]):
                    return item
            cursor = page["next_cursor"]
            if not cursor:
                return self.call("POST", "/v1/collections", json={"name": name})

    def settle(
        self,
        collection: str,
        document_ids: list[str],
        *,
        within_s: float,
        watch: Callable[[dict[str, Any]], None],
    ) -> list[dict[str, Any]]:
        """Wait until every document is ready or failed; `watch` sees each state as it is read.

        Raises:
            TransientError: some are still in work after `within_s`.
        """
        deadline, wanted = time.monotonic() + within_s, set(document_ids)
        settled: dict[str, dict[str, Any]] = {}
        while True:
            for seen in self._documents(collection, wanted - settled.keys()):
                watch(seen)
                if seen["status"] in _SETTLED:
                    settled[seen["id"]] = seen
            left = len(wanted) - len(settled)
            if not left:
                return [settled[document_id] for document_id in document_ids]
            if time.monotonic() > deadline:
                raise TransientError(f"{left} documents are still in work after {within_s:.0f} s")
            time.sleep(_POLL_S)

    def _documents(self, collection: str, wanted: set[str]) -> Iterator[dict[str, Any]]:
        """The wanted documents, read page by page, so that watching many costs few requests."""
        left, cursor = set(wanted), None
        while left:
            params = {"collection": collection, "limit": 100, **({"cursor": cursor} if cursor else {})}
            page = self.call("GET", "/v1/documents", params=params)
            for document in page["items"]:
                if document["id"] in left:
                    left.discard(document["id"])
                    yield document
            cursor = page["next_cursor"]
            if not cursor:
                return

    def ask(self, body: dict[str, Any], on_event: Callable[[str, dict[str, Any]], None]) -> dict[str, Any]:
        """Ask, follow the event stream to its end, and return the stored answer."""
        accepted = self.call("POST", "/v1/queries", json=body)
        self.follow(accepted["events_url"], on_event)
        return self.call("GET", accepted["status_url"])

    def follow(self, events_url: str, on_event: Callable[[str, dict[str, Any]], None]) -> None:
        """Read an event stream to its end."""
        from httpx_sse import connect_sse

        try:
            with connect_sse(self._http, "GET", events_url) as source:
                if not source.response.is_success:
                    source.response.read()
                    raise _problem(source.response)
                for event in source.iter_sse():
                    if event.data:  # a keep-alive reads as an event without data
                        on_event(event.event, event.json())
        except httpx.TransportError as error:
            raise TransientError(f"{self.url} broke off ({error})") from error


def _problem(answer: httpx.Response) -> GeoError:
    try:
        body = answer.json()
    except ValueError:
        body = {}
    detail = body.get("detail") or body.get("title") or answer.text[:300] or answer.reason_phrase
    text = f"{answer.status_code} {body.get('code', '')}: {detail}".replace(" :", ":")
    kind = TransientError if answer.status_code in _TRANSIENT else GeoError
    return kind(text, status=answer.status_code)
