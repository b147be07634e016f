from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy import select

from core.db import Database
from core.errors import Conflict, InvalidInput, NotFound
from core.models import DocumentRow, DocumentVersionRow, JobRow, PassageRow
from core.settings import get_settings
from core.types import DocumentStatus, JobStatus
from core.worker import Task
from ingest import recipe, reprocessing, service
from ingest.recipe import Recipe, changed_choices, parser_version
from ingest.reprocessing import Only, WalkStatus, top_up
from tests.ingest.lifecycle import SCOPE, get, jobs, make_live, make_tenants, run_waiting, upload

TEXT = "# Rules\n\n" + "\n\n".join(
    f"Rule {n} says that gate {n} opens at {n} o'clock sharp." for n in range(40)
)


def ready(db: Database, text: str, name: str = "rules.md") -> str:
    document_id = upload(db, text, name).document.id
    run_waiting(db, document_id)
    make_live(db, document_id)
    return document_id


def patch(db: Database, **changes: object) -> service.Collection:
    with db.write() as session:
        return service.patch_collection(session, SCOPE, collection="Handbook", **changes)


def start(db: Database, only: Only = Only.OUTDATED) -> tuple[service.Reprocess, bool]:
    with db.write() as session:
        return service.start_reprocess(session, SCOPE, collection="Handbook", only=only)


def walk(db: Database, walk_id: str) -> service.Reprocess:
    with db.read() as session:
        return service.get_reprocess(session, SCOPE, reprocess_id=walk_id)


def outdated(db: Database, wanted: bool | None = True) -> set[str]:
    with db.read() as session:
        return {d.id for d in service.list_documents(session, SCOPE, outdated=wanted).items}


def finish(db: Database, document_id: str) -> None:
    """The stages of the newest version, and what the index stage does at its end."""
    run_waiting(db, document_id)
    make_live(db, document_id, get(db, document_id).version)


# -- choices -----------------------------------------------------------------------------------


def test_choices_are_checked_merged_and_given_back() -> None:
    assert changed_choices({}, {"ocr": "off", "passage_tokens": 64}) == {"ocr": "off", "passage_tokens": 64}
    assert changed_choices({"ocr": "off", "keep_hidden": True}, {"ocr": None}) == {"keep_hidden": True}
    for bad in (
        {"ocr": "maybe"}, {"passage_tokens": 3}, {"passage_tokens": True}, {"unknown": 1},
        {"keep_hidden": "yes"}, {"passage_tokens": 400, "passage_max_tokens": 200},
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=r"parse\."):
            changed_choices({}, bad)


def test_recipe_takes_the_innermost_choice_and_changes_with_code_and_choices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = Recipe.of({})
    assert base.passage_tokens == get_settings().ingest.passage_tokens
    one = Recipe.of({"passage_tokens": 64, "keep_hidden": True}, {"passage_tokens": 32})
    assert (one.passage_tokens, one.keep_hidden) == (32, True)
    assert one.digest != base.digest == Recipe.of({}, {}).digest
    assert Recipe.of({"passage_max_tokens": 100}).passage_tokens == 100
    before = base.digest
    monkeypatch.setattr(recipe, "parser_version", lambda: "another")
    assert Recipe.of({}).digest != before


def test_a_collection_shows_its_choices_and_those_in_force(database: Database) -> None:
    make_tenants(database)
    changed = patch(database, parse={"passage_tokens": 64, "keep_hidden": True})
    assert changed.parse == {"keep_hidden": True, "passage_tokens": 64}
    assert changed.parse_in_force["passage_tokens"] == 64
    assert changed.parse_in_force["ocr"] == "auto"
    assert patch(database, parse={"keep_hidden": None}).parse == {"passage_tokens": 64}
    with pytest.raises(InvalidInput):
        patch(database, parse={"passage_tokens": 1})


# -- outdated ----------------------------------------------------------------------------------


