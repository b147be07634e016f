from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.types import Lang, LinkedMention, Passage, Span
from ingest.catalogue import Alias, Catalogue, CatalogueEntity, alias_key, with_catalogue_names
from ingest.disambiguate import Context, Similarity, link
from ingest.values import Mention


def catalogue(
    *entities: tuple[str, str, str, str, list[str]], weights: dict[str, float] | None = None, **more: dict
) -> Catalogue:
    """Entities as (id, type, name, description, other names)."""
    return Catalogue.build(
        [CatalogueEntity(i, t, n, d) for i, t, n, d, _ in entities],
        [
            Alias(i, alias_key(a), a, (weights or {}).get(i, 1.0))
            for i, _, n, _, others in entities
            for a in (n, *others)
        ],
        **more,
    )


def resolve(
    text: str,
    surface: str,
    known: Catalogue,
    *,
    type: str = "",
    similarity: Similarity | None = None,
    threshold: float = 0.5,
    others: Sequence[str] = (),
) -> LinkedMention:
    mentions = [
        Mention(1, Span(text.index(s), text.index(s) + len(s)), s, type if s == surface else "")
        for s in (surface, *others)
    ]
    return link(
        mentions, {1: Context(text)}, known, document_id="doc_1", threshold=threshold, similarity=similarity
    )[0]


SEA = ("ent_sea", "PERSON", "李伟", "海石科技有限公司采购经理", [])
HILL = ("ent_hill", "PERSON", "李伟", "远山物流集团仓库主管", [])


def test_the_text_around_a_shared_name_decides_between_two_people() -> None:
    known = catalogue(SEA, HILL)
    assert resolve("海石科技的李伟负责采购。", "李伟", known).entity_id == "ent_sea"
    assert resolve("远山物流的李伟管理仓库。", "李伟", known).entity_id == "ent_hill"


def test_two_people_whom_the_text_cannot_tell_apart_stay_nil() -> None:
    linked = resolve("通知：李伟明天休假。", "李伟", catalogue(SEA, HILL))
    assert linked.entity_id is None
    assert linked.reason.startswith("nil=ambiguous")
    assert "candidates=2" in linked.reason


def test_similarity_decides_where_no_word_is_shared() -> None:
    known = catalogue(
        ("ent_car", "PRODUCT", "Jaguar", "British car brand", []),
        ("ent_cat", "ANIMAL", "Jaguar", "large wild feline", []),
    )

    def similarity(_: str, descriptions: Sequence[str]) -> list[float]:
        return [0.86 if "feline" in d else 0.78 for d in descriptions]

    assert (
        resolve("The Jaguar hunts at night.", "Jaguar", known, similarity=similarity).entity_id == "ent_cat"
    )
    assert resolve("The Jaguar hunts at night.", "Jaguar", known).entity_id is None


def test_similarity_is_not_asked_for_names_with_one_meaning() -> None:
    def never(*_: object) -> list[float]:
        raise AssertionError("the encoder was loaded for nothing")

    known = catalogue(("ent_a", "ORG", "Acme", "", []))
    assert resolve("Acme pays.", "Acme", known, similarity=never).entity_id == "ent_a"
    assert resolve("Other pays.", "Other", known, similarity=never).entity_id is None


def test_a_strong_prior_decides_without_context_and_an_equal_one_does_not() -> None:
    city, hotel = ("ent_c", "GPE", "Paris", "", []), ("ent_h", "PERSON", "Paris", "", [])
    assert resolve("Paris.", "Paris", catalogue(city, hotel, weights={"ent_c": 50.0})).entity_id == "ent_c"
    assert resolve("Paris.", "Paris", catalogue(city, hotel)).entity_id is None


def test_a_type_that_differs_lowers_the_score_and_one_that_agrees_raises_it() -> None:
    known = catalogue(("ent_w", "PERSON", "Washington", "", []))
    scores = [resolve("Washington.", "Washington", known, type=t).score for t in ("PERSON", "", "GPE")]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3
    assert scores[0] > 0.9
    assert resolve("Washington.", "Washington", known, type="GPE").score < 0.65


