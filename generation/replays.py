"""Answer a question again, on what it was answered from or on today's index, and compare the two answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

from sqlalchemy import String, bindparam, insert, select
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import InvalidInput
from core.ids import new_id
from core.jobs import add_job
from core.models import EvidenceRow, QueryRow
from core.settings import get_settings
from core.types import AnswerStatus, Scope
from core.worker import Task
from generation import repository
from generation.admitting import Admitted, admit
from generation.policy import parse_policy
from generation.replay import compare
from retrieval.service import submit_query
from retrieval.variants import variants_of

From = Literal["stored", "fresh"]


def replay(session: Session, scope: Scope, query_id: str, *, evidence: From = "fresh") -> str:
    """Ask the same question again with the same options and effective policy.

    Args:
        session: an open `Database.write()` session.
        scope: who asks.
        query_id: the query to repeat.
        evidence: `fresh` retrieves anew on today's index, with the variants of the old search; `stored`
            answers from the passages, versions, scores and order that the old answer was given, as far as
            they are still live.

    Returns:
        The new query's id; its `replay_of` names the old one.

    Raises:
        NotFound: the query, or a collection it read, is unknown to this scope.
        InvalidInput: the old query has not ended, or is a search, so there is nothing stored to answer from.
        EngineBusy: the engine has no room for it now; it says when to ask again.
    """
    old = repository.query_row(session, scope, query_id)
    if evidence == "stored" and old.task == "search":
        raise InvalidInput("A search has no answer to repeat; repeat the search itself with evidence=fresh.")
    admitted = admit(
        session,
        get_settings(),
        question=old.question,
        task=old.task,
        policy=parse_policy(old.policy),
        priority=old.priority,
        deadline_s=None,
    )
    if evidence == "fresh":
        return submit_query(
            session,
            scope,
            question=old.question,
            collection_ids=old.collection_ids,
            task=old.task,
            priority=old.priority,
            filters=old.filters,
            options=old.options,
            policy=old.policy,
            policy_version=old.policy_version,
            history=old.history,
            variants=variants_of(old.trace.get("variants", ())),
            rewriting=old.trace.get("rewrite"),
            replay_of=old.id,
            kv_tokens=admitted.kv_tokens,
            deadline_s=admitted.deadline_s,
        )
    if not AnswerStatus(old.status).terminal:
        raise InvalidInput("The query has not ended; only an ended one can be answered from what it stored.")
    new = _copied(old, scope, admitted)
    session.add(new)
    session.flush()
    _copy_evidence(session, old.id, new.id)
    add_job(
        session,
        Task.ANSWER,
        tenant_id=scope.tenant_id,
        subject_kind="query",
        subject_id=new.id,
        gives_way=new.priority == "batch",
    )
    return new.id


def _copied(old: QueryRow, scope: Scope, admitted: Admitted) -> QueryRow:
    kept = {name: value for name, value in old.trace.items() if name != "generation"}
    return QueryRow(
        id=new_id("qry"),
        tenant_id=old.tenant_id,
        principal=scope.principal,
        collection_ids=list(old.collection_ids),
        question=old.question,
        history=list(old.history),
        task=old.task,
        priority=old.priority,
        kv_tokens=admitted.kv_tokens,
        deadline_at=utcnow() + timedelta(seconds=admitted.deadline_s),
        filters=dict(old.filters),
        options=dict(old.options),
        policy=dict(old.policy),
        policy_version=old.policy_version,
        status=AnswerStatus.RUNNING.value,  # as retrieval leaves it
        trace=kept,
        index_generation=old.index_generation,
        replay_of=old.id,
    )


_KEPT = [column for column in EvidenceRow.__table__.c if column.name != "query_id"]
_COPY = insert(EvidenceRow).from_select(
    ["query_id", *(column.name for column in _KEPT)],
    select(bindparam("new_id", type_=String), *_KEPT).where(EvidenceRow.query_id == bindparam("old_id")),
)


def _copy_evidence(session: Session, old_id: str, new_id_: str) -> None:
    session.connection().execute(_COPY, {"old_id": old_id, "new_id": new_id_})


def comparison(session: Session, scope: Scope, query_id: str) -> dict[str, Any]:
    """What a replay has in common with the query it repeats; `reproduced` is None for one that repeats none.

    Raises:
        NotFound: either is unknown to this scope.
        InvalidInput: one of the two has not ended.
    """
    new = repository.answer_view(session, scope, query_id)
    if new.replay_of is None:
        return {"old": None, "new": new.id, "reproduced": None, "same": {}, "differences": []}
    old = repository.answer_view(session, scope, new.replay_of)
    if not (old.status.terminal and new.status.terminal):
        raise InvalidInput("Both queries must have ended.")
    return compare(old, new)