def test_documents_are_outdated_once_the_choices_or_the_parsers_change(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenants(database)
    first, second = ready(database, TEXT), ready(database, "Another text.")
    seen = get(database, first)
    assert (seen.outdated, seen.parser_version) == (False, parser_version())
    assert seen.parse["passage_tokens"] == get_settings().ingest.passage_tokens
    assert outdated(database) == set()
    patch(database, parse={"passage_tokens": 32})
    assert outdated(database) == {first, second}
    assert outdated(database, wanted=False) == set()
    with database.write() as session:
        service.reprocess(session, SCOPE, document_id=first)
    assert outdated(database) == {second}  # it is being made anew
    finish(database, first)
    assert (outdated(database), outdated(database, wanted=False)) == ({second}, {first})
    patch(database, parse={"passage_tokens": None})
    assert outdated(database) == {first}
    monkeypatch.setattr(recipe, "parser_version", lambda: "newer")
    assert outdated(database) == {first, second}
    assert get(database, second).outdated


def test_choices_of_one_document_stand_above_its_collections(database: Database) -> None:
    make_tenants(database)
    document_id = ready(database, TEXT)
    coarse = get(database, document_id).counts.passages
    with database.write() as session:
        with pytest.raises(InvalidInput):
            service.reprocess(session, SCOPE, document_id=document_id, parse={"passage_tokens": 1})
        service.reprocess(session, SCOPE, document_id=document_id, parse={"passage_tokens": 24})
    finish(database, document_id)
    fine = get(database, document_id)
    assert fine.counts.passages > 2 * coarse
    patch(database, parse={"passage_tokens": 300})
    assert not get(database, document_id).outdated
    with database.write() as session:
        service.reprocess(session, SCOPE, document_id=document_id, parse={"passage_tokens": None})
    finish(database, document_id)
    assert get(database, document_id).parse["passage_tokens"] == 300


def test_a_failed_attempt_is_outdated_once_something_changes_and_the_old_version_stays(
    database: Database,
) -> None:
    make_tenants(database)
    document_id = ready(database, "Gate one opens at five.")
    with database.write() as session:
        blob = service.BlobStore.of().stage([b"%PDF-1.4 broken"], 1 << 20)
        service.new_version(session, SCOPE, document_id=document_id, blob=blob, file_name="gate.pdf")
    run_waiting(database, document_id)
    seen = get(database, document_id)
    assert (seen.status, seen.version, seen.live_version) == (DocumentStatus.FAILED, 2, 1)
    assert seen.error is not None
    assert not seen.outdated  # trying again would end the same
    with database.read() as session:
        content = service.document_content(session, SCOPE, document_id=document_id)
    assert (content.version, content.text) == (1, "Gate one opens at five.")
    patch(database, parse={"ocr": "off"})
    assert get(database, document_id).outdated


# -- walks -------------------------------------------------------------------------------------


def test_a_walk_makes_every_outdated_document_anew_behind_fresh_uploads(database: Database) -> None:
    make_tenants(database)
    ids = [ready(database, f"{TEXT}\n\nEdition {n}.") for n in range(5)]
    patch(database, parse={"passage_tokens": 32})
    begun, created = start(database)
    assert created
    assert (begun.total, begun.queued, begun.done, begun.status) == (5, 5, 0, WalkStatus.RUNNING)
    assert start(database) == (walk(database, begun.id), False)  # asked again: the same walk
    with pytest.raises(Conflict):
        start(database, Only.ALL)
    for document_id in ids:
        (job,) = [j for j in jobs(database, document_id) if j.status == JobStatus.WAITING.value]
        assert (job.gives_way, job.attempt_key) == (True, begun.id)
        assert get(database, document_id).live_version == 1
        run_waiting(database, document_id)
        assert [j.gives_way for j in jobs(database, document_id, Task.INDEX)] == [False, True]
        make_live(database, document_id, 2)
    seen = walk(database, begun.id)
    assert (seen.done, seen.failed, seen.status) == (5, 0, WalkStatus.RUNNING)
    assert top_up(database) == 0
    assert walk(database, begun.id).status is WalkStatus.DONE
    assert outdated(database) == set()
    again, created = start(database)
    assert (created, again.total, again.status) == (True, 0, WalkStatus.DONE)


def test_a_walk_keeps_a_window_goes_on_after_a_stop_and_ends_when_cancelled(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenants(database)
    monkeypatch.setattr(reprocessing, "_WINDOW", 2)
    ids = [ready(database, f"Text {n}.") for n in range(6)]
    begun, _ = start(database, Only.ALL)
    assert begun.queued == 2
    assert top_up(database) == 0  # the window is full
    with database.read() as session:
        taken = {j.subject_id for j in session.scalars(select(JobRow).where(JobRow.attempt_key == begun.id))}
    assert taken == set(ids[:2])
    finish(database, ids[0])
    assert top_up(database) == 1  # another process may do it: all it needs is in the row
    finish(database, ids[1])
    with database.write() as session:
        stopped = service.cancel_reprocess(session, SCOPE, reprocess_id=begun.id)
    assert (stopped.status, stopped.queued) == (WalkStatus.CANCELLED, 3)
    assert top_up(database) == 0
    finish(database, ids[2])
    assert [get(database, i).live_version for i in ids] == [2, 2, 2, 1, 1, 1]
    assert {get(database, i).status for i in ids} == {DocumentStatus.READY}
    assert start(database, Only.ALL)[0].total == 6


def test_a_walk_over_failed_documents_takes_only_those(database: Database) -> None:
    make_tenants(database)
    ready(database, "Fine.")
    broken = upload(database, b"%PDF-1.4 broken", "broken.pdf").document.id
    run_waiting(database, broken)
    begun, _ = start(database, Only.FAILED)
    assert (begun.total, begun.queued) == (1, 1)
    run_waiting(database, broken)
    assert walk(database, begun.id).failed == 1
    top_up(database)
    assert walk(database, begun.id).status is WalkStatus.DONE


def test_a_document_deleted_or_uploaded_anew_during_a_walk_is_skipped(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenants(database)
    monkeypatch.setattr(reprocessing, "_WINDOW", 1)
    ids = [ready(database, f"Text {n}.") for n in range(3)]
    begun, _ = start(database, Only.ALL)
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=ids[1])
        blob = service.BlobStore.of().stage([b"Newer."], 1 << 20)
        service.new_version(session, SCOPE, document_id=ids[2], blob=blob)
    finish(database, ids[0])
    assert top_up(database) == 0
    seen = walk(database, begun.id)
    assert (seen.status, seen.queued, seen.done, seen.skipped) == (WalkStatus.DONE, 1, 1, 2)


def test_walks_are_seen_inside_their_scope_only(sqlite_database: Database) -> None:
    make_tenants(sqlite_database)
    ready(sqlite_database, "Text.")
    begun, _ = start(sqlite_database, Only.ALL)
    with sqlite_database.write() as session:
        assert [w.id for w in service.list_reprocesses(session, SCOPE, collection="Handbook")] == [begun.id]
        other = SCOPE.narrowed(("col_other",))
        for call in (service.get_reprocess, service.cancel_reprocess):
            with pytest.raises(NotFound):
                call(session, other, reprocess_id=begun.id)


def test_passages_and_text_are_those_of_the_new_choices_only(database: Database) -> None:
    make_tenants(database)
    document_id = ready(database, TEXT)
    patch(database, parse={"passage_tokens": 32})
    begun, _ = start(database)
    finish(database, document_id)
    with database.read() as session:
        old, new = (session.get_one(DocumentVersionRow, (document_id, v)) for v in (1, 2))
        passages = session.scalars(select(PassageRow).where(PassageRow.version == 2)).all()
        assert session.get_one(DocumentRow, document_id).live_version == 2
    assert (old.text, old.blob_hash) == (new.text, new.blob_hash)
    assert old.recipe != new.recipe
    assert len(passages) == new.passage_count > old.passage_count
    assert begun.total == 1


def test_every_file_that_turns_bytes_into_passages_counts_in_the_parsers_version() -> None:
    code = (
        "import importlib, pkgutil, sys, ingest.parse\n"
        "for m in pkgutil.iter_modules(ingest.parse.__path__):\n"
        "    importlib.import_module(f'ingest.parse.{m.name}')\n"
        "import ingest.normalize, ingest.split\n"
        "print(*(m for m in sys.modules if m.startswith('ingest.') and not m.startswith('ingest.parse')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {m.removeprefix("ingest.") for m in done.stdout.split()} == set(recipe._DECIDES)
