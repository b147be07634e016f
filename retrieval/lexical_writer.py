"""What the lexical index is made of and how passages get into it. With `lexical.py` the door to tantivy.

Tokens are made by `retrieval/analyzer.py`, joined with spaces, and split on white space by tantivy, which
has no Python tokenizer callback. One process writes at a time: the writer's lease, and tantivy's own lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import tantivy
import xxhash

from core.errors import TransientError
from retrieval.analyzer import tokens

_ANALYZER = "geo_tokens"
_HEAP_BYTES = 64 << 20


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
    # Fast fields are read by column: nothing is stored, so no result costs a document.
    for name in ("passage_id", "tenant", "collection"):
        builder.add_unsigned_field(name, fast=True)
    # Deletes go by a text term: an integer given to delete_documents_by_term never meets an unsigned field.
    for name in ("key", "tenant_id", "collection_id", "document_id"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name=_ANALYZER, index_option="freq")
    return builder.build()


def with_analyzer(index: tantivy.Index) -> tantivy.Index:
    """Every process that opens an index has to know how its tokens are split."""
    analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer(_ANALYZER, analyzer)
    return index


class LexicalWriter:
    """Adds and deletes passages of one folder; nothing is searchable before `commit`.

    Args:
        folder: the index folder; made when absent.
        heap_bytes: memory for postings until they become a segment.

    Raises:
        ValueError: the folder holds an index of another layout, or none that can be read.
        TransientError: another process holds tantivy's writer lock.
    """

    def __init__(self, folder: Path, *, heap_bytes: int = _HEAP_BYTES) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._index = with_analyzer(tantivy.Index(_schema(), path=str(folder), reuse=True))
        self._schema = self._index.schema
        try:
            self._writer: Any = self._index.writer(heap_bytes, num_threads=1)
        except ValueError as error:
            raise TransientError(f"The lexical index is being written by another process: {error}") from error

    def change(
        self,
        adds: Iterable[LexicalDocument],
        delete_passage_ids: Iterable[int] = (),
        *,
        all_new: bool = False,
    ) -> None:
        """Remove `delete_passage_ids`, then upsert `adds`; `all_new` promises that none is there yet."""
        for passage_id in delete_passage_ids:
            self._writer.delete_documents_by_term("key", str(passage_id))
        for add in adds:
            if not all_new:
                self._writer.delete_documents_by_term("key", str(add.passage_id))
            self._writer.add_document(tantivy.Document.from_dict(_fields(add), self._schema))

    def commit(self) -> None:
        """Make the changes durable and searchable."""
        self._writer.commit()

    def close(self) -> None:
        """Finish merges and give the lock back; what was not committed is lost. Twice is legal."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.wait_merging_threads()

    def apply(self, adds: Iterable[LexicalDocument], delete_passage_ids: Iterable[int] = ()) -> None:
        """`change`, `commit` and `close` in one; doing it again changes nothing."""
        try:
            self.change(adds, delete_passage_ids)
            self.commit()
        finally:
            self.close()


def _fields(add: LexicalDocument) -> dict[str, Any]:
    return {
        "passage_id": add.passage_id,
        "tenant": scope_number(add.tenant_id),
        "collection": scope_number(add.collection_id),
        "key": str(add.passage_id),
        "tenant_id": add.tenant_id,
        "collection_id": add.collection_id,
        "document_id": add.document_id,
        "body": " ".join((*_heading(" ".join((add.title, *add.headings))), *tokens(add.text))),
    }


@lru_cache(maxsize=256)  # neighbours stand under the same headings
def _heading(heading: str) -> tuple[str, ...]:
    """Its tokens, each once: a document's name is often its title, and that the first heading."""
    return tuple(dict.fromkeys(tokens(heading)))


@lru_cache(maxsize=1024)
def scope_number(name: str) -> int:
    """An id as a number; ids are made by us, so two never meet in 64 bits."""
    return xxhash.xxh3_64_intdigest(name.encode())
