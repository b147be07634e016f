"""The lexical route on tantivy: BM25 over our own tokens, filtered inside the query. The one door to tantivy.

Tokens are made by `retrieval/analyzer.py`, joined with spaces, and split on white space by tantivy, which
has no Python tokenizer callback. Questions are built from terms and never parsed, so no character of a
question is syntax. One process writes at a time (the writer's lease; tantivy's own lock stands behind it).
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import tantivy

from core.errors import TransientError
from retrieval.analyzer import tokens

_ANALYZER = "geo_tokens"
_WRITER_HEAP_BYTES = 64 << 20
_HEADING_BOOST = 0.6  # a heading names the topic of many passages, the body answers
_MAX_TERMS = 96  # distinct terms of a question that count; a longer question's rarest ones are kept


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """What the lexical index stores of a passage."""

    passage_id: int
    tenant_id: str
    collection_id: str
    document_id: str
    text: str
    headings: tuple[str, ...] = ()
    title: str = ""


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("passage_id", stored=True)
    # Deletes go by a text term: an integer given to delete_documents_by_term never meets an unsigned field.
    for name in ("key", "tenant_id", "collection_id", "document_id"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("body", "heading"):
        builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="freq")
    return builder.build()


def _open(folder: Path) -> tantivy.Index:
    index = tantivy.Index(_schema(), path=str(folder), reuse=True)
    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer(_ANALYZER, analyzer)
    return index


class LexicalWriter:
    """Adds and deletes passages; each `apply` is one durable commit.

    Args:
        folder: the index folder; made when absent.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._index = _open(folder)

    def apply(self, adds: Iterable[LexicalDocument], delete_passage_ids: Iterable[int] = ()) -> None:
        """Upsert `adds` and remove `delete_passage_ids` in one commit, fsynced by tantivy.

        Doing it again changes nothing.

        Raises:
            TransientError: another process holds tantivy's writer lock.
        """
        try:
            writer: Any = self._index.writer(_WRITER_HEAP_BYTES, num_threads=1)
        except ValueError as error:
            raise TransientError(f"The lexical index is being written by another process: {error}") from error
        schema = self._index.schema
        try:
            for passage_id in delete_passage_ids:
                writer.delete_documents_by_term("key", str(passage_id))
            for add in adds:
                writer.delete_documents_by_term("key", str(add.passage_id))
                writer.add_document(tantivy.Document.from_dict(_fields(add), schema))
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        finally:
            writer.wait_merging_threads()  # also gives the lock back


def _fields(add: LexicalDocument) -> dict[str, Any]:
    return {
        "passage_id": add.passage_id,
        "key": str(add.passage_id),
        "tenant_id": add.tenant_id,
        "collection_id": add.collection_id,
        "document_id": add.document_id,
        "body": " ".join(tokens(add.text)),
        "heading": _heading(" ".join((add.title, *add.headings))),
    }


@lru_cache(maxsize=256)  # neighbours stand under the same headings
def _heading(heading: str) -> str:
    return " ".join(tokens(heading))


