"""A filter means the same in SQL, on both databases, as in a few lines of Python; and its form is checked."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.db import Database
from core.errors import InvalidInput
from core.models import DocumentRow, PassageRow
from retrieval.filters import MAX_DEPTH, MAX_NODES, MAX_TERMS, MAX_VALUES, Filters, parse_filters
from retrieval.live import live_languages, live_passages, visible
from retrieval.query_repository import filtered_document_ids, live_passage_ids
from tests.retrieval.rows import add_document, add_entity, add_mention, add_tenant, scope_of

START = datetime(2026, 1, 1, tzinfo=UTC)
COMPARE = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
DOCUMENTS: list[dict[str, Any]] = [
    {"tags": ["a"], "trust": "high", "meta": {"year": 2019, "plant": "north"}, "lang": "en"},
    {
        "tags": ["a", "b"],
        "trust": "normal",
        "meta": {"year": 2020, "plant": "south", "ok": True},
        "lang": "zh",
    },
    {"tags": [], "trust": "low", "meta": {"year": "2020", "plant": None, "when": "2026-03-01"}, "lang": "en"},
    {
        "tags": ["备份"],
        "trust": "normal",
        "meta": {"year": 2020.5, "ok": False, 'o\'k "q" $.a': 1},
        "lang": "und",
    },
    {
        "tags": ["b"],
        "trust": "high",
        "meta": {"year": 1, "plant": "北厂", "when": "2026-01-15"},
        "lang": "zh",
    },
    {
        "tags": ["x"],
        "trust": "normal",
        "meta": {"plant": ["north"], "ok": 1, "when": {"year": 2020}},
        "lang": "en",
    },
]


@dataclass
class Stored:
    """A passage as the oracle sees it."""

    id: int
    document: str
    tags: list[str]
    trust: str
    meta: dict[str, Any]
    lang: str
    page: int | None
    made: datetime
    entities: set[str]


@dataclass
class World:
    db: Database
    tenant: str
    passages: list[Stored]
    entities: list[str]


@pytest.fixture
def world(database: Database) -> World:
    passages: list[Stored] = []
    with database.write() as session:
        tenant, collection = add_tenant(session, "a")
        entities = [add_entity(session, tenant, name) for name in ("Alpha", "Beta")]
        for n, own in enumerate(DOCUMENTS):
            document, ids = add_document(
                session, tenant, collection, ["one", "two", "three"],
                tags=own["tags"], trust=own["trust"], meta=own["meta"], lang=own["lang"],
            )  # fmt: skip
            row = session.get_one(DocumentRow, document)
            row.created_at = row.updated_at = START + timedelta(days=n)
            for ordinal, passage_id in enumerate(ids):
                page = None if n == 0 else ordinal + 1
                session.get_one(PassageRow, passage_id).page = page
                mentioned = {entities[0]} if ordinal == n % 3 else {entities[1]} if ordinal == 2 else set()
                for entity in mentioned:
                    add_mention(session, tenant, passage_id, entity, 0.9)
                passages.append(
                    Stored(
                        passage_id, document, own["tags"], own["trust"], own["meta"], own["lang"], page,
                        START + timedelta(days=n), mentioned,
                    )
                )  # fmt: skip
    return World(database, tenant, passages, entities)


# -- the oracle --------------------------------------------------------------------------------


def equal(stored: Any, wanted: Any) -> bool:
    if isinstance(stored, bool) or isinstance(wanted, bool):
        return isinstance(stored, bool) and isinstance(wanted, bool) and stored == wanted
    if isinstance(stored, list | dict):
        return False
    return isinstance(stored, str) == isinstance(wanted, str) and stored == wanted


def inside(stored: Any, name: str, bound: Any) -> bool:
    if isinstance(stored, bool) or not isinstance(stored, str | int | float):
        return False
    return isinstance(stored, str) == isinstance(bound, str) and COMPARE[name](stored, bound)


def field_passes(meta: Mapping[str, Any], name: str, wanted: Any) -> bool:
    stored = meta.get(name)
    if not isinstance(wanted, dict):
        return stored is not None and equal(stored, wanted)
    checks = []
    for key, value in wanted.items():
        if key == "in":
            checks.append(stored is not None and any(equal(stored, one) for one in value))
        elif key == "exists":
            checks.append((stored is not None) == value)
        else:
            checks.append(inside(stored, key, value))
    return all(checks)


def lets_through(body: Mapping[str, Any], p: Stored) -> bool:
    def times(bounds: Mapping[str, str]) -> bool:
        return all(COMPARE[k](p.made, datetime.fromisoformat(v)) for k, v in bounds.items())

    checks = {
        "documents": lambda v: p.document in v,
        "tags": lambda v: bool(set(v) & set(p.tags)),
        "trust": lambda v: p.trust in v,
        "lang": lambda v: p.lang in v,
        "entities": lambda v: bool(set(v) & p.entities),
        "metadata": lambda v: all(field_passes(p.meta, name, wanted) for name, wanted in v.items()),
        "created_at": times,
        "updated_at": times,
        "page": lambda v: p.page is not None and all(COMPARE[k](p.page, b) for k, b in v.items()),
        "all": lambda v: all(lets_through(one, p) for one in v),
        "any": lambda v: any(lets_through(one, p) for one in v),
        "not": lambda v: not lets_through(v, p),
    }
    return all(checks[key](value) for key, value in body.items())


# -- filters to try ----------------------------------------------------------------------------


def filters_of(world: World) -> st.SearchStrategy[dict[str, Any]]:
    documents = sorted({p.document for p in world.passages})

    def some(*values: Any) -> st.SearchStrategy[list[Any]]:
        return st.lists(st.sampled_from(values), max_size=3)

    scalars = st.sampled_from(
        [2019, 2020, 2020.0, 2020.5, "2020", 1, True, False, "north", "北厂", "2026-01-15", ""]
    )
    bounds = st.sampled_from([2019, 2020, 2020.25, "2020", "2026-02-01", "北", "a"])
    condition = st.fixed_dictionaries(
        {},
        optional={"in": st.lists(scalars, max_size=3), "exists": st.booleans(), "gt": bounds, "lte": bounds},
    ).filter(bool)
    names = st.sampled_from(["year", "plant", "ok", "when", "missing", 'o\'k "q" $.a'])
    moments = st.integers(-1, 7).map(lambda day: (START + timedelta(days=day)).isoformat())
    pages = st.integers(0, 4)
    leaf = st.fixed_dictionaries(
        {},
        optional={
            "documents": some(*documents[:3], "doc_unknown"),
            "tags": some("a", "b", "备份", "nothing"),
            "trust": some("high", "normal", "low"),
            "lang": some("en", "zh", "und"),
            "entities": some(*world.entities, "ent_unknown"),
            "metadata": st.dictionaries(names, scalars | condition, max_size=2),
            "created_at": st.dictionaries(st.sampled_from(["gt", "gte"]), moments, min_size=1),
            "updated_at": st.dictionaries(st.sampled_from(["lt", "lte"]), moments, min_size=1),
            "page": st.dictionaries(st.sampled_from(list(COMPARE)), pages, min_size=1),
        },
    ).map(lambda body: dict(list(body.items())[:3]))

    def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        lists = st.lists(inner, max_size=3)
        wrapped = st.fixed_dictionaries({}, optional={"all": lists, "any": lists, "not": inner})
        return st.builds(lambda a, b: {**a, **b}, leaf, wrapped)

    return st.recursive(leaf, nested, max_leaves=6)


def test_a_filter_means_what_the_oracle_says_wherever_it_is_applied(world: World) -> None:
    scope = scope_of(world.tenant)
    every = [p.id for p in world.passages]

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(filters_of(world))
    def check(body: dict[str, Any]) -> None:
        filters = parse_filters(json.loads(json.dumps(body)))
        expected = {p.id for p in world.passages if lets_through(body, p)}
        with world.db.read() as session:
            assert set(live_passage_ids(session, scope, filters, limit=100) or ()) == expected
            assert set(live_passages(session, scope, every, filters)) == expected
            assert set(live_languages(session, scope, every, filters)) == expected
            documents = filtered_document_ids(session, scope, filters)
        if documents is not None:
            assert {p.id for p in world.passages if p.document in documents} == expected

    check()


def test_a_passages_own_conditions_are_never_taken_for_its_documents(world: World) -> None:
    with world.db.read() as session:
        for body in ({"entities": world.entities}, {"page": {"gte": 2}}, {"not": {"lang": ["en"]}}):
            assert filtered_document_ids(session, scope_of(world.tenant), parse_filters(body)) is None


# -- the form ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"colour": ["red"]},
        {"tags": "a"},
        {"tags": [1]},
        {"tags": ["\x00"]},
        {"tags": ["\ud800"]},
        {"documents": ["d"] * (MAX_VALUES + 1)},
        {"lang": ["fr"]},
        {"metadata": ["x"]},
        {"metadata": {"year": None}},
        {"metadata": {"year": {}}},
        {"metadata": {"year": {"near": 3}}},
        {"metadata": {"year": {"in": 3}}},
        {"metadata": {"year": {"in": None}}},
        {"metadata": {"year": {"gte": None}}},
        {"metadata": {"year": {"exists": None, "lt": 3}}},
        {"metadata": {"year": {"exists": "yes"}}},
        {"metadata": {"year": {"gt": True}}},
        {"metadata": {"year": float("nan")}},
        {"metadata": {"year": 1 << 80}},
        {"metadata": {"ye\x00ar": 1}},
        {"created_at": "2026"},
        {"created_at": {}},
        {"created_at": {"gt": "yesterday"}},
        {"created_at": {"gt": "0001-01-01T00:00:00+14:00"}},
        {"updated_at": {"lt": "9999-12-31T23:59:59-14:00"}},
        {"created_at": {"after": "2026-01-01"}},
        {"page": {"gt": 1.5}},
        {"page": {"gt": 1 << 40}},
        {"any": {"tags": ["a"]}},
        {"any": ["a"]},
        {"not": [{"tags": ["a"]}]},
        {"all": [{"colour": 1}]},
        {"any": [{}] * MAX_NODES},
        {"any": [{"tags": ["a"] * MAX_VALUES}] * (MAX_TERMS // MAX_VALUES), "tags": ["b"]},
        {"any": [{"metadata": {str(n): n for n in range(60)}}] * 9},
    ],
)
def test_a_filter_of_another_shape_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        parse_filters(body)


@pytest.mark.parametrize("condition", ["tags", "metadata"])
def test_the_widest_filter_is_a_short_statement(world: World, condition: str) -> None:
    values = [f"t{n}" for n in range(MAX_VALUES - 1)]
    one: dict[str, Any] = {"tags": values} if condition == "tags" else {"metadata": {"plant": {"in": values}}}
    filters = parse_filters({"all": [{"not": one}] * (MAX_TERMS // MAX_VALUES)})
    with world.db.read() as session:
        scope = scope_of(world.tenant)
        told = str(visible(scope, filters, dialect=session.get_bind().dialect.name))
        assert (
            told.count("EXISTS") == MAX_TERMS // MAX_VALUES
        )  # each value of its own held a worker for minutes
        assert len(live_passage_ids(session, scope, filters, limit=100) or ()) == 18


def test_depth_is_limited() -> None:
    body: dict[str, Any] = {}
    for _ in range(MAX_DEPTH - 1):
        body = {"not": body}
    parse_filters(body)
    with pytest.raises(InvalidInput, match="deep"):
        parse_filters({"not": body})


def test_an_empty_filter_lets_everything_through_and_an_empty_list_nothing(world: World) -> None:
    assert parse_filters({}) == Filters()
    assert parse_filters({}).empty
    with world.db.read() as session:
        scope = scope_of(world.tenant)
        for body, count in (
            ({}, 18),
            ({"all": []}, 18),
            ({"any": []}, 0),
            ({"tags": []}, 0),
            ({"not": {}}, 0),
        ):
            assert len(live_passage_ids(session, scope, parse_filters(body), limit=100) or ()) == count
