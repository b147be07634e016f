"""Every route keeps to the filter, whether its index searches among ids or its results are cut down."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.db import Database
from core.models import DocumentRow, PassageRow
from core.settings import Settings
from core.types import Scope
from retrieval import pushdown
from retrieval.catalogues import LazyCatalogue
from retrieval.filters import parse_filters
from retrieval.manifest import IndexFolder
from retrieval.pushdown import Pushdown
from retrieval.searches import LazyQuestion, Searches
from tests.retrieval.indexing import Corpus

SCOPE = Scope("t1", None, "test")
FILTERS: list[dict[str, Any]] = [
    {},
    {"tags": ["even"]},
    {"not": {"tags": ["even"]}},
    {"metadata": {"n": {"gte": 3, "lt": 9}}, "any": [{"tags": ["third"]}, {"lang": ["zh"]}]},
    {"lang": ["zh"]},
    {"page": {"gt": 1}},
    {"metadata": {"n": 5}},
    {"tags": []},
    {"documents": ["doc0002", "doc0004"], "not": {"lang": ["zh"]}},
]


@pytest.fixture
def corpus(sqlite_database: Database, settings: Settings) -> Corpus:
    corpus = Corpus(sqlite_database, IndexFolder(settings.index_dir))
    for n in range(10):
        document = corpus.document(3, collection=f"c{n % 2}")
        with corpus.db.write() as session:
            row = session.get_one(DocumentRow, document)
            row.tags = [tag for tag, every in (("even", 2), ("third", 3)) if n % every == 0]
            row.meta = {"n": n}
            for passage in session.query(PassageRow).where(PassageRow.document_id == document):
                passage.lang = "zh" if passage.ordinal == 1 else "en"
                passage.page = passage.ordinal or None
        corpus.index(document)
    return corpus


def question(corpus: Corpus) -> LazyQuestion:
    """A question whose vector is made up; it is asked for its text and its vector only."""
    asked = SimpleNamespace(vector=corpus.query())
    return cast(LazyQuestion, SimpleNamespace(text="lantern passage1", get=lambda _model: asked))


def test_a_route_finds_exactly_what_the_filter_leaves(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pushed in (20_000, 10, 0):
        monkeypatch.setattr(pushdown, "MAX_FILTER_PASSAGES", pushed)
        for body in FILTERS:
            assert_routes_keep_to(corpus, body)


def assert_routes_keep_to(corpus: Corpus, body: dict[str, Any]) -> None:
    filters, wanted = parse_filters(body), set[int]()
    with corpus.db.read() as session:
        for p in session.query(PassageRow):
            d = session.get_one(DocumentRow, p.document_id)
            if {
                0: True, 1: "even" in d.tags, 2: "even" not in d.tags,
                3: 3 <= d.meta["n"] < 9 and ("third" in d.tags or p.lang == "zh"),
                4: p.lang == "zh", 5: (p.page or 0) > 1, 6: d.meta["n"] == 5, 7: False,
                8: d.id in ("doc0002", "doc0004") and p.lang != "zh",
            }[FILTERS.index(body)]:  # fmt: skip
                wanted.add(p.id)
    limits = Pushdown(corpus.db, SCOPE, filters)
    for k in (5, 100):
        searches = Searches(
            corpus.db, corpus.reader().snapshot(), SCOPE, question(corpus), filters, k, limits,
            LazyCatalogue(corpus.db, SCOPE.tenant_id),
        )  # fmt: skip
        for route in (searches.dense, searches.lexical):
            found = [hit.passage_id for hit in route()]
            assert len(found) == len(set(found)) == min(k, len(wanted))
            assert set(found) <= wanted


def test_a_filter_is_looked_up_once_for_all_routes(corpus: Corpus) -> None:
    limits = Pushdown(corpus.db, SCOPE, parse_filters({"tags": ["even"]}))
    first = limits.limits()
    assert first.passage_ids is not None
    assert len(first.passage_ids) == 15
    assert limits.limits() is first
