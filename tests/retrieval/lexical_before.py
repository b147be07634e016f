"""A lexical index as the release before sealed it: tokens of version 1, headings in a field of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import tantivy

from retrieval.analyzer import tokens
from retrieval.files import checksum
from retrieval.lexical_store import FILES, _fingerprint, _index_files
from retrieval.lexical_writer import LexicalDocument, scope_number, with_analyzer


def sealed_by_the_release_before(root: Path, documents: Iterable[LexicalDocument]) -> str:
    """Write it under `root`; returns its name."""
    builder = tantivy.SchemaBuilder()
    for name in ("passage_id", "tenant", "collection"):
        builder.add_unsigned_field(name, fast=True)
    for name in ("key", "tenant_id", "collection_id", "document_id"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("body", "heading"):
        builder.add_text_field(name, tokenizer_name="geo_tokens", index_option="freq")
    folder = root / "lex_before"
    folder.mkdir(parents=True)
    index = with_analyzer(tantivy.Index(builder.build(), path=str(folder)))
    writer = index.writer(num_threads=1)
    for d in documents:
        fields = {
            "passage_id": d.passage_id, "tenant": scope_number(d.tenant_id),
            "collection": scope_number(d.collection_id), "key": str(d.passage_id),
            "tenant_id": d.tenant_id, "collection_id": d.collection_id, "document_id": d.document_id,
            "body": " ".join(tokens(d.text, version=1)),
            "heading": " ".join(tokens(" ".join((d.title, *d.headings)), version=1)),
        }  # fmt: skip
        writer.add_document(tantivy.Document.from_dict(fields, index.schema))
    writer.commit()
    writer.wait_merging_threads()
    listed = {path.name: _fingerprint(path) for path in _index_files(folder)}
    content = json.dumps(listed, sort_keys=True).encode()
    (folder / FILES).write_bytes(content)
    name = f"lex_before-{checksum(content)}"
    folder.rename(root / name)
    return name
