from __future__ import annotations

import pytest
from sqlalchemy import update

from core.db import Database
from core.errors import Conflict, NotFound
from core.models import DocumentRow, PassageRow
from core.types import Scope
from generation import service
from generation.answer import extract
from generation.summarize import document_of, sections, with_central_sentences
from generation.summary_repository import document_evidence
from retrieval.filters import parse_filters
from tests.generation.evidence import evidence
from tests.generation.rows import Library
from tests.generation.test_tasks import Stage

SAFETY = (
    "The pump must be stopped before the pump cover is opened. Cats are nice animals to have around. "
    "The pump cover stays closed while the pump runs."
)
UPKEEP = "Oil of the gear box is changed every year by the crew. The gear box oil level is read every week."


def headed(marker: int, text: str, *path: str):
    return evidence(marker, text, heading=path)


def test_headings_divide_a_document_and_short_neighbours_are_joined() -> None:
    parts = [headed(n, "x" * size, "Book", name) for n, (name, size) in enumerate(
        (("A", 900), ("A", 10), ("B", 20), ("C", 30), ("D", 800)), 1
    )]  # fmt: skip
    assert [[e.marker for e in s] for s in sections(parts, at_most=3)] == [[1, 2], [3, 4], [5]]
    assert len(sections(parts, at_most=9)) == 4
    assert [len(s) for s in sections([headed(n, "x") for n in range(7)], at_most=3)] == [3, 3, 1]
    assert sections([], at_most=3) in ([], [()])


def test_the_sentence_that_stands_for_a_section_says_what_it_is_about() -> None:
    document = (headed(1, SAFETY, "Safety"), headed(2, UPKEEP, "Upkeep"))
    scored = with_central_sentences(document[:1], document)
    (claim,) = extract("summary", scored, max_sentences=1)
    assert "pump cover" in claim.text
    assert scored[0].sentences[1].score == min(s.score for s in scored[0].sentences)


def test_the_document_is_found_beside_a_policys_sources() -> None:
    assert document_of({"documents": ["doc_1"]}) == "doc_1"
    assert document_of({"all": [{"documents": ["doc_1"]}, {"trust": ["high"]}]}) == "doc_1"
    assert document_of({"documents": ["doc_1", "doc_2"]}) is None
    assert document_of({}) is None


def two_sections(db: Database) -> Stage:
    stage = Stage(db)
    stage.library = Library(db, [SAFETY, UPKEEP])
    first, second = stage.library.documents
    with db.write() as session:
        session.execute(
            update(PassageRow)
            .where(PassageRow.document_id == second)
            .values(document_id=first, ordinal=1, heading_path=["Upkeep"])
        )
        session.execute(update(DocumentRow).where(DocumentRow.id == second).values(live_version=None))
    return stage


def summarize(stage: Stage, **policy: object):
    query_id, job_id = stage.library.ask("Summarize it", **policy)
    with stage.library.db.write() as session:
        from core.models import QueryRow

        row = session.get_one(QueryRow, query_id)
        row.task, row.filters = "summarize", {"documents": [stage.library.documents[0]]}
    stage.run(job_id)
    return stage.answer(query_id)


def test_each_section_gives_one_cited_sentence_in_order(sqlite_database: Database) -> None:
    stage = two_sections(sqlite_database)
    answer = summarize(stage, mode="extract", max_sentences=2, refusal_threshold=0.99)
    assert (answer.status, answer.mode_used) == ("answered", "extract")
    assert [c.citations[0].marker for c in answer.claims] == [1, 2]
    assert "pump cover" in answer.claims[0].text
    assert "gear box" in answer.claims[1].text
    assert [s.passage_id for s in answer.sources] == [p for p, _ in stage.library.passages]
    assert all(c.citations[0].quote and c.citations[0].quote.text == c.text for c in answer.claims)
    assert stage.engine.requests == []


def test_the_model_summarizes_section_by_section_from_its_passages(sqlite_database: Database) -> None:
    stage = two_sections(sqlite_database)
    stage.engine.script = "Penguins swim far. [1]"
    stage.engine._obey = lambda request: None  # type: ignore[method-assign] # says the same in both
    answer = summarize(stage, mode="free", max_sentences=3)
    assert len(stage.engine.requests) == 2
    assert "pump cover" in stage.engine.requests[0].messages[-1].content
    assert "gear box" not in stage.engine.requests[0].messages[-1].content
    assert [c.citations[0].marker for c in answer.claims[1:]] == [
        1,
        2,
    ]  # the section's own sentence stands in
    assert answer.claims[0].reason == "exact_quote;whole_document"


def test_the_whole_comes_before_the_sections_and_within_the_length(sqlite_database: Database) -> None:
    answer = summarize(two_sections(sqlite_database), mode="extract", max_sentences=6)
    whole = [c for c in answer.claims if c.reason.endswith(";whole_document")]
    assert list(answer.claims[: len(whole)]) == whole
    assert [c.citations[0].marker for c in whole] == [1, 2]
    assert "pump cover" in whole[0].text
    assert all(c.citations[0].quote and c.citations[0].quote.text == c.text for c in answer.claims)
    assert len({c.text for c in answer.claims}) == len(answer.claims) <= 6
    assert answer.notices == ()


def test_a_document_too_long_to_be_read_whole_says_so(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("generation.summary_repository", "generation.tasks"):
        monkeypatch.setattr(f"{module}.MAX_PASSAGES", 1)
    (notice,) = summarize(two_sections(sqlite_database), mode="extract").notices
    assert (notice.code, notice.detail) == ("document_not_read_whole", {"read": 1, "passages": 2})
    assert notice.text == "The document is long; its first 1 of 2 passages were read."


def test_a_document_that_is_not_live_is_refused(sqlite_database: Database) -> None:
    stage = two_sections(sqlite_database)
    with sqlite_database.write() as session:
        session.execute(update(DocumentRow).values(live_version=None))
    assert summarize(stage).status == "refused"


def test_the_other_filters_hold_inside_the_document(sqlite_database: Database) -> None:
    stage = two_sections(sqlite_database)
    first = stage.library.documents[0]
    with sqlite_database.write() as session:
        session.execute(update(PassageRow).where(PassageRow.text == UPKEEP).values(page=9))
    scope = stage.library.scope
    with sqlite_database.read() as session:
        whole = document_evidence(session, scope, first)
        part = document_evidence(session, scope, first, parse_filters({"page": {"gte": 9}}))
    assert [e.passage.text for e in whole] == [SAFETY, UPKEEP]
    assert [e.passage.text for e in part] == [UPKEEP]


def test_a_document_that_cannot_be_summarized_is_named_at_the_door(sqlite_database: Database) -> None:
    library = Library(sqlite_database, [SAFETY])
    (document,) = library.documents

    def submit(scope: Scope, document_id: str) -> str:
        with sqlite_database.write() as session:
            return service.submit(
                session, scope, question="Summarize it", collection_ids=[library.collection],
                task="summarize", filters={"documents": [document_id]},
            )  # fmt: skip

    assert submit(library.scope, document)
    for unknown in ("doc_none", Library(sqlite_database, [UPKEEP]).documents[0]):
        with pytest.raises(NotFound, match="document"):
            submit(library.scope, unknown)
    with sqlite_database.write() as session:
        session.execute(update(DocumentRow).values(live_version=None, status="processing"))
    with pytest.raises(Conflict, match="processing"):
        submit(library.scope, document)
