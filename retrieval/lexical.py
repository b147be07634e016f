"""The lexical route on tantivy: BM25 over our own tokens, filtered inside the query.

Questions are built from terms and never parsed, so no character of a question is syntax. Published folders
never change (`retrieval/lexical_store.py`), so a reader is one generation and stays it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import tantivy

from retrieval.analyzer import VERSION, question_tokens
from retrieval.lexical_writer import scope_number, with_analyzer
from retrieval.spelling import may_be_misspelt, with_spellings

_HEADING_BOOST = 0.6  # of the field that headings had in version 1 of the tokens; now they stand in the body
_MAX_TERMS = 96  # distinct terms of a question that count; a longer question's rarest ones are kept
# A scope above this share of the index is cut out of the results: a filter inside the query is looked up for
# every match, which costs more than a few results too many. Even near a quarter at 100,000.
_WIDE_SCOPE = 0.3
_SPARE = 1.2  # results asked for per result expected inside a wide scope
_SHOULD = tantivy.Occur.Should
_SHARES = 1024  # scopes per generation whose size is remembered
_ID, _SCORE = itemgetter(0), itemgetter(1)


class LexicalReader:
    """Searches one folder as it is when opened; safe from many threads.

    Args:
        folder: of a tantivy index.
        analyzer: the version of the tokens that it holds.

    Raises:
        ValueError: the folder holds no index that can be read.
    """

    def __init__(self, folder: Path, *, analyzer: int = VERSION) -> None:
        self._analyzer = analyzer
        self._fields = ("body", "heading") if analyzer == 1 else ("body",)
        self._index = with_analyzer(tantivy.Index.open(str(folder)))
        self._index.config_reader(reload_policy="Manual")
        self._index.reload()
        self._schema = self._index.schema
        self._searcher: Any = self._index.searcher()
        self._columns = _has_columns(self._searcher)
        self._inside: dict[tuple[str, tuple[str, ...] | None], int] = {}

    def count(self) -> int:
        """Live passages."""
        return int(self._searcher.num_docs)

    def segment_count(self) -> int:
        """Segments of the index: each is searched from the beginning, so few are faster than many."""
        return int(self._searcher.num_segments)

    def ids(self) -> set[int]:
        """Passage ids of all live passages, for checks."""
        if not self.count():
            return set()
        found = self._searcher.search(tantivy.Query.all_query(), limit=self.count(), count=False).hits
        return set(self._column("passage_id", found))

    def search(
        self,
        question: str | Mapping[str, float],
        k: int,
        *,
        tenant_id: str,
        collection_ids: Sequence[str] | None,
        document_ids: Sequence[str] | None = None,
        passage_ids: Sequence[int] | None = None,
        beside: Mapping[str, float] | None = None,
    ) -> list[tuple[int, float]]:
        """The best `k` passages of the scope, best first, as (passage id, BM25 score).

        Statistics are those of the whole index, so a filter does not change a score.

        Args:
            question: free text, in which nothing is syntax; or tokens with their weights.
            k: how many at most.
            tenant_id: required; the empty string finds nothing.
            collection_ids: None means all of the tenant; an empty sequence finds nothing.
            document_ids: limits the search when given; an empty sequence finds nothing.
            passage_ids: the same by passage.
            beside: further tokens with their weights, such as other names of what is asked for.
        """
        given = [ids for ids in (collection_ids, document_ids, passage_ids) if ids is not None]
        if not tenant_id or k < 1 or not all(given):
            return []
        collections = None if collection_ids is None else tuple(sorted(set(collection_ids)))
        share = self._share(tenant_id, collections)
        terms = self._terms(question, tenant_id) if isinstance(question, str) else question
        if beside:
            terms = {**beside, **terms}
        if not terms or share == 0:
            return []
        match = self._any_of(self._chosen(terms))
        whole = document_ids is None and passage_ids is None
        if whole and share >= _WIDE_SCOPE and (self._columns or share == 1):
            found = self._wide(match, k, share, tenant_id, collections)
            if found is not None:
                return found
        scope = self._scope(tenant_id, collections, document_ids, passage_ids)
        return self._ranked(self._hits(_within(match, scope), k))

    def _terms(self, question: str, tenant_id: str) -> Mapping[str, float]:
        """The question's tokens with their weights; words that the index lacks bring near ones along."""
        terms = Counter(question_tokens(question, version=self._analyzer))
        if all(not may_be_misspelt(term) or self._known(term) for term in terms):
            return terms
        own = None if self._share(tenant_id, None) == 1 else self._among("tenant_id", (tenant_id,))
        return with_spellings(
            terms, self._known, lambda prefix: self._searcher.terms_with_prefix("body", prefix, own)
        )

    def _known(self, term: str) -> bool:
        return any(self._searcher.doc_freq(field, term) > 0 for field in self._fields)

    def holding(
        self,
        spellings: Sequence[Sequence[str]],
        k: int,
        *,
        tenant_id: str,
        collection_ids: Sequence[str] | None,
        document_ids: Sequence[str] | None = None,
        passage_ids: Sequence[int] | None = None,
    ) -> list[int]:
        """Ids of up to `k` passages of the scope that have all tokens of one of the spellings, ascending.

        Args:
            spellings: alternatives; each is a set of tokens as `retrieval/analyzer.py` makes them, looked
                for in headings and body.
            k: how many at most; which ones is not said when there are more.
            tenant_id: required; the empty string finds nothing.
            collection_ids: None means all of the tenant; an empty sequence finds nothing.
            document_ids: limits the search when given; an empty sequence finds nothing.
            passage_ids: the same by passage.
        """
        given = [ids for ids in (collection_ids, document_ids, passage_ids) if ids is not None]
        if not spellings or not tenant_id or k < 1 or not all(given):
            return []
        scope = self._scope(tenant_id, collection_ids, document_ids, passage_ids)
        found = self._hits(_within(_one_of(spellings, self._schema, self._fields), scope), k)
        return sorted(self._column("passage_id", found))

    def _wide(
        self,
        match: tantivy.Query,
        k: int,
        share: float,
        tenant_id: str,
        collections: tuple[str, ...] | None,
    ) -> list[tuple[int, float]] | None:
        """The best of a scope that is most of the index; None when too few of the best are inside."""
        if share == 1:
            return self._ranked(self._hits(match, k))
        wanted = math.ceil(k * _SPARE / share) + 8
        found = self._hits(match, wanted)
        tenant, allowed = (
            scope_number(tenant_id),
            None if collections is None else {*map(scope_number, collections)},
        )
        inside = [
            hit
            for hit, owner, collection in zip(
                found, self._column("tenant", found), self._column("collection", found), strict=True
            )
            if owner == tenant and (allowed is None or collection in allowed)
        ]
        return self._ranked(inside[:k]) if len(inside) >= k or len(found) < wanted else None

    def _hits(self, query: tantivy.Query, k: int) -> list[tuple[float, Any]]:
        return self._searcher.search(query, limit=k, count=False).hits

    def _column(self, field: str, hits: Sequence[tuple[float, Any]]) -> list[int]:
        if not self._columns:
            return [int(self._searcher.doc(address).get_first(field)) for _, address in hits]
        return self._searcher.fast_field_values(field, [address for _, address in hits])

    def _ranked(self, hits: Sequence[tuple[float, Any]]) -> list[tuple[int, float]]:
        """Ties by passage id."""
        scores = [score for score, _ in hits]
        found = list(zip(self._column("passage_id", hits), scores, strict=True))
        if len(set(scores)) < len(scores):
            found.sort(key=_ID)
            found.sort(key=_SCORE, reverse=True)  # which leaves equal ones in the order of their ids
        return found

    def _share(self, tenant_id: str, collections: tuple[str, ...] | None) -> float:
        """The scope's part of all passages, 0 to 1, counted once."""
        key = (tenant_id, collections)
        inside = self._inside.get(key)
        if inside is None:
            query = _within(tantivy.Query.all_query(), self._scope(tenant_id, collections))
            inside = int(self._searcher.search(query, limit=1, count=True).count)
            if len(self._inside) < _SHARES:
                self._inside[key] = inside
        return inside / self.count() if inside else 0.0

    def _scope(
        self,
        tenant_id: str,
        collections: Sequence[str] | None,
        document_ids: Sequence[str] | None = None,
        passage_ids: Sequence[int] | None = None,
    ) -> list[tantivy.Query]:
        scope = [self._among("tenant_id", (tenant_id,))]
        if collections is not None:
            scope.append(self._among("collection_id", collections))
        if document_ids is not None:
            scope.append(self._among("document_id", document_ids))
        if passage_ids is not None:
            scope.append(self._among("key", [str(passage_id) for passage_id in passage_ids]))
        return scope

    def _among(self, field: str, values: Sequence[str]) -> tantivy.Query:
        query = tantivy.Query
        if len(values) == 1:  # a list of postings is cheaper than an automaton and a bit set
            return query.term_query(self._schema, field, values[0], index_option="basic")
        return query.term_set_query(self._schema, field, list(values))

    def _chosen(self, terms: Mapping[str, float]) -> list[tuple[str, float]]:
        if len(terms) <= _MAX_TERMS:
            return list(terms.items())
        rarest = sorted(terms, key=lambda term: (self._searcher.doc_freq("body", term), term))
        return [(term, terms[term]) for term in rarest[:_MAX_TERMS]]

    def _any_of(self, terms: Sequence[tuple[str, float]]) -> tantivy.Query:
        term_query, boost, schema = tantivy.Query.term_query, tantivy.Query.boost_query, self._schema
        should: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for term, weight in terms:
            match = term_query(schema, "body", term, "freq")
            should.append((_SHOULD, match if weight == 1 else boost(match, weight)))
            if len(self._fields) > 1 and self._searcher.doc_freq("heading", term) > 0:
                match = term_query(schema, "heading", term, "freq")
                should.append((_SHOULD, boost(match, _HEADING_BOOST * weight)))
        return tantivy.Query.boolean_query(should)


def _has_columns(searcher: Any) -> bool:
    """False for an index of the release before, which stored ids with each document instead."""
    try:
        searcher.fast_field_values("collection", [])
    except ValueError:
        return False
    return True


def _one_of(
    spellings: Sequence[Sequence[str]], schema: tantivy.Schema, fields: Sequence[str]
) -> tantivy.Query:
    query, must, should = tantivy.Query, tantivy.Occur.Must, tantivy.Occur.Should

    def anywhere(token: str) -> tantivy.Query:
        return query.boolean_query([(should, query.term_query(schema, f, token, "basic")) for f in fields])

    return query.boolean_query(
        [(should, query.boolean_query([(must, anywhere(token)) for token in own])) for own in spellings]
    )


def _within(match: tantivy.Query, filters: Sequence[tantivy.Query]) -> tantivy.Query:
    """`match` inside every filter, which add nothing to the score."""
    inside = [(tantivy.Occur.Must, tantivy.Query.const_score_query(one, 0.0)) for one in filters]
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, match), *inside])
