"""`/v1/admin/engine`."""

from __future__ import annotations

from fastapi import APIRouter

from api.deps import Db, Operator
from generation import service as answers
from generation.values import EngineStatus

router = APIRouter(prefix="/v1/admin/engine", tags=["admin"])


@router.get("")
def engine_status(_scope: Operator, db: Db) -> EngineStatus:
    """State of the generation engine, its plan and its live load."""
    with db.read() as session:
        return answers.engine_status(session)
