"""A small client of our own doors, for commands that talk to a running service."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from core.errors import ConfigError, GeoError, TransientError
from core.settings import Settings, get_settings

_SETTLED = ("ready", "failed")
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
        try:
            answer = self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise TransientError(f"{self.url} does not answer ({error}); start it with: geo up") from error
        if answer.is_success:
            return answer.json() if answer.content else None
        raise _problem(answer)

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
        self, document_ids: list[str], *, within_s: float, watch: Callable[[dict[str, Any]], None]
    ) -> list[dict[str, Any]]:
        """Wait until every document is ready or failed; `watch` sees each state as it is read.

        Raises:
            TransientError: some are still in work after `within_s`.
        """
        deadline, settled = time.monotonic() + within_s, dict[str, dict[str, Any]]()
        while len(settled) < len(document_ids):
            for document_id in document_ids:
                if document_id in settled:
                    continue
                seen = self.call("GET", f"/v1/documents/{document_id}")
                watch(seen)
                if seen["status"] in _SETTLED:
                    settled[document_id] = seen
            if len(settled) < len(document_ids):
                if time.monotonic() > deadline:
                    left = len(document_ids) - len(settled)
                    raise TransientError(f"{left} documents are still in work after {within_s:.0f} s")
                time.sleep(0.2)
        return [settled[document_id] for document_id in document_ids]

    def ask(self, body: dict[str, Any], on_event: Callable[[str, dict[str, Any]], None]) -> dict[str, Any]:
        """Ask, follow the event stream to its end, and return the stored answer."""
        from httpx_sse import connect_sse

        accepted = self.call("POST", "/v1/queries", json=body)
        try:
            with connect_sse(self._http, "GET", accepted["events_url"]) as source:
                if not source.response.is_success:
                    source.response.read()
                    raise _problem(source.response)
                for event in source.iter_sse():
                    on_event(event.event, event.json())
        except httpx.TransportError as error:
            raise TransientError(f"{self.url} broke off ({error})") from error
        return self.call("GET", accepted["status_url"])


def _problem(answer: httpx.Response) -> GeoError:
    try:
        body = answer.json()
    except ValueError:
        body = {}
    detail = body.get("detail") or body.get("title") or answer.text[:300] or answer.reason_phrase
    text = f"{answer.status_code} {body.get('code', '')}: {detail}".replace(" :", ":")
    kind = TransientError if answer.status_code in _TRANSIENT else GeoError
    return kind(text, status=answer.status_code)
