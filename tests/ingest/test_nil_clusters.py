from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from core.types import Lang, LinkedMention, Passage, Span
from ingest.nil_clusters import Appearance, affiliations, name_key, settle


def seen(document: str, *beside: str, entity: str | None = None) -> Appearance:
    return Appearance(document, 1, frozenset(beside), entity)


def groups(*appearances: Appearance) -> list[set[str]]:
    found: dict[str, set[str]] = {}
    for appearance, entity_id in settle("t", "李伟", appearances).items():
        if entity_id is not None:
            found.setdefault(entity_id, set()).add(appearance.document_id)
    return sorted(found.values(), key=sorted)


def test_people_of_one_name_in_two_companies_stay_two_and_a_stranger_is_neither() -> None:
    assert groups(seen("a", "远山股份"), seen("b", "海石科技"), seen("c")) == [{"a"}, {"b"}]


def test_a_document_that_names_both_companies_makes_them_one_person() -> None:
    assert groups(seen("a", "acme"), seen("b", "birch"), seen("c", "acme", "birch")) == [{"a", "b", "c"}]


def test_a_bare_name_joins_the_only_person_of_its_document() -> None:
    settled = settle("t", "k", [seen("a", "acme"), seen("a")])
    assert len(set(settled.values())) == 1
    assert None not in settled.values()


def test_a_bare_name_beside_two_people_of_its_document_stays_open() -> None:
    settled = settle("t", "k", [seen("a", "acme"), seen("a", "birch"), seen("a")])
    assert settled[seen("a")] is None


def test_a_group_keeps_the_id_it_has_and_parts_that_fall_apart_get_two() -> None:
    known = settle("t", "k", [seen("a", "acme"), seen("b", "birch"), seen("c", "acme", "birch")])
    (entity,) = set(known.values())
    apart = settle("t", "k", [seen("a", "acme", entity=entity), seen("b", "birch", entity=entity)])
    assert len(set(apart.values())) == 2
    assert entity in apart.values()


def test_what_a_person_changed_is_left_alone() -> None:
    held = seen("a", "acme", entity="ent_held")
    settled = settle("t", "k", [held, seen("b", "acme")], frozenset({"ent_held"}))
    assert settled[held] == "ent_held"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.builds(
            Appearance,
            st.sampled_from("abcdef"),
            st.just(1),
            st.frozensets(st.sampled_from(["acme", "birch", "cedar", "delta"]), max_size=2),
        ),
        max_size=8,
    ),
    st.randoms(),
)
def test_the_order_of_documents_does_not_matter(appearances: list[Appearance], rng: object) -> None:
    shuffled = list(appearances)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert settle("t", "k", appearances) == settle("t", "k", shuffled)


def test_organisations_count_in_the_sentence_of_the_name_or_alone_in_its_passage() -> None:
    text = "Ann Lee of Acme spoke. Bo Kim sang. Cy Day left Birch and Cedar."
    passage = Passage(1, "d", 1, 0, Span(5, 5 + len(text)), None, (), Lang.EN, text)

    def at(surface: str, kind: str) -> LinkedMention:
        start = 5 + text.index(surface)
        return LinkedMention(1, Span(start, start + len(surface)), surface, None, 0.0, "", kind)

    names = [at("Ann Lee", "PERSON"), at("Bo Kim", "PERSON"), at("Cy Day", "PERSON")]
    firms = [at("Acme", "ORG"), at("Birch", "ORG"), at("Cedar", "ORG")]
    found = affiliations([passage], [*names, *firms])
    assert found[:3] == [frozenset({"acme"}), frozenset(), frozenset({"birch", "cedar"})]
    assert found[3:] == [frozenset()] * 3
    assert affiliations([passage], [names[1], firms[0]])[0] == frozenset({"acme"})


def test_titles_and_legal_forms_do_not_make_another_name() -> None:
    assert name_key("Dr. Ann Lee") == name_key("ann lee")
    assert name_key("海石科技有限公司") == name_key("海石科技")
