from __future__ import annotations

import json
from typing import Any

import pytest

from core.db import Database
from core.errors import Conflict, InvalidInput, NotFound
from core.types import Scope
from ingest import service
from ingest.catalogue_repository import catalogue_stamp, load_catalogue
from ingest.values import Entity
from tests.ingest.lifecycle import SCOPE, STRANGER, TENANT, get, make_live, make_tenants, run_waiting, upload


def load(db: Database, *rows: dict[str, Any], scope: Scope = SCOPE) -> list[str]:
    """Import rows; returns the entity ids in the same order."""
    with db.write() as session:
        done = service.import_entities(session, scope, lines=[json.dumps(r) for r in rows], form="jsonl")
    assert done.rejected == ()
    return [done.ids[r.get("id") or r["name"]] for r in rows]


def document_about(db: Database, text: str) -> str:
    document_id = upload(db, text).document.id
    run_waiting(db, document_id)
    make_live(db, document_id)
    return document_id


def entity(db: Database, entity_id: str, scope: Scope = SCOPE) -> Entity:
    with db.read() as session:
        return service.get_entity(session, scope, entity_id=entity_id)


def relink(db: Database, document_id: str) -> None:
    """Walk the document through the stages again and serve the new version."""
    with db.write() as session:
        version = service.reprocess(session, SCOPE, document_id=document_id).version
    run_waiting(db, document_id)
    make_live(db, document_id, version)


def test_importing_twice_changes_nothing_and_updates_what_differs(database: Database) -> None:
    make_tenants(database)
    row = {"id": "Q64", "name": "Berlin", "type": "GPE", "aliases": ["柏林", {"alias": "BER", "weight": 2}]}
    (berlin,) = load(database, row)
    before = entity(database, berlin)
    assert load(database, row) == [berlin]
    assert entity(database, berlin) == before
    assert before.same_as == ("http://www.wikidata.org/entity/Q64",)
    assert set(before.aliases) == {"Berlin", "柏林", "BER"}
    load(database, row | {"description": "capital"})
    assert entity(database, berlin).description == "capital"


def test_bad_rows_are_reported_by_number_and_good_ones_taken(sqlite_database: Database) -> None:
    make_tenants(sqlite_database)
    lines = [
        '\ufeff{"name": "Good"}',
        "not json",
        "[1]",
        '{"name": " \\u200b"}',
        '{"name": "x", "nmae": "y"}',
        '{"name": "x", "aliases": "one"}',
        '{"name": "x", "aliases": [{"alias": "y", "weight": -1}]}',
        '{"name": "x", "same_as": ["javascript:alert(1)"]}',
        '{"name": true}',
        "",
        '{"name": "' + "x" * 301 + '"}',
        '{"name": "Good too", "type": "ORG"}',
        "[" * 100_000,
    ]
    with sqlite_database.write() as session:
        done = service.import_entities(session, SCOPE, lines=lines, form="jsonl")
        assert {e.name for e in service.search_entities(session, SCOPE).items} == {"Good", "Good too"}
    assert done.created == 2
    assert [r.row for r in done.rejected] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 12]
    assert all(r.reason for r in done.rejected)


def test_csv_rows_split_aliases_and_skip_empty_cells(sqlite_database: Database) -> None:
    make_tenants(sqlite_database)
    lines = [
        "\ufeffid,name,type,aliases,same_as\n",
        '1,"Acme, Inc",ORG,Acme|ACME 集团,\n',
        "2,Bolt,,,,too,many\n",
    ]
    with sqlite_database.write() as session:
        done = service.import_entities(session, SCOPE, lines=lines, form="csv")
        (acme,) = service.search_entities(session, SCOPE, text="集团").items
    assert (acme.name, acme.type, set(acme.aliases)) == (
        "Acme, Inc",
        "ORG",
        {"Acme, Inc", "Acme", "ACME 集团"},
    )
    assert [r.row for r in done.rejected] == [2]


def test_search_folds_width_case_and_script_and_takes_wildcards_literally(database: Database) -> None:
    make_tenants(database)
    acme, office = load(database, {"name": "ACME-20"}, {"name": "后台_100%"})
    with database.read() as session:

        def found(text: str) -> list[str]:
            return [e.id for e in service.search_entities(session, SCOPE, text=text).items]

        assert found("ａｃｍｅ－２") == [acme]
        assert found("後臺") == [office]
        assert found("0%") == [office]
        assert found("a%e") == []


