"""Entities through the running stack: people of one name, a catalogue that comes later, decisions by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.stack import Stack, until

PEOPLE = {
    "liwei_a.md": "# 远山股份董监高\n\n李伟，男，远山股份财务负责人，2019 年入职，此前任职于会计师事务所。\n",
    "liwei_b.md": "# 海石科技董监高\n\n李伟，女，海石科技独立董事，材料学教授，2021 年当选。\n",
    "liwei_c.md": "# 公告\n\n李伟于三月辞去职务，生效日期为三月三十一日。\n",
}


def entities_of(stack: Stack, document_id: str) -> dict[str, str]:
    """Name → entity id of everything the annotation links."""
    graph = stack.client.get(f"/v1/documents/{document_id}/annotation").json()
    return {
        name: thing["@id"]
        for thing in graph.get("mentions", [])
        if "@id" in thing
        for name in (thing["name"], *thing.get("alternateName", []))
    }


def test_two_people_of_one_name_are_kept_apart_and_asked_for_apart(stack: Stack) -> None:
    collection = stack.collection("people")
    ids = {name: stack.ready(collection, name, text)["id"] for name, text in PEOPLE.items()}
    linked = {name: entities_of(stack, document_id).get("李伟") for name, document_id in ids.items()}
    assert linked["liwei_a.md"]
    assert linked["liwei_b.md"]
    assert linked["liwei_a.md"] != linked["liwei_b.md"]
    assert linked["liwei_c.md"] is None
    hits = stack.client.post(
        "/v1/search", json={"question": "海石科技的李伟是男是女？", "collection": collection, "top_k": 3}
    ).json()["hits"]
    assert hits[0]["document_id"] == ids["liwei_b.md"]
    entity = linked["liwei_b.md"].removeprefix("urn:geo:")
    only = stack.client.post(
        "/v1/search",
        json={"question": "李伟何时入职？", "collection": collection, "filters": {"entities": [entity]}},
    ).json()["hits"]
    assert {h["document_id"] for h in only} == {ids["liwei_b.md"]}


NAMESAKES = {
    "zh": (
        PEOPLE,
        {
            "李伟何时入职？": ({"liwei_a.md", "liwei_b.md"}, ("2019", "2021")),
            "海石科技的李伟是男是女？": ({"liwei_b.md"}, ("女",)),
            "远山股份的李伟何时入职？": ({"liwei_a.md"}, ("2019",)),
        },
    ),
    "en": (
        {
            "farhill.md": "# Farhill board\n\nJames Lee, male, is the finance director of Farhill Group; he "
            "joined in 2019 from an audit firm.\n",
            "seastone.md": "# Seastone board\n\nJames Lee, female, is an independent director of Seastone "
            "Technologies and a professor of materials science; she was elected in 2021.\n",
            "notice.md": "# Notice\n\nJames Lee resigned in March, with effect from 31 March.\n",
        },
        {
            "When did James Lee join?": ({"farhill.md", "seastone.md"}, ("2019", "2021")),
            "Is the James Lee of Seastone Technologies a man or a woman?": ({"seastone.md"}, ("female",)),
            "When did James Lee of Farhill Group join?": ({"farhill.md"}, ("2019",)),
        },
    ),
}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_an_answer_lists_each_of_the_name_or_speaks_of_the_one_that_is_meant(stack: Stack, lang: str) -> None:
    documents, questions = NAMESAKES[lang]
    collection = stack.collection(f"namesakes {lang}")
    for name, text in documents.items():
        stack.ready(collection, name, text)
    for question, (cited, said) in questions.items():
        answer = stack.ask(collection, question)
        assert answer["status"] == "answered", question
        found = {c["document_name"] for claim in answer["claims"] for c in claim["citations"]}
        assert found == cited, question
        assert all(word in answer["text"] for word in said), question
        assert all(claim["citations"] for claim in answer["claims"])
        several = [n for n in answer["notices"] if n["code"] == "namesakes"]
        assert bool(several) == (len(cited) > 1), question


def test_a_catalogue_from_the_terminal_reaches_documents_that_are_there(stack: Stack, tmp_path: Path) -> None:
    collection = stack.collection("catalogue")
    document = stack.ready(collection, "valve.md", "# Valves\n\nThe quarbix valve is serviced in Lyon.\n")[
        "id"
    ]
    rows = [
        {"name": "quarbix", "type": "PRODUCT", "description": "a valve", "same_as": ["https://example.org/q"]}
    ]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    done = json.loads(stack.geo("entities", "import", str(tmp_path / "e.jsonl"), "--json").stdout)
    assert done["created"] == 1
    linked = until(
        lambda: entities_of(stack, document).get("quarbix"), within_s=30, what="the document is linked anew"
    )
    entity = linked.removeprefix("urn:geo:")
    assert "a valve" in stack.geo("entities", "show", entity).stdout
    assert entity in stack.geo("entities", "find", "QUARB").stdout
    stack.geo("entities", "block", entity)
    until(lambda: "quarbix" not in entities_of(stack, document), within_s=30, what="the block is obeyed")
    stack.geo("entities", "undo", entity)
    until(
        lambda: entities_of(stack, document).get("quarbix") == linked, within_s=30, what="the undo is obeyed"
    )
    (tmp_path / "bad.jsonl").write_text('{"type": "ORG"}\n')
    assert stack.geo("entities", "import", str(tmp_path / "bad.jsonl"), check=False).returncode == 1
