"""Names of questions, what they may mean, and the passages that are brought forward or held back for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy.orm import Session

from core.db import Database
from core.models import EntityRow, MentionRow
from core.types import Hit, Route, Scope
from ingest.catalogue import alias_key
from retrieval.catalogues import catalogue_of
from retrieval.entity_names import Named, named_in
from retrieval.entity_route import EntityHits, Links, entity_hits, links_of
from retrieval.filters import Filters
from retrieval.fuse import standardized_sum
from retrieval.readings import Profile, weigh
from tests.retrieval.rows import (
    add_collection,
    add_document,
    add_entity,
    add_mention,
    add_tenant,
    scope_of,
)


def look_up(session: Session, scope: Scope, question: str, tenant: str) -> Links:
    catalogue = catalogue_of(session, tenant)
    return links_of(
        session, scope, Filters(), named_in(session, scope.tenant_id, question, catalogue), catalogue
    )


def found_for(session: Session, tenant: str, question: str, **options: object) -> EntityHits:
    links = look_up(session, scope_of(tenant), question, tenant)
    return entity_hits(question, links, limit=20, **options)  # pyright: ignore[reportArgumentType]


def call(
    session: Session, tenant: str, passage_id: int, entity_id: str | None, key: str, **fields: str
) -> None:
    """A mention as linking writes it: with its key, type and affiliations."""
    add_mention(session, tenant, passage_id, entity_id, 0.8)
    row = session.query(MentionRow).order_by(MentionRow.id.desc()).first()
    assert row is not None
    row.key = alias_key(key)
    for name, value in fields.items():
        setattr(row, name, value)
    session.flush()


def described(session: Session, tenant: str, name: str, about: str) -> str:
    entity_id = add_entity(session, tenant, name)
    session.get_one(EntityRow, entity_id).description = about
    session.flush()
    return entity_id


def test_rare_names_and_sure_links_come_first(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two", "three", "four"])
        common, rare = add_entity(session, tenant, "Northwind"), add_entity(session, tenant, "Halcyon")
        for passage_id in ids:
            add_mention(session, tenant, passage_id, common, 0.9)
        add_mention(session, tenant, ids[2], rare, 0.8)
        add_mention(session, tenant, ids[3], None, 0.0)
        found = found_for(session, tenant, "Did Northwind buy Halcyon?")
        assert found.scored[0][0] == ids[2]
        assert {i for i, _ in found.scored} == set(ids)
        assert [i for i, _ in found.scored[1:]] == sorted(i for i, _ in found.scored[1:]), "ties follow ids"
        assert not found.against
        assert found_for(session, tenant, "Who is there?").scored == []


@pytest.mark.parametrize(
    ("question", "meant", "other"),
    [
        ("What has the judge Maria Santos decided?", "judge", "botanist"),
        ("Which mosses did the botanist Maria Santos label?", "botanist", "judge"),
        ("which mosses did the botanist maria santos label", "botanist", "judge"),
    ],
)
def test_what_a_question_says_of_a_name_decides_whom_it_means(
    database: Database, question: str, meant: str, other: str
) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two", "three"])
        entities = {
            "judge": described(session, tenant, "Maria Santos", "judge who hears bankruptcy cases"),
            "botanist": described(session, tenant, "Maria Santos", "botanist who studies mosses"),
        }
        add_mention(session, tenant, ids[0], entities["judge"], 0.9)
        add_mention(session, tenant, ids[1], entities["botanist"], 0.9)
        place = {"judge": ids[0], "botanist": ids[1]}
        found = found_for(session, tenant, question)
        assert [i for i, _ in found.scored] == [place[meant]]
        assert set(found.against) == {place[other]}


def test_a_question_that_tells_nothing_leaves_both_and_holds_nobody_back(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two", "three"])
        for passage_id, firm in ((ids[0], "远山股份"), (ids[1], "海石科技")):
            person = add_entity(session, tenant, "李伟")
            session.get_one(EntityRow, person).provenance = "corpus"
            call(session, tenant, passage_id, person, "李伟", type="PERSON", affiliations=firm)
        found = found_for(session, tenant, "李伟何时入职？")
        assert {i for i, _ in found.scored} == {ids[0], ids[1]}
        assert len({score for _, score in found.scored}) == 1
        assert not found.against
        asked = found_for(session, tenant, "海石科技的李伟何时入职？")
        assert [i for i, _ in asked.scored] == [ids[1]]
        assert set(asked.against) == {ids[0]}


def test_documents_that_name_the_same_company_tell_two_people_apart(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, first = add_document(session, tenant, collection, ["one", "two"])
        _, second = add_document(session, tenant, collection, ["three", "four"])
        ann, bob = (add_entity(session, tenant, "Kim Park") for _ in range(2))
        firm = add_entity(session, tenant, "Halcyon")
        add_mention(session, tenant, first[0], ann, 0.8)
        add_mention(session, tenant, second[0], bob, 0.8)
        add_mention(session, tenant, second[1], firm, 0.8)
        found = found_for(session, tenant, "When did Kim Park join Halcyon?")
        assert {i for i, _ in found.scored} == {second[0], second[1]}
        assert set(found.against) == {first[0]}


def test_one_thing_taken_for_two_kinds_is_not_two_things(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two"])
        for kind, passage_id in (("ORG", ids[0]), ("PRODUCT", ids[1])):
            row = session.get_one(EntityRow, add_entity(session, tenant, "Quarbix"))
            row.provenance, row.type = "corpus", kind
            add_mention(session, tenant, passage_id, row.id, 0.7)
        found = found_for(session, tenant, "What is Quarbix?")
        assert {i for i, _ in found.scored} == set(ids)
        assert not found.against
        assert not found.each
        assert not found.others


def test_a_mention_of_nobody_known_is_held_back_when_somebody_is_meant(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two", "three"])
        for passage_id, firm in ((ids[0], "远山股份"), (ids[1], "海石科技")):
            row = session.get_one(EntityRow, add_entity(session, tenant, "李伟"))
            row.provenance, row.type = "corpus", "PERSON"
            call(session, tenant, passage_id, row.id, "李伟", type="PERSON", affiliations=firm)
        call(session, tenant, ids[2], None, "李伟", type="PERSON")
        open_ = found_for(session, tenant, "李伟何时入职？")
        assert sorted(map(sorted, open_.each)) == [[ids[0]], [ids[1]]]
        assert not open_.others
        meant = found_for(session, tenant, "海石科技的李伟是男是女？")
        assert meant.others == {ids[0], ids[2]}
        assert not meant.each
        assert meant.against[ids[0]] > meant.against[ids[2]] > 0


def test_a_part_of_a_name_means_whom_documents_call_so(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two"])
        entity_id = add_entity(session, tenant, "Ralph Waldo Emerson")
        call(session, tenant, ids[1], entity_id, "Emerson")
        assert [i for i, _ in found_for(session, tenant, "What did Emerson write?").scored] == [ids[1]]
        assert [i for i, _ in found_for(session, tenant, "what did emerson write").scored] == [ids[1]]


def test_names_that_documents_brought_are_looked_up_in_both_languages(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two"])
        for name, passage_id in (("海石科技", ids[0]), ("Sea Stone", ids[1])):
            firm = add_entity(session, tenant, name)
            session.get_one(EntityRow, firm).provenance = "corpus"
            add_mention(session, tenant, passage_id, firm, 0.7)
        catalogue = catalogue_of(session, tenant)
        for question in ("海石科技是什么？", "What is Sea Stone?"):
            assert len(named_in(session, tenant, question, catalogue)) == 1
        assert named_in(session, "ten_other", "海石科技是什么？", catalogue) == []


def test_nobody_finds_passages_of_another_tenant_or_collection(database: Database) -> None:
    with database.write() as session:
        a, collection = add_tenant(session, "a")
        b, _ = add_tenant(session, "b")
        _, ids = add_document(session, a, collection, ["one"])
        entity = add_entity(session, a, "Quartz Lantern")
        call(session, a, ids[0], entity, "Quartz Lantern")
        assert found_for(session, b, "Quartz Lantern").scored == []
        other = scope_of(a).narrowed((add_collection(session, a, "other"),))
        links = look_up(session, other, "Quartz Lantern", a)
        assert entity_hits("Quartz Lantern", links, limit=5).scored == []
        assert [i for i, _ in found_for(session, a, "Quartz Lantern").scored] == [ids[0]]


def test_among_passages_of_one_entity_those_near_the_question_come_first(database: Database) -> None:
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        _, ids = add_document(session, tenant, collection, ["one", "two", "three"])
        entity = add_entity(session, tenant, "Halcyon")
        for passage_id in ids:
            add_mention(session, tenant, passage_id, entity, 0.8)

        def cosines(asked: Sequence[int]) -> dict[int, float]:
            return {i: 0.8 + 0.02 * asked.index(i) for i in asked}

        found = found_for(session, tenant, "What is Halcyon?", cosines=cosines)
        assert [i for i, _ in found.scored] == list(reversed(ids))


def test_the_encoder_weighs_descriptions_where_no_word_is_shared() -> None:
    name = Named(0, 7, {"car": 0.5, "cat": 0.5})
    profiles = {"car": Profile("Jaguar", "British car brand"), "cat": Profile("Jaguar", "wild feline")}

    def similarity(_: str, others: Sequence[str]) -> list[float]:
        return [0.88 if "feline" in text else 0.8 for text in others]

    (plain,) = weigh("Jaguar at night", [name], profiles, {})
    (asked,) = weigh("Jaguar at night", [name], profiles, {}, similarity)
    assert plain.certainty == pytest.approx(0)
    assert asked.certainty > 0.9
    assert asked.fit("cat") == 1


def test_what_speaks_against_a_passage_is_taken_off_whoever_found_it() -> None:
    ranked = {
        Route.DENSE: [Hit(1, Route.DENSE, 1, 0.9), Hit(2, Route.DENSE, 2, 0.8)],
        Route.ENTITY: [Hit(2, Route.ENTITY, 1, 3.0)],
    }
    fused = standardized_sum(ranked, exact={Route.ENTITY: 0.5}, against={1: 1.0, 7: 5.0})
    assert [f.passage_id for f in fused] == [2, 1]
    assert fused[0].exact == 1.5
    assert fused[1].exact == -1.0
