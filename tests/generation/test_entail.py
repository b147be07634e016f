from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import ConfigError
from core.settings import GenerationSettings, Settings, get_settings
from core.types import Verdict
from generation.answer import settled, still_supported
from generation.entail import EntailmentPack, configured_entailment, with_entailment
from generation.verify import judge_all
from tests.generation.evidence import evidence
from tests.generation.nli_pack import make_nli_pack

TOWER = evidence(1, "The tower is tall.")
PUMP = evidence(2, "The pump moves water.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_nli_pack(tmp_path_factory.mktemp("packs") / "acme__nli")


@pytest.fixture(scope="module")
def pack(folder: Path) -> EntailmentPack:
    return EntailmentPack(folder, batch=2, budget_ms=60_000)


@pytest.fixture
def configured(folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GEO_PACKS__FOLDER", str(folder.parent))
    monkeypatch.setenv("GEO_PACKS__NLI", "acme/nli")
    get_settings.cache_clear()
    configured_entailment.cache_clear()
    yield
    configured_entailment.cache_clear()


def test_labels_are_found_by_name_in_any_order(pack: EntailmentPack) -> None:
    entailed, denied = pack(
        [("The tower is tall.", "The tower is lofty."), ("The pump moves water.", "It stops.")]
    )
    assert entailed is not None
    assert denied is not None
    assert entailed.entails > 0.9 > entailed.contradicts
    assert denied.contradicts > 0.9 > denied.entails


def test_a_checkpoint_without_the_two_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="entail"):
        EntailmentPack(make_nli_pack(tmp_path / "other", ("a", "b", "c")))
    with pytest.raises(ConfigError, match="no readable"):
        EntailmentPack(tmp_path / "nothing")


def test_pairs_beyond_the_budget_are_left_to_the_rules(folder: Path) -> None:
    hurried = EntailmentPack(folder, batch=2, budget_ms=0.0001)
    told = hurried([("The tower is tall.", "The tower is lofty.")] * 5)
    assert [word is None for word in told] == [False, False, True, True, True]


def test_other_words_of_the_same_meaning_are_supported(pack: EntailmentPack) -> None:
    claim = "The tower is lofty."
    by_rules = judge_all(claim, [TOWER])
    assert by_rules[0][1].verdict is not Verdict.SUPPORTED
    ((_, judgement),) = with_entailment(claim, by_rules, pack, GenerationSettings())
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.reason.startswith("nli_entails=")


def test_what_the_model_finds_denied_is_not_shown_as_supported(pack: EntailmentPack) -> None:
    claim = "The pump stops water."
    by_rules = judge_all(claim, [PUMP])
    ((_, judgement),) = with_entailment(claim, by_rules, pack, GenerationSettings())
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert judgement.reason.startswith(("nli_contradicts=", "direction"))


def test_a_wrong_number_stays_wrong_whatever_the_model_says(pack: EntailmentPack) -> None:
    claim = "The tower is lofty 12."
    ((_, judgement),) = with_entailment(claim, judge_all(claim, [TOWER]), pack, GenerationSettings())
    assert judgement.verdict is Verdict.UNSUPPORTED


def test_a_configured_pack_is_asked_about_every_claim(configured: None) -> None:
    entails = configured_entailment()
    assert entails is not None
    claim = settled("The tower is lofty.", [1], [TOWER, PUMP], show_partial=True, entails=entails)
    assert (claim.text, claim.verdict) == ("The tower is lofty.", Verdict.SUPPORTED)
    assert still_supported(claim, [TOWER, PUMP], entails)
    assert not still_supported(claim, [TOWER, PUMP])


def test_a_pack_that_is_not_there_leaves_the_rules_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GEO_PACKS__FOLDER", str(tmp_path))
    monkeypatch.setenv("GEO_PACKS__NLI", "acme/missing")
    get_settings.cache_clear()
    configured_entailment.cache_clear()
    assert configured_entailment() is None
    configured_entailment.cache_clear()
