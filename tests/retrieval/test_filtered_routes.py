"""Every route against a brute-force oracle: random filters, two tenants, and corpora of any size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from core.db import Database
from core.models import DocumentRow, PassageRow
from core.settings import Settings, get_settings
from core.types import Lang, Route, Scope
from retrieval.catalogues import LazyCatalogue
from retrieval.filters import Filters, parse_filters
from retrieval.manifest import IndexFolder
from retrieval.profile import built_in
from retrieval.pushdown import Pushdown
from retrieval.recall import Stopwatch, recall_and_fuse
from retrieval.searches import LazyQuestion, Searches
from tests.retrieval.indexing import Corpus
from tests.retrieval.rows import add_entity, add_mention

TENANT = "t1"
TEXT = "Which lantern has Alpha, doc0003 or doc0008?"


@dataclass
class World:
    corpus: Corpus
    alpha: str
    facts: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])


@pytest.fixture
def world(sqlite_database: Database, settings: Settings) -> World:
    corpus = Corpus(sqlite_database, IndexFolder(settings.index_dir))
    made = World(corpus, "")
    for n in range(10):
        tenant = TENANT if n < 8 else "t2"
        document = corpus.document(3, tenant=tenant, collection=f"{tenant}c{n % 2}")
        with corpus.db.write() as session:
            made.alpha = made.alpha or add_entity(session, TENANT, "Alpha")
            row = session.get_one(DocumentRow, document)
            row.tags = [tag for tag, every in (("even", 2), ("third", 3)) if n % every == 0]
            row.meta = {"n": n}
            for passage in session.query(PassageRow).where(PassageRow.document_id == document):
                passage.lang = "zh" if passage.ordinal == 1 else "en"
                passage.page = passage.ordinal + 1
                named = tenant == TENANT and (n + passage.ordinal) % 3 == 0
                if named:
                    add_mention(session, TENANT, passage.id, made.alpha, 0.9)
                made.facts[passage.id] = {
                    "tenant": tenant, "document": document, "tags": set(row.tags), "n": n,
                    "lang": passage.lang, "page": passage.page, "named": named,
                }  # fmt: skip
        corpus.index(document)
    return made


def lets_through(body: Mapping[str, Any], p: Mapping[str, Any], alpha: str) -> bool:
    checks = {
        "documents": lambda v: p["document"] in v,
        "tags": lambda v: bool(set(v) & p["tags"]),
        "lang": lambda v: p["lang"] in v,
        "page": lambda v: p["page"] > v["gt"],
        "metadata": lambda v: v["n"]["gte"] <= p["n"] < v["n"]["lt"],
        "entities": lambda v: alpha in v and p["named"],
        "all": lambda v: all(lets_through(one, p, alpha) for one in v),
        "any": lambda v: any(lets_through(one, p, alpha) for one in v),
        "not": lambda v: not lets_through(v, p, alpha),
    }
    return all(checks[key](value) for key, value in body.items())


def bodies(alpha: str) -> st.SearchStrategy[dict[str, Any]]:
    def some(*values: str) -> st.SearchStrategy[list[str]]:
        return st.lists(st.sampled_from(values), max_size=3)

    between = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda p: {"n": {"gte": p[0], "lt": p[1]}})
    leaf = st.fixed_dictionaries(
        {},
        optional={
            "documents": some("doc0001", "doc0003", "doc0004", "doc0009"),
            "tags": some("even", "third", "none"),
            "lang": some("en", "zh"),
            "page": st.integers(0, 3).map(lambda n: {"gt": n}),
            "metadata": between,
            "entities": some(alpha, "ent_unknown"),
        },
    ).map(lambda body: dict(list(body.items())[:2]))

    def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        lists = st.lists(inner, max_size=2)
        wrapped = st.fixed_dictionaries({}, optional={"all": lists, "any": lists, "not": inner})
        return st.builds(lambda a, b: {**a, **b}, leaf, wrapped)

    return st.recursive(leaf, nested, max_leaves=4)


def asked(vector: np.ndarray) -> LazyQuestion:
    """A question whose vector is made up."""
    known = SimpleNamespace(vector=vector, lang=Lang.EN)
    return cast(LazyQuestion, SimpleNamespace(text=TEXT, get=lambda _model: known))


def test_every_route_gives_what_the_oracle_lets_through(world: World) -> None:
    reader, ids = world.corpus.reader(), sorted(world.facts)
    rows = np.stack([world.corpus.vectors[i] for i in ids])

    def nearest(vector: np.ndarray, wanted: set[int], k: int) -> list[int]:
        order = sorted((-float(rows[n] @ vector), i) for n, i in enumerate(ids))
        return [i for _, i in order if i in wanted][:k]

    @example_settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(bodies(world.alpha), st.integers(0, 10_000), st.sampled_from([1, 5, 1000]), st.booleans())
    def check(body: dict[str, Any], seed: int, k: int, narrowed: bool) -> None:
        filters = parse_filters(body)
        inside = ("t1c0",) if narrowed else None
        scope = Scope(TENANT, inside, "test")
        wanted = {
            i
            for i, p in world.facts.items()
            if p["tenant"] == TENANT
            and (inside is None or world.corpus.owner[i][1] in inside)
            and lets_through(body, p, world.alpha)
        }
        vector = np.random.default_rng(seed).standard_normal(rows.shape[1]).astype(np.float32)
        vector /= np.linalg.norm(vector)
        searches = Searches(
            world.corpus.db, reader.snapshot(), scope, asked(vector), filters, k,
            Pushdown(world.corpus.db, scope, filters), LazyCatalogue(world.corpus.db, scope.tenant_id),
        )  # fmt: skip
        found = {route: [h.passage_id for h in search()] for route, search in searches.by_route().items()}
        assert set(found) == set(Route)
        for route, own in found.items():
            assert set(own) <= wanted, route
            assert len(own) == len(set(own))
            assert len(own) <= k or route is Route.CODE, "a code is exact: all that have it come"
        assert found[Route.DENSE] == nearest(vector, wanted, k)
        moved = replace(searches, centre=0.5 * rows[0]).by_route()
        assert set(moved) == {Route.DENSE}, "what does not go by the vector is not asked again"
        again = [h.passage_id for h in moved[Route.DENSE]()]
        assert again == nearest(vector - 0.5 * rows[0], wanted, k)
        assert len(found[Route.LEXICAL]) == min(k, len(wanted))
        named = {i for i in wanted if world.facts[i]["named"]}
        assert len(found[Route.ENTITY]) == min(k, len(named))
        assert set(found[Route.ENTITY]) <= named
        coded = {i for i in wanted if world.facts[i]["document"] in ("doc0003", "doc0008")}
        assert set(found[Route.CODE]) == coded

    check()


@pytest.mark.parametrize("passages", [0, 1, 7])
@pytest.mark.parametrize("shown", [1, 10, 1000])
def test_a_search_gives_what_there_is_however_much_is_asked_for(
    passages: int, shown: int, sqlite_database: Database, settings: Settings
) -> None:
    corpus = Corpus(sqlite_database, IndexFolder(settings.index_dir))
    if passages:
        corpus.index(corpus.document(passages))
    own = get_settings().retrieval
    merged = recall_and_fuse(
        corpus.db, corpus.reader(), Scope(TENANT, None, "test"), asked(corpus.query()), Filters(),
        4 * shown, own, Stopwatch(), built_in(own),
    )  # fmt: skip
    found = [one.passage_id for one in merged.fused]
    assert len(found) == len(set(found)) >= min(shown, passages)
    assert found == [i for i in found if i > 0], "no padding of an index comes through"
