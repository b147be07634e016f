"""What every route is cut down to: the scope, the live version and the filters, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from core.db import Database, utcnow
from core.errors import NotFound
from core.models import CollectionRow, DocumentRow, JobRow, QueryRow
from core.types import Lang, Scope
from retrieval.filters import Filters, parse_filters
from retrieval.live import live_languages, live_passages
from retrieval.queries import get_search_result, submit_query
from retrieval.query_repository import filtered_document_ids, live_passage_ids
from tests.retrieval.rows import (
    add_collection,
    add_document,
    add_entity,
    add_mention,
    add_tenant,
    add_version,
    scope_of,
)


@pytest.fixture
def two_tenants(database: Database) -> dict[str, Any]:
    made: dict[str, Any] = {"db": database}
    with database.write() as session:
        for name in ("a", "b"):
            tenant, collection = add_tenant(session, name)
            document, passages = add_document(
                session, tenant, collection, [f"secret of {name}", "shared words"]
            )
            made[name] = {"tenant": tenant, "collection": collection, "document": document, "ids": passages}
    return made


def all_ids(made: dict[str, Any]) -> list[int]:
    return [*made["a"]["ids"], *made["b"]["ids"]]


def test_a_foreign_tenants_passages_are_never_returned(two_tenants: dict[str, Any]) -> None:
    with two_tenants["db"].read() as session:
        for own, other in (("a", "b"), ("b", "a")):
            scope = scope_of(two_tenants[own]["tenant"])
            assert set(live_passages(session, scope, all_ids(two_tenants))) == set(two_tenants[own]["ids"])
            assert set(live_languages(session, scope, all_ids(two_tenants), Filters())) == set(
                two_tenants[own]["ids"]
            )
            assert live_passage_ids(session, scope, Filters(), limit=10) == two_tenants[own]["ids"]
            foreign = scope_of(two_tenants[own]["tenant"], (two_tenants[other]["collection"],))
            assert live_passages(session, foreign, all_ids(two_tenants)) == {}


@pytest.mark.parametrize("scope", [scope_of(""), scope_of("ten_unknown")])
def test_a_scope_without_a_tenant_sees_nothing(two_tenants: dict[str, Any], scope: Scope) -> None:
    with two_tenants["db"].read() as session:
        assert live_passages(session, scope, all_ids(two_tenants)) == {}


def test_an_empty_collection_scope_sees_nothing(two_tenants: dict[str, Any]) -> None:
    with two_tenants["db"].read() as session:
        assert live_passages(session, scope_of(two_tenants["a"]["tenant"], ()), all_ids(two_tenants)) == {}


def test_only_the_live_version_is_served(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        document, old = add_document(session, tenant, collection, ["the limit is 500"])
        new = add_version(session, tenant, collection, document, 2, ["the limit is 620"])
        hidden, unborn = add_document(session, tenant, collection, ["not indexed yet"], live=False)
        leaving, gone = add_document(session, tenant, collection, ["being deleted"])
        session.get_one(DocumentRow, leaving).status = "deleting"
        scope = scope_of(tenant)
        assert set(live_passages(session, scope, [*old, *new, *unborn, *gone])) == set(old)
        session.get_one(DocumentRow, document).live_version = 2
        session.flush()
        assert set(live_passages(session, scope, [*old, *new, *unborn, *gone])) == set(new)
        assert hidden != leaving


def test_filters_join_keys_by_and_and_values_by_or(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        pump, (pump_id,) = add_document(
            session,
            tenant,
            collection,
            ["pump"],
            tags=["safety", "2024"],
            meta={"year": 2024, "site": "east"},
        )
        _, (valve_id,) = add_document(
            session,
            tenant,
            collection,
            ["阀门"],
            lang="zh",
            tags=["safety"],
            trust="high",
            meta={"open": True},
        )
        _, (plain_id,) = add_document(session, tenant, collection, ["plain"])
        scope, every = scope_of(tenant), [pump_id, valve_id, plain_id]

        def seen(body: dict[str, Any]) -> list[int]:
            filters = parse_filters(body)
            found = sorted(live_languages(session, scope, every, filters))
            assert live_passage_ids(session, scope, filters, limit=10) == found
            return found

        assert seen({}) == every
        assert seen({"documents": [pump]}) == [pump_id]
        assert seen({"tags": ["safety"]}) == [pump_id, valve_id]
        assert seen({"tags": ["2024", "other"]}) == [pump_id]
        assert seen({"trust": ["high"]}) == [valve_id]
        assert seen({"metadata": {"year": 2024}}) == [pump_id]
        assert seen({"metadata": {"year": 2024, "site": "west"}}) == []
        assert seen({"metadata": {"open": True}}) == [valve_id]
        assert seen({"lang": ["zh"]}) == [valve_id]
        assert seen({"tags": ["safety"], "lang": ["en"]}) == [pump_id]
        assert seen({"tags": []}) == []
        assert seen({"documents": ["' OR 1=1 --"]}) == []
        assert filtered_document_ids(session, scope, parse_filters({"tags": ["2024"]})) == [pump]
        assert filtered_document_ids(session, scope, parse_filters({"lang": ["en"]})) is None
        assert live_languages(session, scope, every, Filters())[valve_id] is Lang.ZH


def test_too_many_visible_passages_are_not_listed(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        add_document(session, tenant, collection, ["one", "two", "three"])
        assert live_passage_ids(session, scope_of(tenant), Filters(), limit=2) is None


def test_a_filter_by_entity_keeps_the_passages_that_mention_it(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two", "three"])
        entity_id = add_entity(session, tenant, "Halcyon")
        add_mention(session, tenant, ids[1], entity_id, 0.9)
        filters = parse_filters({"entities": [entity_id, "ent_unknown"]})
        assert live_passage_ids(session, scope_of(tenant), filters, limit=10) == [ids[1]]
        assert live_passage_ids(session, scope_of(tenant), parse_filters({"entities": []}), limit=10) == []


def test_a_query_is_stored_with_its_job_and_rings_after_the_commit(two_tenants: dict[str, Any]) -> None:
    a = two_tenants["a"]
    with two_tenants["db"].write() as session:
        query_id = submit_query(
            session,
            scope_of(a["tenant"]),
            question=" a\x00b? ",
            collection_ids=[a["collection"]],
            task="search",
        )
    with two_tenants["db"].read() as session:
        row = session.get_one(QueryRow, query_id)
        assert (row.question, row.status, row.collection_ids) == ("a b?", "queued", [a["collection"]])
        job = session.query(JobRow).filter_by(subject_id=query_id).one()
        assert (job.task, job.queue, job.subject_kind) == ("retrieval.rerank", "query", "query")


def test_unknown_foreign_and_deleted_collections_read_the_same(two_tenants: dict[str, Any]) -> None:
    a, b = two_tenants["a"], two_tenants["b"]
    with two_tenants["db"].write() as session:
        closed = add_collection(session, a["tenant"], "closed")
        session.get_one(CollectionRow, closed).deleted_at = utcnow()
        session.flush()
        for collection in ("col_unknown", b["collection"], closed):
            with pytest.raises(NotFound):
                submit_query(session, scope_of(a["tenant"]), question="?a", collection_ids=[collection])
        with pytest.raises(NotFound):
            submit_query(
                session,
                scope_of(a["tenant"], ("col_other",)),
                question="?a",
                collection_ids=[a["collection"]],
            )


def test_a_search_result_shows_only_what_may_be_seen_now(two_tenants: dict[str, Any]) -> None:
    a, b = two_tenants["a"], two_tenants["b"]
    with two_tenants["db"].write() as session:
        scope = scope_of(a["tenant"])
        query_id = submit_query(
            session, scope, question="secret", collection_ids=[a["collection"]], task="search"
        )
        row = session.get_one(QueryRow, query_id)
        row.status = "answered"
        row.trace = {
            "total": 3,
            "hits": [
                {"rank": n, "passage_id": i, "score": 0.5, "fused": 1.0, "reranked": None}
                | {"routes": [], "collapsed": 0}
                for n, i in enumerate([*a["ids"], b["ids"][0]], 1)
            ],
        }
        session.flush()
        assert [h.passage.id for h in get_search_result(session, scope, query_id).hits] == a["ids"]
        session.get_one(DocumentRow, a["document"]).status = "deleting"
        session.flush()
        assert get_search_result(session, scope, query_id).hits == ()
        with pytest.raises(NotFound):
            get_search_result(session, scope_of(b["tenant"]), query_id)
        with pytest.raises(NotFound):
            get_search_result(session, scope_of(a["tenant"], ("col_other",)), query_id)
