"""Passages beside the evidence: same section, live, inside scope and filter, as far as there is room."""

from __future__ import annotations

from core.db import Database
from core.models import DocumentRow, PassageRow
from core.types import Passage, Scope
from retrieval.filters import Filters, parse_filters
from retrieval.live import live_passages
from retrieval.neighbours import Neighbour, neighbours_of, that_fit
from tests.retrieval.rows import add_document, add_tenant, add_version, scope_of

NONE = Filters()


def section(database: Database, headings: list[list[str]]) -> tuple[str, Scope, list[int]]:
    """A document of one passage per heading path; its id, who may read it, and its passages."""
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        document, ids = add_document(session, tenant, collection, [f"text {n}" for n in range(len(headings))])
        for passage_id, path in zip(ids, headings, strict=True):
            session.get_one(PassageRow, passage_id).heading_path = path
    return document, scope_of(tenant), list(ids)


def anchors(database: Database, scope: Scope, ids: list[int]) -> list[Passage]:
    with database.read() as session:
        known = live_passages(session, scope, ids)
    return [known[i].passage for i in ids]


def found(
    database: Database, scope: Scope, ids: list[int], filters: Filters = NONE, reach: int = 1
) -> list[tuple[int, int]]:
    own = anchors(database, scope, ids)
    with database.read() as session:
        beside = neighbours_of(session, scope, own, filters, reach=reach)
    return [(n.stored.passage.id, n.anchor) for n in beside]


def test_neighbours_stand_in_the_same_section_and_the_nearest_first(database: Database) -> None:
    _, scope, ids = section(database, [["A"], ["A"], ["A"], ["A"], ["B"]])
    assert found(database, scope, [ids[1]]) == [(ids[0], ids[1]), (ids[2], ids[1])]
    assert found(database, scope, [ids[1]], reach=2)[-1] == (ids[3], ids[1])
    assert found(database, scope, [ids[4]]) == [], "the passage before it stands under other headings"


def test_a_passage_between_two_belongs_to_the_better_one_and_anchors_are_left_out(database: Database) -> None:
    _, scope, ids = section(database, [["A"]] * 4)
    assert found(database, scope, [ids[2], ids[0]]) == [(ids[1], ids[2]), (ids[3], ids[2])]


def test_scope_filter_and_live_version_hold_for_neighbours(database: Database) -> None:
    document, scope, ids = section(database, [["A"]] * 3)
    assert found(database, scope, [ids[1]], parse_filters({"lang": ["zh"]})) == []
    own = anchors(database, scope, [ids[1]])
    with database.write() as session:
        other, _ = add_tenant(session, "b")
        foreign = scope_of(other)
        row = session.get_one(DocumentRow, document)
        add_version(session, row.tenant_id, row.collection_id, document, 2, ["new 0", "new 1", "new 2"])
    with database.read() as session:
        assert neighbours_of(session, foreign, own, NONE, reach=1) == []
    with database.write() as session:
        session.get_one(DocumentRow, document).live_version = 2
    with database.read() as session:
        assert neighbours_of(session, scope, own, NONE, reach=1) == [], "the old version is not shown"


def test_only_whole_neighbours_that_fit_are_taken(database: Database) -> None:
    _, scope, ids = section(database, [["A"]] * 5)
    own = anchors(database, scope, [ids[2]])
    with database.read() as session:
        beside = neighbours_of(session, scope, own, NONE, reach=2)

    def kept(room: int, most: int) -> list[Neighbour]:
        return that_fit(beside, room=room, most=most, count=lambda s: 10 if s.passage.ordinal != 1 else 30)

    assert [n.stored.passage.ordinal for n in kept(100, 9)] == [1, 3, 0, 4]
    assert [n.stored.passage.ordinal for n in kept(25, 9)] == [3, 0]
    assert len(kept(100, 1)) == 1
    assert kept(5, 9) == []
