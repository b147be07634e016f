"""`/v1/admin/recall`: what the recall monitor has seen."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.deps import Db, Operator
from retrieval import service as retrieval
from retrieval.service import RecallReport

router = APIRouter(prefix="/v1/admin/recall", tags=["admin"])


@router.get("")
def read_recall(
    scope: Operator,
    db: Db,
    hours: Annotated[float, Query(gt=0, le=8760, description="how far back")] = 24.0,
    points: Annotated[int, Query(ge=1, le=500, description="stretches that the time is cut into")] = 60,
) -> RecallReport:
    """Recall@10 of sampled live questions against exact search, per tier and over time."""
    with db.read() as session:
        return retrieval.recall_report(session, scope, hours=hours, points=points)