def test_a_full_name_elsewhere_in_the_document_settles_the_short_one() -> None:
    known = catalogue(
        ("ent_1", "PERSON", "Maria Novak", "", ["Novak"]), ("ent_2", "PERSON", "Peter Novak", "", ["Novak"])
    )
    text = "Maria Novak signed. Later, Novak left."
    mentions = [Mention(1, Span(0, 11), "Maria Novak", "PERSON"), Mention(1, Span(27, 32), "Novak", "PERSON")]
    linked = link(mentions, {1: Context(text)}, known, document_id="d", threshold=0.5)
    assert [m.entity_id for m in linked] == ["ent_1", "ent_1"]


def test_width_case_and_script_variants_link_and_say_so() -> None:
    known = catalogue(("ent_a", "ORG", "ACME-20", "", ["后台"]))
    assert "alias=folded" in resolve("ａｃｍｅ－２０ 。", "ａｃｍｅ－２０", known).reason
    assert resolve("後臺", "後臺", known).entity_id == "ent_a"
    assert resolve("後臺", "後臺", known).score < resolve("后台", "后台", known).score


def test_a_pinned_alias_overrules_context() -> None:
    known = catalogue(SEA, HILL, pins={alias_key("李伟"): "ent_hill"})
    linked = resolve("海石科技的李伟负责采购。", "李伟", known)
    assert (linked.entity_id, linked.reason) == ("ent_hill", "override=pinned")


def test_a_split_decides_in_the_documents_it_names_and_leaves_others_to_the_text() -> None:
    known = catalogue(
        ("ent_1", "PERSON", "Wang Fang", "", []),
        ("ent_2", "PERSON", "Wang Fang (Lyon)", "", ["Wang Fang"]),
        splits={("ent_1", "doc_old"): "ent_1", ("ent_1", "doc_split"): "ent_2"},
    )
    mention = Mention(1, Span(0, 9), "Wang Fang", "")
    contexts = {1: Context("Wang Fang")}
    found = {
        d: link([mention], contexts, known, document_id=d, threshold=0.5)[0]
        for d in ("doc_old", "doc_split", "doc_new")
    }
    assert {d: m.entity_id for d, m in found.items()} == {
        "doc_old": "ent_1",
        "doc_split": "ent_2",
        "doc_new": None,
    }
    assert found["doc_split"].reason == "override=split;split_from=ent_1"


def test_below_the_threshold_the_best_candidate_is_only_told() -> None:
    linked = resolve("Acme", "Acme", catalogue(("ent_a", "ORG", "ACME", "", [])), threshold=0.98)
    assert linked.entity_id is None
    assert 0.5 < linked.score < 0.98
    assert linked.reason.startswith("nil=below_threshold")


@pytest.mark.parametrize(
    ("alias", "text", "found"),
    [
        ("Apple", "An apple a day", []),
        ("Apple", "APPLE and Apple", ["APPLE", "Apple"]),
        ("Apple", "Pineapple Apples Applet", []),
        ("US", "Ask us in the US.", ["US"]),
        ("New York", "in New\nYork today", ["New\nYork"]),
        ("海石科技", "我们是海石科技的员工", ["海石科技"]),
        ("水", "喝水", []),
        ("C++", "We write C++ here", ["C++"]),
        ("XY-20", "型号ＸＹ－２０。", ["ＸＹ－２０"]),
        ("Zürich", "ZÜRICH", ["ZÜRICH"]),
    ],
)
def test_catalogue_names_are_found_as_whole_words(alias: str, text: str, found: list[str]) -> None:
    known = catalogue(("ent_a", "Thing", alias, "", []))
    assert [text[m.start : m.end] for m in known.find(text)] == found