class LexicalReader:
    """Searches the newest commit of a folder; safe from many threads.

    A commit by another process is seen by the next search: the commit's file is looked at each time.
    """

    def __init__(self, folder: Path) -> None:
        self._index = _open(folder)
        self._index.config_reader(reload_policy="Manual")
        self._meta = folder / "meta.json"
        self._seen: tuple[int, int] = (0, 0)
        self._lock = threading.Lock()

    def count(self) -> int:
        """Live passages."""
        return self._searcher().num_docs

    def ids(self) -> set[int]:
        """Passage ids of all live passages; reads every stored document, for checks only."""
        searcher = self._searcher()
        if not searcher.num_docs:
            return set()
        hits: list[tuple[float, Any]] = searcher.search(
            tantivy.Query.all_query(), limit=searcher.num_docs, count=False
        ).hits
        return {int(searcher.doc(address).get_first("passage_id")) for _, address in hits}

    def search(
        self,
        question: str,
        k: int,
        *,
        tenant_id: str,
        collection_ids: Sequence[str] | None,
        document_ids: Sequence[str] | None = None,
    ) -> list[tuple[int, float]]:
        """The best `k` passages of the scope, best first, as (passage id, BM25 score).

        Args:
            question: free text; nothing in it is syntax.
            k: how many at most.
            tenant_id: required; the empty string finds nothing.
            collection_ids: None means all of the tenant; an empty sequence finds nothing.
            document_ids: limits the search when given; an empty sequence finds nothing.
        """
        terms = Counter(tokens(question))
        empty = any(ids is not None and not ids for ids in (collection_ids, document_ids))
        if not terms or not tenant_id or empty or k < 1:
            return []
        searcher = self._searcher()
        query = _scoped(
            _any_of(_chosen(searcher, terms), self._index.schema),
            self._index.schema,
            tenant_id=(tenant_id,),
            collection_id=collection_ids,
            document_id=document_ids,
        )
        found: list[tuple[float, Any]] = searcher.search(query, limit=k, count=False).hits
        hits = [
            (int(searcher.doc(address).get_first("passage_id")), float(score)) for score, address in found
        ]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))

    def holding(
        self,
        spellings: Sequence[Sequence[str]],
        k: int,
        *,
        tenant_id: str,
        collection_ids: Sequence[str] | None,
        document_ids: Sequence[str] | None = None,
    ) -> list[int]:
        """Ids of up to `k` passages of the scope that have all tokens of one of the spellings, ascending.

        Args:
            spellings: alternatives; each is a set of tokens as `retrieval/analyzer.py` makes them, looked
                for in headings and body.
            k: how many at most; which ones is not said when there are more.
            tenant_id: required; the empty string finds nothing.
            collection_ids: None means all of the tenant; an empty sequence finds nothing.
            document_ids: limits the search when given; an empty sequence finds nothing.
        """
        empty = any(ids is not None and not ids for ids in (collection_ids, document_ids))
        if not spellings or not tenant_id or empty or k < 1:
            return []
        searcher = self._searcher()
        query = _scoped(
            _one_of(spellings, self._index.schema),
            self._index.schema,
            tenant_id=(tenant_id,),
            collection_id=collection_ids,
            document_id=document_ids,
        )
        found: list[tuple[float, Any]] = searcher.search(query, limit=k, count=False).hits
        return sorted(int(searcher.doc(address).get_first("passage_id")) for _, address in found)

    def _searcher(self) -> Any:
        stat = os.stat(self._meta)
        seen = (stat.st_mtime_ns, stat.st_ino)
        if seen != self._seen:
            with self._lock:
                self._index.reload()
                self._seen = seen
        return self._index.searcher()


def _chosen(searcher: Any, terms: Counter[str]) -> list[tuple[str, int]]:
    if len(terms) <= _MAX_TERMS:
        return list(terms.items())
    rarest = sorted(terms, key=lambda term: (searcher.doc_freq("body", term), term))
    return [(term, terms[term]) for term in rarest[:_MAX_TERMS]]


def _any_of(terms: Sequence[tuple[str, int]], schema: tantivy.Schema) -> tantivy.Query:
    query = tantivy.Query
    should: list[tuple[tantivy.Occur, tantivy.Query]] = []
    for term, times in terms:
        for field, boost in (("body", 1.0), ("heading", _HEADING_BOOST)):
            match = query.term_query(schema, field, term, index_option="freq")
            should.append((tantivy.Occur.Should, query.boost_query(match, boost * times)))
    return query.boolean_query(should)


def _one_of(spellings: Sequence[Sequence[str]], schema: tantivy.Schema) -> tantivy.Query:
    query, must, should = tantivy.Query, tantivy.Occur.Must, tantivy.Occur.Should

    def anywhere(token: str) -> tantivy.Query:
        fields = ("body", "heading")
        return query.boolean_query([(should, query.term_query(schema, f, token, "basic")) for f in fields])

    return query.boolean_query(
        [(should, query.boolean_query([(must, anywhere(token)) for token in own])) for own in spellings]
    )


def _scoped(match: tantivy.Query, schema: tantivy.Schema, **allowed: Sequence[str] | None) -> tantivy.Query:
    """`match` and every given field in its allowed values, which add nothing to the score."""
    query = tantivy.Query
    must = [(tantivy.Occur.Must, match)]
    for field, values in allowed.items():
        if values is not None:
            inside = query.term_set_query(schema, field, list(values))
            must.append((tantivy.Occur.Must, query.const_score_query(inside, 0.0)))
    return query.boolean_query(must)
