"""`/healthz`, `/readyz`, `/metrics`."""

from __future__ import annotations

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from api import health, metrics
from api.deps import AppSettings, Db
from api.health import Readiness

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process runs. Nothing else is looked at, so a slow disk does not get it restarted."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: {"model": Readiness, "description": "A check failed"}})
def readyz(response: Response, db: Db, settings: AppSettings) -> Readiness:
    """Whether requests can be served now; 503 with the failing checks when not."""
    found = health.readiness(db, settings)
    if not found.ready:
        response.status_code = 503
    return found


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def read_metrics(db: Db) -> Response:
    """Prometheus metrics of all processes."""
    return Response(metrics.render(db), media_type=CONTENT_TYPE_PLAIN_0_0_4)
