"""`/v1/admin/jobs`."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query
from redis.exceptions import RedisError

from api import audit, jobs
from api.deps import Cursor, Db, Limit, Operator
from api.jobs import Job
from api.paging import cut, decode_cursor
from api.schemas.common import Listed, PathId
from core import streams
from core.redis_client import get_redis
from core.types import JobStatus
from core.worker import Task

router = APIRouter(prefix="/v1/admin/jobs", tags=["admin"])


@router.get("")
def list_jobs(
    _scope: Operator,
    db: Db,
    status: JobStatus | None = None,
    task: Task | None = None,
    queue: Annotated[str | None, Query(max_length=20)] = None,
    subject_id: Annotated[str | None, Query(max_length=40, description="document, query or build")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Listed[Job]:
    """Jobs of all tenants, newest first."""
    with db.read() as session:
        found = jobs.list_jobs(
            session,
            status=status,
            task=task.value if task else None,
            queue=queue,
            subject_id=subject_id,
            before=decode_cursor(cursor),
            limit=limit + 1,
        )
    page, next_cursor = cut(found, limit)
    return Listed(items=page, next_cursor=next_cursor)


@router.post("/{job_id}/retry", status_code=202)
def retry_job(job_id: PathId, scope: Operator, db: Db) -> Job:
    """Give a failed job another set of attempts."""
    with db.write() as session:
        job = jobs.retry(session, job_id)
        if job.subject_kind == "query":
            _drop_stream(job.subject_id)
        audit.record(session, scope, "job.retry", job.id, task=job.task, of=job.subject_id)
    return job


def _drop_stream(query_id: str) -> None:
    """The old stream ends in `done`; without it a follower is served from the stored state meanwhile."""
    with suppress(RedisError):  # it vanishes by its time to live
        streams.drop(get_redis(), query_id)
