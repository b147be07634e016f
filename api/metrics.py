"""`/metrics`: the counters of every process of this data folder, and the queues as the database sees them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from core.db import Database
from core.models import DocumentRow, JobRow, MoveRow, QueryRow


class StoredState(Collector):
    """Jobs, documents and queries by state, counted when asked, so that no process has to keep count."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def collect(self) -> Iterator[Metric]:
        """Count."""
        jobs = GaugeMetricFamily("geo_jobs", "Jobs by queue and status", labels=["queue", "status"])
        documents = GaugeMetricFamily(
            "geo_documents", "Documents by status and error", labels=["status", "error"]
        )
        queries = GaugeMetricFamily("geo_queries", "Queries by status", labels=["status"])
        moves = GaugeMetricFamily("geo_moves_open", "Documents on their way to another tier")
        with self._db.read() as session:
            by_queue = select(JobRow.queue, JobRow.status, func.count()).group_by(JobRow.queue, JobRow.status)
            for queue, status, number in session.execute(by_queue):
                jobs.add_metric([queue, status], number)
            by_error = select(DocumentRow.status, DocumentRow.error_code, func.count())
            for status, error, number in session.execute(
                by_error.group_by(DocumentRow.status, DocumentRow.error_code)
            ):
                documents.add_metric([status, error or ""], number)
            by_status = select(QueryRow.status, func.count()).group_by(QueryRow.status)
            for status, number in session.execute(by_status):
                queries.add_metric([status], number)
            under_way = select(func.count()).select_from(MoveRow).where(MoveRow.open_key.is_not(None))
            moves.add_metric([], session.scalar(under_way) or 0)
        yield from (jobs, documents, queries, moves)


def render(db: Database) -> bytes:
    """Prometheus text. The supervisor sets `PROMETHEUS_MULTIPROC_DIR` so that workers are included."""
    registry = CollectorRegistry()
    registry.register(StoredState(db))
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        MultiProcessCollector(registry)
        return generate_latest(registry)
    return generate_latest(REGISTRY) + generate_latest(registry)
