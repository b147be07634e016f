"""Acronyms, full names and names in the other language bring each other's passages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.catalogue import Alias, Catalogue, CatalogueEntity, alias_key
from retrieval.analyzer import tokens
from retrieval.lexical import LexicalReader
from retrieval.lexical_writer import LexicalDocument, LexicalWriter
from retrieval.other_names import WEIGHT, other_names, terms_beside

WHO = ("World Health Organization", "WHO", "世界卫生组织")


def catalogue(**entities: tuple[str, ...]) -> Catalogue:
    return Catalogue.build(
        [CatalogueEntity(i, "ORG", names[0]) for i, names in entities.items()],
        [Alias(i, alias_key(name), name) for i, names in entities.items() for name in names],
    )


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did the WHO declare it?", ["World Health Organization", "世界卫生组织"]),
        ("When did the World Health Organization (WHO) declare it?", ["世界卫生组织"]),
        ("世界卫生组织何时宣布？", ["World Health Organization", "WHO"]),
        ("who declared it?", []),  # a word, not the name
        ("Nothing is named here.", []),
    ],
)
def test_the_other_names_of_what_is_asked_for(question: str, expected: list[str]) -> None:
    assert other_names(question, catalogue(e1=WHO)) == expected


def test_a_name_of_several_things_brings_none_of_their_names() -> None:
    both = catalogue(a=("Automated Clearing House", "ACH"), b=("Aachen Choir", "ACH"))
    assert other_names("What does the ACH do?", both) == []
    assert other_names("What does the Aachen Choir do?", both) == ["ACH"]


def test_tokens_of_a_name_share_one_weight_and_asked_ones_keep_theirs() -> None:
    beside = terms_beside(tokens("health of the WHO"), ["World Health Organization"])
    assert beside.keys() == {"world", *tokens("organization")}
    assert all(0 < weight < WEIGHT for weight in beside.values())
    assert terms_beside(["x"], []) == {}
    assert len(terms_beside([], [f"word{i} other{i}" for i in range(99)])) == 24


def test_a_passage_that_has_another_name_only_is_found_after_one_with_the_asked_name(tmp_path: Path) -> None:
    LexicalWriter(tmp_path / "lexical").apply(
        [
            LexicalDocument(1, "t1", "c1", "d1", "The World Health Organization declared it in March."),
            LexicalDocument(2, "t1", "c1", "d2", "WHO declared it in March."),
            LexicalDocument(3, "t1", "c1", "d3", "世界卫生组织在三月宣布。"),
            LexicalDocument(4, "t1", "c1", "d4", "The council met in the hall."),
        ]
    )
    reader, names = LexicalReader(tmp_path / "lexical"), catalogue(e1=WHO)
    for question, first in (("WHO budget", 2), ("世界卫生组织预算", 3)):
        plain = reader.search(question, 9, tenant_id="t1", collection_ids=None)
        assert [i for i, _ in plain] == [first]
        beside = terms_beside(tokens(question), other_names(question, names))
        found = reader.search(question, 9, tenant_id="t1", collection_ids=None, beside=beside)
        assert found[0][0] == first
        assert {i for i, _ in found} == {1, 2, 3}