def test_readings_share_a_name_by_weight_and_a_pin_leaves_one() -> None:
    both = [("ent_1", "PERSON", "Kim", "", []), ("ent_2", "PERSON", "KIM", "", [])]
    known = catalogue(*both, weights={"ent_1": 3.0})
    assert known.readings("kim") == {"ent_1": 0.75, "ent_2": 0.25}
    assert known.readings("Kimm") == {}
    pinned = catalogue(*both, pins={alias_key("Kim"): "ent_2"})
    assert pinned.readings("Kim") == {"ent_2": 1.0}


def test_bare_names_are_not_given_to_the_encoder() -> None:
    def never(*_: object) -> list[float]:
        raise AssertionError("the encoder was loaded for nothing")

    known = catalogue(("ent_1", "PERSON", "Ann Kim", "", []), ("ent_2", "PERSON", "Bo Kim", "", []))
    assert resolve("Kim spoke.", "Kim", known, similarity=never).entity_id is None


def test_the_longest_catalogue_name_wins() -> None:
    known = catalogue(("ent_a", "", "Bank", "", []), ("ent_b", "", "Bank of North", "", []))
    text = "The Bank of North and the Bank."
    assert [text[m.start : m.end] for m in known.find(text)] == ["Bank of North", "Bank"]


def test_recognised_and_catalogue_names_are_joined_without_overlaps() -> None:
    text = "Bank of North hired Tim Cook in Berlin."
    known = catalogue(("ent_b", "ORG", "Bank of North", "", []), ("ent_c", "GPE", "Berlin", "", []))
    recognised = [
        Mention(1, Span(0, 4), "Bank", "ORG"),
        Mention(1, Span(20, 28), "Tim Cook", "PERSON"),
        Mention(1, Span(32, 38), "Berlin", "GPE"),
    ]
    passage = Passage(1, "d", 1, 0, Span(0, len(text)), None, (), Lang.EN, text)
    joined = with_catalogue_names([passage], recognised, known)
    assert [(m.surface, m.type) for m in joined] == [
        ("Bank of North", ""),
        ("Tim Cook", "PERSON"),
        ("Berlin", "GPE"),
    ]


_NAMES = st.text(alphabet="aAbB 李伟海·-Ａé", min_size=1, max_size=6).filter(lambda s: alias_key(s) != "")


@settings(max_examples=150, deadline=None)
@given(names=st.lists(_NAMES, max_size=5), text=st.text(alphabet="aAbB 李伟海·-Ａé\n。", max_size=60))
def test_matches_are_ordered_disjoint_and_spell_an_alias(names: list[str], text: str) -> None:
    known = catalogue(*((f"e{n}", "", name, "", []) for n, name in enumerate(names)))
    keys = {alias_key(n) for n in names}
    end = 0
    for match in known.find(text):
        assert end <= match.start < match.end <= len(text)
        assert alias_key(text[match.start : match.end]) in keys
        end = match.end


@settings(max_examples=100, deadline=None)
@given(
    weights=st.lists(st.floats(0.01, 1e6), min_size=1, max_size=5),
    type=st.sampled_from(["", "PERSON", "GPE", "ORG"]),
    threshold=st.floats(0, 1),
)
def test_scores_are_probabilities_and_the_order_of_the_catalogue_does_not_matter(
    weights: list[float], type: str, threshold: float
) -> None:
    entities = [(f"e{n}", "PERSON", "Kim", f"number {n}", []) for n in range(len(weights))]
    by_id = {f"e{n}": w for n, w in enumerate(weights)}
    forth = resolve("Kim", "Kim", catalogue(*entities, weights=by_id), type=type, threshold=threshold)
    back = resolve(
        "Kim", "Kim", catalogue(*reversed(entities), weights=by_id), type=type, threshold=threshold
    )
    assert forth == back
    assert 0 <= forth.score <= 1
    assert forth.entity_id is None or forth.score >= threshold
