"""A worker whose rebuild job sleeps and then writes one row; run with SECONDS and VISIBILITY_S."""

from __future__ import annotations

import sys
import time

from core.jobs import JobRun, run_job
from core.models import AuditRow
from core.redis_client import get_redis
from core.worker import Task, get_app


def main(work_s: float, visibility_s: float) -> None:
    app = get_app()
    app.conf.broker_transport_options = {
        **app.conf.broker_transport_options,
        "visibility_timeout": visibility_s,
    }

    def work(run: JobRun) -> None:
        time.sleep(work_s)
        with run.finish() as session:
            session.add(
                AuditRow(tenant_id=run.tenant_id, principal="worker", action="effect", subject=run.subject_id)
            )

    @app.task(name=Task.REBUILD.value)
    def rebuild(job_id: str) -> None:
        get_redis().hincrby("geo:test:deliveries", job_id, 1)
        run_job(job_id, work)

    app.worker_main(
        ["worker", "-Q", "rebuild", "--pool", "threads", "--concurrency", "4", "--loglevel", "WARNING",
         "--without-gossip", "--without-mingle", "--hostname", "jobs@%h"]
    )  # fmt: skip


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]))