def test_pages_of_entities_hold_each_once(sqlite_database: Database) -> None:
    make_tenants(sqlite_database)
    ids = load(sqlite_database, *({"name": f"Entity {n}"} for n in range(7)))
    seen: list[str] = []
    cursor = None
    with sqlite_database.read() as session:
        while True:
            page = service.search_entities(session, SCOPE, text="entity", cursor=cursor, limit=3)
            seen += [e.id for e in page.items]
            if (cursor := page.next_cursor) is None:
                break
    assert sorted(seen) == sorted(ids)


def test_two_tenants_import_the_same_catalogue_apart(database: Database) -> None:
    make_tenants(database)
    (mine,), (theirs,) = load(database, {"name": "Acme"}), load(database, {"name": "Acme"}, scope=STRANGER)
    assert mine != theirs
    with database.write() as session:
        for call, more in (
            (service.get_entity, {}),
            (service.entity_events, {}),
            (service.patch_entity, {"blocked": True}),
            (service.merge_entities, {"others": [theirs]}),
            (service.split_entity, {"name": "x", "document_ids": ["doc_1"]}),
            (service.undo_entity, {}),
        ):
            with pytest.raises(NotFound):
                call(session, STRANGER, entity_id=mine, **more)
        with pytest.raises(NotFound):
            service.merge_entities(session, SCOPE, entity_id=mine, others=[theirs])
        assert service.search_entities(session, Scope(TENANT, (), "k")).items == ()


def test_mentions_are_counted_in_readable_live_documents_only(database: Database) -> None:
    collection_id = make_tenants(database)
    (acme,) = load(database, {"name": "Acme", "type": "ORG"})
    document_id = document_about(database, "Acme builds pumps. Acme sells pumps.")
    assert entity(database, acme).mentions == 2
    assert entity(database, acme, Scope(TENANT, (collection_id,), "k")).mentions == 2
    assert entity(database, acme, Scope(TENANT, ("col_other",), "k")).mentions == 0
    relink(database, document_id)
    assert entity(database, acme).mentions == 2
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=document_id)
    assert entity(database, acme).mentions == 0


def test_a_merge_holds_through_a_reprocess_and_can_be_undone(database: Database) -> None:
    make_tenants(database)
    acme, bolt = load(database, {"name": "Acme", "type": "ORG"}, {"name": "Bolt Ltd", "type": "ORG"})
    document_id = document_about(database, "Acme and Bolt Ltd build pumps.")
    with database.write() as session:
        assert service.merge_entities(session, SCOPE, entity_id=acme, others=[bolt]).mentions == 2
    assert entity(database, bolt).merged_into == acme
    relink(database, document_id)
    assert (entity(database, acme).mentions, entity(database, bolt).mentions) == (2, 0)
    with database.write() as session:
        with pytest.raises(Conflict):
            service.patch_entity(session, SCOPE, entity_id=bolt, name="x")
        service.undo_entity(session, SCOPE, entity_id=acme)
    assert (entity(database, acme).mentions, entity(database, bolt).mentions) == (1, 1)
    assert entity(database, bolt).merged_into is None


def test_a_split_holds_through_a_reprocess_and_can_be_undone(database: Database) -> None:
    make_tenants(database)
    (wang,) = load(database, {"name": "Wang Fang", "type": "PERSON"})
    here = document_about(database, "Wang Fang signed the lease.")
    there = document_about(database, "Wang Fang repaired the pump.")
    with database.write() as session:
        new = service.split_entity(
            session, SCOPE, entity_id=wang, name="Wang Fang (Lyon)", document_ids=[there]
        )
    assert (new.mentions, entity(database, wang).mentions) == (1, 1)
    relink(database, here)
    relink(database, there)
    assert (entity(database, new.id).mentions, entity(database, wang).mentions) == (1, 1)
    with database.write() as session:
        service.undo_entity(session, SCOPE, entity_id=wang)
    assert entity(database, wang).mentions == 2
    with pytest.raises(NotFound):
        entity(database, new.id)


def test_a_blocked_entity_is_linked_to_nothing_until_it_is_unblocked(database: Database) -> None:
    make_tenants(database)
    (acme,) = load(database, {"name": "Acme", "type": "ORG"})
    document_id = document_about(database, "Acme builds pumps.")
    with database.write() as session:
        service.patch_entity(session, SCOPE, entity_id=acme, blocked=True)
    assert entity(database, acme).mentions == 0
    with database.write() as session:
        service.undo_entity(session, SCOPE, entity_id=acme)
    assert entity(database, acme).mentions == 1
    with database.write() as session:
        service.patch_entity(session, SCOPE, entity_id=acme, blocked=True)
    relink(database, document_id)
    assert get(database, document_id).counts.entities == 0


