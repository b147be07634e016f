"""The beat's rounds on a whole installation with the real encoder: questions, uses, moves, recall."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from core.db import utcnow
from core.models import DocumentPlacementRow, DocumentRow, QuestionVectorRow, RecallSampleRow
from core.settings import get_settings
from core.types import Tier
from core.worker import Task
from retrieval import access, recall_round, upkeep
from retrieval.check import IndexCheck, check_index
from retrieval.manifest import IndexFolder
from retrieval.moves import list_moves
from retrieval.placement_service import place
from retrieval.queries import get_search_result, submit_query
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack
from retrieval.tier_status import tier_status

DOCUMENTS = [
    CorpusDocument("pump", "pump", "The cooling pump in hall 4 is serviced every six months."),
    CorpusDocument("gate", "gate", "Visitors register at the east gate and wear a badge."),
    CorpusDocument("水泵", "水泵", "二号厂房的冷却水泵每六个月保养一次。"),
]


@pytest.fixture(scope="module")
def stack(encoder_pack: Path) -> Iterator[ScratchStack]:
    with scratch_stack() as made:
        made.ingest(DOCUMENTS)
        yield made


def search(stack: ScratchStack, question: str) -> list[str]:
    """Corpus ids of the documents found, best first."""
    with stack.db.write() as session:
        query = submit_query(
            session, stack.scope, question=question, collection_ids=[stack.collection_id], task="search"
        )
    stack.run_jobs([Task.RERANK])
    with stack.db.read() as session:
        found = get_search_result(session, stack.scope, query)
    return [stack.corpus_ids[hit.passage.document_id] for hit in found.hits]


def status(stack: ScratchStack) -> dict[str, tuple[int, float | None]]:
    with stack.db.read() as session:
        return {t.tier: (t.vectors, t.recall) for t in tier_status(session) if t.tier in list(Tier)}


def test_questions_are_counted_moved_documents_answer_them_and_recall_is_measured(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEO_RECALL__SAMPLE_SHARE", "1")
    monkeypatch.setattr(recall_round, "_ENOUGH", 1)
    get_settings.cache_clear()
    assert search(stack, "How often is the cooling pump serviced?")[0] == "pump"
    assert search(stack, "冷却水泵多久保养一次？")[0] == "水泵"
    with stack.db.read() as session:
        kept = session.scalars(select(QuestionVectorRow)).all()
    assert [(len(k.vector), k.model) for k in kept] == [(2 * 384, get_settings().packs.encoder)] * 2

    assert access.count_uses(stack.db, utcnow() + timedelta(minutes=1)) == 2
    with stack.db.read() as session:
        scores = session.scalars(select(DocumentPlacementRow.score)).all()
    assert len(scores) == 3
    assert max(scores) == pytest.approx(2, abs=0.01), "shown by both questions"

    upkeep.observe()
    assert status(stack) == {"hot": (3, 1.0), "warm": (0, None), "cold": (0, None)}

    with stack.db.write() as session:
        place(session, stack.scope, target=stack.collection_id, tier="cold")
    stack.run_jobs([Task.PLACE])
    upkeep.observe()
    with stack.db.read() as session:
        moves = list_moves(session, stack.scope)
        rows = session.execute(select(DocumentRow.tier, DocumentRow.wanted_tier)).all()
    assert {(m.status, m.reason, m.moved_by) for m in moves} == {("done", "pinned", "evaluation")}
    assert rows == [("cold", None)] * 3

    assert search(stack, "How often is the cooling pump serviced?")[0] == "pump"
    upkeep.observe()
    assert status(stack) == {"hot": (0, 1.0), "warm": (0, None), "cold": (3, 1.0)}
    with stack.db.read() as session:
        newest = session.scalars(select(RecallSampleRow).order_by(RecallSampleRow.id.desc())).first()
        sizes = {t.tier: t.ram_bytes for t in tier_status(session)}
    assert newest is not None
    assert newest.tier == "cold"
    assert (sizes["cold"] or 0) > 0
    assert check_index(stack.db, IndexFolder(get_settings().index_dir)) == IndexCheck()

    upkeep.tend()
    with stack.db.read() as session:
        assert len(list_moves(session, stack.scope)) == 3, "pinned documents stay"


def test_a_round_that_is_still_at_work_is_not_begun_again(stack: ScratchStack) -> None:
    with upkeep._alone(upkeep._tending) as first, upkeep._alone(upkeep._tending) as second:
        assert (first, second) == (True, False)
    with upkeep._alone(upkeep._tending) as again:
        assert again
