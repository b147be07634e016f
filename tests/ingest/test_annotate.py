from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ingest.annotate import AnnotatedMention, annotate, schema_type

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def graph(**more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "name": "Pump manual",
        "lang": "en",
        "media_type": "text/plain",
        "identifier": "doc_1",
        "version": 2,
        "outline": [],
        "keywords": [],
        "created_at": AT,
        "modified_at": AT,
        "mentions": [],
    }
    return annotate(**(given | more))


def mention(surface: str, entity: str | None, kind: str = "ORG", name: str = "Acme") -> AnnotatedMention:
    return AnnotatedMention(surface, kind, entity, name if entity else surface, "", (), 0.9)


def test_the_least_document_still_says_what_it_is() -> None:
    assert graph(lang="und") == {
        "@context": "https://schema.org",
        "@type": "CreativeWork",
        "@id": "urn:geo:doc_1",
        "identifier": "doc_1",
        "version": 2,
        "name": "Pump manual",
        "encodingFormat": "text/plain",
        "dateCreated": "2026-01-02T03:04:00+00:00",
        "dateModified": "2026-01-02T03:04:00+00:00",
    }


def test_web_pages_are_articles_and_languages_are_tagged() -> None:
    page = graph(media_type="text/html", lang="zh")
    assert (page["@type"], page["inLanguage"]) == ("Article", "zh-Hans")


def test_headings_nest_by_level_even_when_a_level_is_skipped() -> None:
    levels = [("A", 1), ("A1", 3), ("A2", 2), ("B", 1)]
    outline = [{"text": t, "level": n, "start": 0, "end": 0} for t, n in levels]
    parts = graph(outline=outline)["hasPart"]
    assert [p["name"] for p in parts] == ["A", "B"]
    assert [p["name"] for p in parts[0]["hasPart"]] == ["A1", "A2"]


def test_entities_come_once_with_their_other_names_and_the_frequent_ones_are_the_topic() -> None:
    found = graph(mentions=[mention("ACME", "e1"), mention("Acme", "e1"), mention("Bolt", "e2", name="Bolt")])
    assert [m["name"] for m in found["mentions"]] == ["Acme", "Bolt"]
    assert found["mentions"][0]["alternateName"] == ["ACME"]
    assert [m["name"] for m in found["about"]] == ["Acme"]


def test_names_without_an_entity_are_listed_once_without_an_id() -> None:
    found = graph(mentions=[mention("Kim", None, "PERSON"), mention("Kim", None, "PERSON")])
    assert found["mentions"] == [{"@type": "Person", "name": "Kim"}]


def test_external_ids_become_same_as() -> None:
    known = AnnotatedMention("Berlin", "GPE", "e1", "Berlin", "capital", ("http://example.org/1",), 0.9)
    (thing,) = graph(mentions=[known])["mentions"]
    assert thing["sameAs"] == ["http://example.org/1"]
    assert thing["description"] == "capital"


def test_the_graph_is_json() -> None:
    text = json.dumps(graph(name='<script>alert("x")</script>', mentions=[mention("李伟", None)]))
    assert json.loads(text)["name"] == '<script>alert("x")</script>'


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("PERSON", "Person"), ("org", "Organization"), ("Place", "Place"), ("MISC", "Thing"), ("", "Thing")],
)
def test_labels_map_to_schema_types(kind: str, expected: str) -> None:
    assert schema_type(kind) == expected


def test_what_a_file_says_of_itself_goes_before_its_upload() -> None:
    said = {
        "author": "Acme", "created": "2024-05-01", "modified": "2024-06-02T10:00:00+02:00",
        "published": "2024-07-03", "description": "How to run it.", "language": "en-GB",
    }  # fmt: skip
    told = graph(properties=said, mentions=[mention("Acme", None, "ORG")])
    assert (told["dateCreated"], told["dateModified"], told["datePublished"]) == (
        said["created"], said["modified"], said["published"],
    )  # fmt: skip
    assert told["author"] == {"@type": "Organization", "name": "Acme"}
    assert (told["description"], told["inLanguage"]) == ("How to run it.", "en-GB")
    assert graph(properties={"author": "Li Wei"})["author"]["@type"] == "Person"


def test_dates_and_languages_that_are_none_are_left_out() -> None:
    told = graph(properties={"created": "yesterday", "published": "soon", "language": "zh-CN"})
    assert told["dateCreated"] == AT.isoformat()
    assert "datePublished" not in told
    assert told["inLanguage"] == "en"  # the text is English, whatever the file says
    assert graph(lang="und", properties={"language": "not a tag!"}).get("inLanguage") is None
