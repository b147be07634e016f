"""The annotation of ingested documents as JSON-LD: it expands without loss, to terms that schema.org has."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pytest
from pyld import jsonld

from core.db import Database
from ingest import service
from tests.ingest.lifecycle import SCOPE, make_live, make_tenants, run_waiting, upload

SCHEMA = "http://schema.org/"
# Property → what its values are: text, a date, a URL, a number, or nodes of these types.
# Source: https://schema.org/CreativeWork, https://schema.org/Thing (release 29).
THING = {
    "name": "text",
    "alternateName": "text",
    "description": "text",
    "identifier": "text",
    "sameAs": "url",
}
CREATIVE = {
    **THING,
    "version": "number",
    "encodingFormat": "text",
    "dateCreated": "date",
    "dateModified": "date",
    "datePublished": "date",
    "author": {"Person", "Organization"},
    "inLanguage": "language",
    "keywords": "text",
    "about": "node",
    "mentions": "node",
    "hasPart": {"CreativeWork"},
    "position": "number",
}
TYPES = {
    "Article": CREATIVE,
    "CreativeWork": CREATIVE,
    "Legislation": CREATIVE,
    **dict.fromkeys(("Person", "Organization", "Place", "Product", "Event", "Thing"), THING),
}
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?")


def schema_org(url: str, _options: dict[str, Any]) -> dict[str, Any]:
    """The part of schema.org's context that matters: its vocabulary, and which properties hold addresses."""
    assert url.rstrip("/") == "https://schema.org"
    context = {"@vocab": SCHEMA, "sameAs": {"@id": f"{SCHEMA}sameAs", "@type": "@id"}}
    return {"contextUrl": None, "documentUrl": url, "document": {"@context": context}}


def check(node: dict[str, Any]) -> None:
    """Every type and property of an expanded node is schema.org's, and every value of its kind."""
    (kind,) = (t.removeprefix(SCHEMA) for t in node["@type"])
    assert kind in TYPES, kind
    if "@id" in node:
        assert re.fullmatch(r"urn:geo:[\w-]+", node["@id"])
    for iri, values in node.items():
        if iri.startswith("@"):
            continue
        assert iri.startswith(SCHEMA), iri
        expected = TYPES[kind][iri.removeprefix(SCHEMA)]
        for value in values:
            check_value(expected, value)


def check_value(expected: str | set[str], value: dict[str, Any]) -> None:
    if isinstance(expected, set) or expected == "node":
        check(value)
        assert expected == "node" or value["@type"][0].removeprefix(SCHEMA) in expected
    elif expected == "url":
        assert re.match(r"https?://", value["@id"])
    elif expected == "number":
        assert isinstance(value["@value"], int)
    else:
        text = value["@value"]
        assert isinstance(text, str)
        assert text
        if expected == "date":
            datetime.fromisoformat(text)
        if expected == "language":
            assert LANGUAGE.fullmatch(text), text


def keys_of(value: Any) -> list[str]:
    """All property names of plain JSON, however deep."""
    if isinstance(value, list):
        return [key for item in value for key in keys_of(item)]
    if not isinstance(value, dict):
        return []
    own = [key for key in value if not key.startswith("@")]
    return own + [key for item in value.values() for key in keys_of(item)]


DOCUMENTS = {
    "en": (
        "board.html",
        "<html lang=en><head><title>Quarbix board</title><meta name=author content='Ann Kim'>"
        "<meta property='article:published_time' content='2024-05-06'></head><body><article>"
        "<h1>Board</h1><p>Maria Novak joined Quarbix Ltd in Lyon in 2019. Quarbix grew.</p>"
        "<h2>Pay</h2><p>Quarbix Ltd pays Maria Novak and Siemens in euros, every month of the year.</p>"
        "</article></body></html>",
        {"name": "Quarbix Ltd", "type": "ORG", "description": "a pump maker", "id": "Q42"},
    ),
    "zh": (
        "董监高.md",
        "# 远山股份董监高\n\n李伟，男，远山股份财务负责人，2019 年入职。\n\n"
        "## 薪酬\n\n李伟在远山股份领取薪酬。\n",
        {"name": "远山股份", "type": "ORG", "lang": "zh", "same_as": ["https://example.org/远山"]},
    ),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_ingested_document_says_what_it_is_about_in_terms_of_schema_org(
    sqlite_database: Database, lang: str
) -> None:
    db = sqlite_database
    make_tenants(db)
    name, text, entity = DOCUMENTS[lang]
    with db.write() as session:
        service.import_entities(session, SCOPE, lines=[json.dumps(entity)], form="jsonl")
    document_id = upload(db, text, name).document.id
    run_waiting(db, document_id)
    make_live(db, document_id)
    with db.read() as session:
        told = service.document_annotation(session, SCOPE, document_id=document_id)
    (expanded,) = jsonld.expand(json.loads(json.dumps(told)), {"documentLoader": schema_org})
    check(expanded)
    kept = {key.removeprefix(SCHEMA) for key in keys_of([expanded]) if key.startswith(SCHEMA)}
    assert kept == set(keys_of(told)), "no property is dropped as unknown"
    assert expanded["@id"] == f"urn:geo:{document_id}"
    assert told["inLanguage"] == {"en": "en", "zh": "zh-Hans"}[lang]
    assert entity["name"] in {thing["name"] for thing in told["about"]}
    linked = next(m for m in told["mentions"] if m["name"] == entity["name"])
    assert linked["@id"].startswith("urn:geo:ent_")
    assert linked["sameAs"] == entity.get("same_as", ["http://www.wikidata.org/entity/Q42"])
    top = told["hasPart"][0]
    assert [part["name"] for part in top["hasPart"]] == [{"en": "Pay", "zh": "薪酬"}[lang]]
    assert any(m["@type"] == "Person" for m in told["mentions"])
    if lang == "en":
        assert told["@type"] == "Article"
        assert told["datePublished"] == "2024-05-06"
        assert told["author"]["name"] == "Ann Kim"