def test_a_pinned_alias_moves_present_and_later_mentions(database: Database) -> None:
    make_tenants(database)
    text = "Acme builds pumps."
    acme, other = load(database, {"name": "Acme", "type": "ORG"}, {"name": "Acme Studio", "type": "ORG"})
    document_id = document_about(database, text)
    assert entity(database, acme).mentions == 1
    with database.write() as session:
        service.patch_entity(session, SCOPE, entity_id=other, pin_aliases=["ACME"])
    assert (entity(database, acme).mentions, entity(database, other).mentions) == (0, 1)
    relink(database, document_id)
    assert (entity(database, acme).mentions, entity(database, other).mentions) == (0, 1)


def test_undo_of_a_pin_gives_the_mentions_back(database: Database) -> None:
    make_tenants(database)
    acme, other = load(database, {"name": "Acme", "type": "ORG"}, {"name": "Acme Studio", "type": "ORG"})
    document_about(database, "Acme builds pumps.")
    with database.write() as session:
        service.patch_entity(session, SCOPE, entity_id=other, pin_aliases=["Acme"])
        service.undo_entity(session, SCOPE, entity_id=other)
    assert (entity(database, acme).mentions, entity(database, other).mentions) == (1, 0)
    assert entity(database, other).aliases == ("Acme Studio",)


def test_a_rename_survives_the_next_import_and_undo_restores_the_name(database: Database) -> None:
    make_tenants(database)
    row = {"id": "1", "name": "Acme"}
    (acme,) = load(database, row)
    with database.write() as session:
        service.patch_entity(session, SCOPE, entity_id=acme, name="Acme Group", description="makes pumps")
    load(database, row)
    assert entity(database, acme).name == "Acme Group"
    with database.write() as session:
        events = service.entity_events(session, SCOPE, entity_id=acme).items
        assert [e.action for e in events] == ["describe", "rename"]
        with pytest.raises(Conflict, match="newer"):
            service.undo_entity(session, SCOPE, entity_id=acme, event_id=events[1].id)
        service.undo_entity(session, SCOPE, entity_id=acme, event_id=events[0].id)
        service.undo_entity(session, SCOPE, entity_id=acme)
        with pytest.raises(Conflict, match="no override"):
            service.undo_entity(session, SCOPE, entity_id=acme)
    assert (entity(database, acme).name, entity(database, acme).aliases) == ("Acme", ("Acme",))


def test_merging_with_nothing_or_itself_is_refused(sqlite_database: Database) -> None:
    make_tenants(sqlite_database)
    (acme,) = load(sqlite_database, {"name": "Acme"})
    with sqlite_database.write() as session:
        for others in ([], [acme]):
            with pytest.raises(InvalidInput):
                service.merge_entities(session, SCOPE, entity_id=acme, others=others)
        with pytest.raises(InvalidInput):
            service.split_entity(session, SCOPE, entity_id=acme, name="x", document_ids=[])


def test_a_chain_of_merges_links_to_its_end(database: Database) -> None:
    make_tenants(database)
    a, b, c = load(database, {"name": "Ay"}, {"name": "Bee"}, {"name": "Cee"})
    with database.write() as session:
        service.merge_entities(session, SCOPE, entity_id=b, others=[a])
        service.merge_entities(session, SCOPE, entity_id=c, others=[b])
        known = load_catalogue(session, TENANT)
    (candidate,) = known.candidates("Ay")
    assert (candidate.entity.id, candidate.via) == (c, a)


def test_every_change_of_the_catalogue_changes_its_stamp(database: Database) -> None:
    make_tenants(database)
    stamps: list[tuple[int, int, int]] = []

    def note() -> None:
        with database.read() as session:
            stamps.append(catalogue_stamp(session, TENANT))

    note()
    a, b = load(database, {"name": "Ay"}, {"name": "Bee"})
    note()
    with database.write() as session:
        service.merge_entities(session, SCOPE, entity_id=a, others=[b])
    note()
    with database.write() as session:
        service.undo_entity(session, SCOPE, entity_id=a)
    note()
    load(database, {"name": "Ay", "aliases": ["Aye"]})
    note()
    assert len(set(stamps)) == 5
