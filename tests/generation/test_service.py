from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from sqlalchemy import select

from core.db import Database
from core.errors import InvalidInput, NotFound
from core.models import JobRow, QueryRow
from core.types import AnswerStatus, CitationMode, Claim, Scope, Usage, Verdict
from generation import repository, service
from generation.answer import cite
from generation.repository import Outcome
from generation.values import join_sentences
from tests.generation.rows import Library


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def stranger(library: Library) -> Scope:
    return replace(library.scope, tenant_id="ten_other")


def finish(library: Library, query_id: str, *claims: Claim) -> None:
    outcome = Outcome(AnswerStatus.ANSWERED, claims, CitationMode.FREE, usage=Usage(9, 3, 1))
    with library.db.write() as session:
        evidence = repository.load_evidence(session, library.scope, query_id)
        # The passage begins on page 2, and page 3 begins before the quote.
        passages = {
            e.passage.id: replace(e.passage, page=2, page_breaks=((e.passage.span.start, 3),))
            for e in evidence
        }
        assert repository.store_outcome(session, query_id, outcome, passages)


def tower_claim(library: Library, query_id: str) -> Claim:
    with library.db.read() as session:
        first = repository.load_evidence(session, library.scope, query_id)[0]
    quote = first.sentences[0].span
    text = first.passage.text[: len(quote)]
    return Claim(text, (cite(first, quote, text),), Verdict.SUPPORTED, "exact_quote")


def test_the_stored_policy_is_the_merged_one(library: Library) -> None:
    with library.db.write() as session:
        stored = service.put_policy(session, library.scope, library.collection, {"mode": "free"})
    query_id, _ = library.ask(max_sentences=7)
    row = library.row(query_id)
    assert stored.version == row.policy_version == 1
    assert (row.policy["mode"], row.policy["max_sentences"]) == ("free", 7)


def test_an_unknown_policy_field_stores_no_query(library: Library) -> None:
    with pytest.raises(InvalidInput, match=r"policy\.modus"):
        library.ask(modus="free")
    with library.db.read() as session:
        assert session.scalars(select(QueryRow)).all() == []


def test_policy_versions_only_grow(library: Library) -> None:
    with library.db.write() as session:
        assert service.get_policy(session, library.scope, library.collection).version == 0
        service.put_policy(session, library.scope, library.collection, {"max_sentences": 1})
        service.put_policy(session, library.scope, library.collection, {"max_sentences": 3})
        current = service.get_policy(session, library.scope, library.collection)
    assert (current.version, current.body["max_sentences"], current.created_by) == (2, 3, "key_1")


def test_a_foreign_id_is_unknown_on_every_function(library: Library) -> None:
    query_id, _ = library.ask()
    other = stranger(library)
    narrow = library.scope.narrowed(("col_else",))
    with library.db.write() as session:
        for scope in (other, narrow):
            for call in (service.get_answer, service.cancel, service.replay):
                with pytest.raises(NotFound):
                    call(session, scope, query_id)
            for read in (service.get_policy,):
                with pytest.raises(NotFound):
                    read(session, scope, library.collection)
            with pytest.raises(NotFound):
                service.put_policy(session, scope, library.collection, {})
            with pytest.raises(NotFound):
                service.submit(session, scope, question="q", collection_ids=[library.collection])
            assert service.list_answers(session, scope).items == ()


def test_an_answer_is_shown_as_it_was_stored(library: Library) -> None:
    query_id, _ = library.ask()
    claim = tower_claim(library, query_id)
    finish(library, query_id, claim, Claim("", (), Verdict.UNSUPPORTED, "words=0.1"))
    with library.db.read() as session:
        answer = service.get_answer(session, library.scope, query_id)
    assert answer.text == join_sentences(c.text for c in answer.claims) == "The tower is 330 metres tall."
    citation = answer.claims[0].citations[0]
    assert citation.quote is not None
    assert (citation.document_name, citation.page, citation.heading_path) == ("1.txt", 3, ("Facts",))
    assert (citation.quote.start, citation.quote.end) == (10, 10 + len(claim.text))
    assert [s.marker for s in answer.sources] == [1, 2]
    assert answer.usage == {"prompt_tokens": 9, "completion_tokens": 3, "cached_tokens": 1}
    assert answer.mode_used is CitationMode.FREE


def test_an_ended_query_is_not_written_again(library: Library) -> None:
    query_id, _ = library.ask()
    finish(library, query_id, tower_claim(library, query_id))
    with library.db.write() as session:
        assert not repository.store_outcome(session, query_id, Outcome(AnswerStatus.FAILED), {})
        assert service.get_answer(session, library.scope, query_id).status is AnswerStatus.ANSWERED


def test_queries_are_listed_newest_first_page_by_page(library: Library) -> None:
    ids = [library.ask(f"Question {n}?")[0] for n in range(5)]
    seen: list[str] = []
    cursor: str | None = None
    with library.db.read() as session:
        while True:
            page = service.list_answers(session, library.scope, cursor=cursor, limit=2)
            seen += [item.id for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == ids[::-1]
        with pytest.raises(InvalidInput):
            service.list_answers(session, library.scope, limit=0)


def test_a_query_that_nobody_holds_is_cancelled_at_once(library: Library) -> None:
    query_id, job_id = library.ask()
    with library.db.write() as session:
        view = service.cancel(session, library.scope, query_id)
    assert view.status is AnswerStatus.CANCELLED
    with library.db.read() as session:
        assert session.get_one(JobRow, job_id).status == "cancelled"


def test_cancelling_an_ended_query_changes_nothing(library: Library) -> None:
    query_id, _ = library.ask()
    finish(library, query_id, tower_claim(library, query_id))
    with library.db.write() as session:
        assert service.cancel(session, library.scope, query_id).status is AnswerStatus.ANSWERED
    assert not library.row(query_id).cancel_requested


def test_a_replay_keeps_question_and_policy(library: Library) -> None:
    query_id, _ = library.ask(mode="free", max_sentences=9)
    with library.db.write() as session:
        again = service.replay(session, library.scope, query_id)
    old, new = library.row(query_id), library.row(again)
    assert new.replay_of == query_id
    assert (new.question, new.policy, new.policy_version) == (old.question, old.policy, old.policy_version)


def test_evidence_leaves_out_what_was_deleted_since(library: Library) -> None:
    from core.models import DocumentRow

    query_id, _ = library.ask()
    with library.db.write() as session:
        session.get_one(DocumentRow, library.documents[0]).live_version = None
    with library.db.read() as session:
        evidence = repository.load_evidence(session, library.scope, query_id)
    assert [e.marker for e in evidence] == [2]


def test_the_engine_is_unknown_until_a_worker_speaks(library: Library) -> None:
    with library.db.read() as session:
        status = service.engine_status(session)
    assert (status.state, status.plan) == ("unknown", None)


def test_the_door_loads_no_engine() -> None:
    import subprocess

    heavy = (
        "torch",
        "openvino",
        "vllm",
        "faiss",
        "spacy",
        "sentence_transformers",
        "transformers",
        "tantivy",
    )
    code = f"import generation.service, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
