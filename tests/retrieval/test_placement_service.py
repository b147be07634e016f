"""Pins, plans and moves as rows, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select

from core.db import Database, utcnow
from core.errors import InvalidInput, NotFound
from core.models import DocumentPlacementRow, DocumentRow, DocumentVersionRow, MoveRow, TierRow
from core.settings import get_settings
from core.types import Role, Scope, Tier
from retrieval import moves as move_rows
from retrieval import placement_service as placing
from retrieval.moves import MoveEvent, list_moves
from retrieval.placement import DocumentPlacement
from retrieval.placement_repository import budgets
from tests.retrieval.rows import add_collection, add_document, add_tenant

NOW = utcnow()
OLD = NOW - timedelta(days=400)


class Shelf:
    """Two collections of two documents; documents with an age and uses."""

    def __init__(self, db: Database) -> None:
        self.db = db
        with db.write() as session:
            self.tenant, self.collection = add_tenant(session, "t")
            self.other = add_collection(session, self.tenant, "other")
        self.operator = Scope(self.tenant, None, "key_op", Role.OPERATOR)

    def add(self, collection: str | None = None, *, at: datetime = OLD, uses: float = 0, tier: str = "hot"):
        with self.db.write() as session:
            document, _ = add_document(session, self.tenant, collection or self.collection, ["a", "b"])
            row = session.get_one(DocumentRow, document)
            row.created_at, row.tier = at, tier
            session.get_one(DocumentVersionRow, (document, 1)).passage_count = 2
            if uses:
                session.add(DocumentPlacementRow(document_id=document, score=uses, scored_at=NOW))
        return document

    def place(self, target: str | None, tier: str = "auto", *, dry_run: bool = False) -> placing.Placing:
        with self.db.write() as session:
            return placing.place(session, self.operator, target=target, tier=tier, dry_run=dry_run)

    def round(self, now: datetime = NOW) -> int:
        return placing.round_of_moves(self.db, now)

    def moves(self, **filters: object) -> list[MoveEvent]:
        with self.db.read() as session:
            return list_moves(session, self.operator, **filters)  # type: ignore[arg-type] - test shorthand

    def wanted(self, document: str) -> str | None:
        with self.db.read() as session:
            return session.get_one(DocumentRow, document).wanted_tier

    def arrive(self) -> None:
        """What the index writer does once the documents are served from where they are wanted."""
        with self.db.write() as session:
            for row in session.scalars(select(DocumentRow).where(DocumentRow.wanted_tier.is_not(None))):
                row.tier, row.wanted_tier = row.wanted_tier, None


@pytest.fixture
def shelf(database: Database, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setenv("GEO_PLACEMENT__ROOMY_VECTORS", "0")
    get_settings.cache_clear()
    return Shelf(database)


def test_a_round_begins_moves_and_the_next_ones_settle_them(shelf: Shelf) -> None:
    idle, used, new = shelf.add(), shelf.add(uses=5), shelf.add(at=NOW)
    assert shelf.round() == 1
    (event,) = shelf.moves()
    assert (event.document_id, event.from_tier, event.to_tier) == (idle, "hot", "cold")
    assert (event.reason, event.status, event.moved_by, event.vectors) == ("idle", "planned", "policy", 2)
    assert event.facts["age_days"] == 400
    assert (shelf.wanted(idle), shelf.wanted(used), shelf.wanted(new)) == ("cold", None, None)
    assert shelf.round() == 0, "a move under way counts as made"
    shelf.arrive()
    assert shelf.round() == 0
    (event,) = shelf.moves()
    assert (event.status, event.finished_at is not None) == ("done", True)
    assert shelf.round(NOW + timedelta(days=1)) == 0


def test_a_round_moves_a_few_documents_at_a_time(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEO_PLACEMENT__MOVES_PER_ROUND", "2")
    get_settings.cache_clear()
    for _ in range(5):
        shelf.add()
    assert [shelf.round() for _ in range(4)] == [2, 2, 1, 0]


def test_a_round_that_is_killed_before_its_commit_leaves_nothing_behind(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = shelf.add()
    record = move_rows.record_moves

    def killed(*args: object) -> None:
        record(*args)  # type: ignore[arg-type] - passed on as it came
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(move_rows, "record_moves", killed)
        with pytest.raises(RuntimeError):
            shelf.round()
    assert (shelf.moves(), shelf.wanted(document)) == ([], None)
    assert shelf.round() == 1


def test_a_pinned_document_moves_at_once_and_stays(shelf: Shelf) -> None:
    document = shelf.add(uses=9)
    placed = shelf.place(document, "cold")
    assert (placed.documents, placed.vectors, placed.target) == (1, 2, document)
    assert (placed.moves[0].reason, shelf.wanted(document)) == ("pinned", "cold")
    shelf.arrive()
    assert shelf.round(NOW + timedelta(days=30)) == 0
    assert shelf.place(document, "cold").documents == 0
    back = shelf.place(document, "auto")
    assert (back.moves[0].to_tier, back.moves[0].reason) == ("hot", "used")
    assert [m.moved_by for m in shelf.moves()] == ["key_op", "key_op"]


def test_a_pinned_collection_moves_all_its_documents_and_keeps_a_version(shelf: Shelf) -> None:
    mine = {shelf.add(), shelf.add(at=NOW)}
    theirs = shelf.add(shelf.other, at=NOW)
    assert {m.document_id for m in shelf.place(shelf.collection, "warm").moves} == mine
    assert shelf.wanted(theirs) is None
    with shelf.db.read() as session:
        found = placing.get_policy(session, shelf.operator, collection="handbook")
    assert (found.version, found.policy.pinned, found.created_by) == (1, "warm", "key_op")
    shelf.place("handbook", "warm")
    shelf.place("handbook", "auto")
    with shelf.db.read() as session:
        found = placing.get_policy(session, shelf.operator, collection=shelf.collection)
    assert (found.version, found.policy.pinned) == (2, None)


def test_a_dry_run_tells_what_would_move_and_changes_nothing(shelf: Shelf) -> None:
    idle, new = shelf.add(), shelf.add(at=NOW)
    told = shelf.place(None, dry_run=True)
    assert [m.document_id for m in told.moves] == [idle]
    assert told.counts == {"hot → cold": 1, "idle": 1}
    told = shelf.place(new, "cold", dry_run=True)
    assert ([m.document_id for m in told.moves], told.others) == ([new], 1)
    assert (shelf.moves(), shelf.wanted(new)) == ([], None)
    with shelf.db.read() as session:
        assert session.scalars(select(DocumentPlacementRow)).all() == []


def test_another_choice_meanwhile_replaces_the_open_move(shelf: Shelf) -> None:
    document = shelf.add(at=NOW)
    shelf.place(document, "cold")
    shelf.place(document, "warm")
    assert shelf.wanted(document) == "warm"
    assert [(m.to_tier, m.status) for m in shelf.moves()] == [("warm", "planned"), ("cold", "superseded")]
    shelf.place(document, "hot")
    assert shelf.wanted(document) is None
    assert {m.status for m in shelf.moves()} == {"superseded"}


def test_a_move_that_has_arrived_is_done_when_another_follows_before_a_round(shelf: Shelf) -> None:
    document = shelf.add(at=NOW)
    shelf.place(document, "cold")
    shelf.arrive()
    shelf.place(document, "warm")
    told = [(m.from_tier, m.to_tier, m.status) for m in shelf.moves()]
    assert told == [("cold", "warm", "planned"), ("hot", "cold", "done")]


def test_moves_of_documents_that_go_are_dropped(shelf: Shelf) -> None:
    document = shelf.add()
    shelf.round()
    with shelf.db.write() as session:
        row = session.get_one(DocumentRow, document)
        row.status, row.live_version = "deleting", None
    shelf.round()
    assert [m.status for m in shelf.moves()] == ["dropped"]
    with shelf.db.write() as session:
        session.delete(session.get_one(DocumentRow, document))
    assert [m.document_name for m in shelf.moves()] == [None]
    assert shelf.round(NOW + timedelta(days=91)) == 0
    assert shelf.moves() == []


def test_moves_are_listed_newest_first_with_filters_and_only_for_their_tenant(shelf: Shelf) -> None:
    first, second = shelf.add(), shelf.add(shelf.other, at=NOW)
    shelf.round()
    shelf.place(second, "warm")
    assert [m.document_id for m in shelf.moves()] == [second, first]
    for filters, expected in (
        ({"collection": shelf.other}, [second]),
        ({"document": first}, [first]),
        ({"tier": "cold"}, [first]),
        ({"tier": "hot"}, [second, first]),
        ({"reason": "pinned"}, [second]),
        ({"status": "done"}, []),
        ({"before": shelf.moves()[0].id}, [first]),
        ({"limit": 1}, [second]),
    ):
        assert [m.document_id for m in shelf.moves(**filters)] == expected, filters
    with shelf.db.read() as session:
        assert list_moves(session, Scope("elsewhere", None, "k", Role.ADMIN)) == []
        assert list_moves(session, Scope("", None, "k", Role.OPERATOR)) == []


def test_targets_are_found_by_id_everywhere_by_name_at_home_and_else_not(shelf: Shelf) -> None:
    with shelf.db.write() as session:
        tenant, _ = add_tenant(session, "elsewhere")
    away = Scope(tenant, None, "key_away", Role.OPERATOR)
    admin = Scope(tenant, None, "key_admin", Role.ADMIN)
    with shelf.db.read() as session:
        assert placing.get_policy(session, away, collection=shelf.collection).version == 0
        for scope, name in ((admin, shelf.collection), (away, "other"), (shelf.operator, "none")):
            with pytest.raises(NotFound):
                placing.get_policy(session, scope, collection=name)


def test_only_a_target_can_be_pinned(shelf: Shelf) -> None:
    with pytest.raises(InvalidInput, match="Name a collection"):
        shelf.place(None, "cold")
    with pytest.raises(InvalidInput, match="lukewarm"):
        shelf.place(shelf.collection, "lukewarm")


def test_versions_of_a_policy_count_up_and_the_same_words_make_none(shelf: Shelf) -> None:
    def put(**body: float) -> int:
        with shelf.db.write() as session:
            return placing.put_policy(session, shelf.operator, collection="handbook", body=body).version

    assert [put(hot_days=5), put(hot_days=5), put(hot_days=6)] == [1, 1, 2]
    document = shelf.add(at=NOW - timedelta(days=10))
    shelf.round()
    assert shelf.wanted(document) == "warm"


def test_one_move_of_a_document_is_open_at_a_time(shelf: Shelf) -> None:
    document = shelf.add()
    for tier in ("cold", "warm", "cold"):
        shelf.place(document, tier)
    with shelf.db.read() as session:
        rows = session.scalars(select(MoveRow).where(MoveRow.open_key.is_not(None))).all()
    assert [r.to_tier for r in rows] == ["cold"]
    assert utcnow().tzinfo is UTC


def test_a_budget_in_bytes_is_one_in_vectors_of_what_they_take(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEO_PLACEMENT__HOT_BYTES", str(100 * (2 * 384 + 146)))
    monkeypatch.setenv("GEO_PLACEMENT__WARM_BYTES", "1000000")
    monkeypatch.setenv("GEO_PLACEMENT__WARM_VECTORS", "5")
    get_settings.cache_clear()

    def document(vectors: int) -> DocumentPlacement:
        return DocumentPlacement("d", "c", "t", Tier.HOT, vectors, 0.0, utcnow())

    with shelf.db.write() as session:
        session.execute(delete(TierRow))
        assert budgets(session, []).hot is None, "nothing was indexed: there is no width yet"
        session.add(TierRow(tier="hot", dimension=384, ram_bytes=20_000 * 1000))
        session.flush()
        assert budgets(session, [document(10)]).hot == 100, "by the width while there are few"
        assert budgets(session, [document(20_000)]).hot == 100 * (2 * 384 + 146) // 1000, "as measured"
        assert budgets(session, []).warm == 5, "the smaller of both"
        session.rollback()
