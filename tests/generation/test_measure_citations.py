from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.errors import InvalidInput
from generation.logistic import balanced_accuracy, cross_fitted, fit
from generation.measure_citations import eval_citations, read_claims
from generation.measure_edits import EDITS
from generation.signals import NAMES, signals


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return path


def rows(n: int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for i in range(n):
        true = f"Pump {i + 1} in hall {i + 2} delivers water to the tank."
        said = true if i % 2 else f"Valve {i + 7} in the cellar releases steam into the street."
        found.append(
            {
                "id": str(i),
                "claim": said,
                "passages": [{"id": 0, "text": true}, {"id": 1, "text": f"Hall {i + 2} is old."}],
                "label": "supported" if i % 2 else "not_supported",
            }
        )
    return found


def test_claims_are_told_apart_and_every_figure_is_named(tmp_path: Path) -> None:
    figures = eval_citations(write(tmp_path / "claims.jsonl", rows(40)))
    assert figures["balanced_accuracy"] == figures["auc"] == 1.0
    assert (figures["n"], figures["question"]) == (40, "support")
    assert figures["rules"]["precision_of_supported"] == 1.0
    assert figures["by_error"]["words"] == {"caught": 20, "false_alarms": 0}
    assert figures["by_edit"]["number"]["share"] == 1.0
    assert figures["by_edit"]["verbatim"]["caught"] == 0


def test_a_file_of_one_kind_has_no_balanced_accuracy(tmp_path: Path) -> None:
    path = write(tmp_path / "text.jsonl", [{"_id": "a", "text": "塔高三百三十米。它在巴黎。"}])
    figures = eval_citations(path)
    assert figures["balanced_accuracy"] is None
    assert read_claims(path)[0].text == "塔高三百三十米。"
    with pytest.raises(InvalidInput, match="row 1"):
        read_claims(write(tmp_path / "odd.jsonl", [{"a": 1}]))


def test_support_against_contradiction_looks_at_directions_only(tmp_path: Path) -> None:
    written = []
    for i in range(80):
        way, other = ("increases", "decreases") if i % 2 else ("decreases", "increases")
        written.append(
            {
                "id": f"x-{i}",
                "claim": f"Dose {i} {way} weight.",
                "passages": [
                    {"text": f"We found that dose {i} {way if i % 4 < 2 else other} weight in mice."}
                ],
                "label": "SUPPORT" if i % 4 < 2 else "CONTRADICT",
            }
        )
    figures = eval_citations(write(tmp_path / "science.jsonl", written))
    assert figures["question"] == "contradiction"
    assert figures["balanced_accuracy"] == 1.0


def test_an_answer_without_its_support_counts_as_unsupported(tmp_path: Path) -> None:
    row = {
        "id": "q",
        "question": "?",
        "answer": "Pumps move water.",
        "passages": [{"text": "Pumps move water."}, {"text": "Cats sleep."}],
        "gold_support_sets": [[0]],
    }
    claims = read_claims(write(tmp_path / "answers.jsonl", [row]))
    assert [(c.supported, len(c.passages)) for c in claims] == [(True, 2), (False, 1)]


def test_weights_never_see_the_rows_they_are_read_on() -> None:
    table = np.random.default_rng(0).normal(size=(200, 30))
    truth = np.arange(200) % 2 == 0
    chances = cross_fitted(table, truth, [str(i) for i in range(200)])
    score = balanced_accuracy(truth.tolist(), (chances > 0.5).tolist())
    assert score is not None
    assert abs(score - 0.5) < 0.12  # noise stays noise
    fitted = fit(table, truth)(table) > 0.5
    assert (fitted == truth).mean() > 0.6  # although it could be learnt by heart


def test_signals_have_a_value_for_every_name() -> None:
    assert set(signals("Pumps move water.", ["Pumps move water.", "Cats sleep."])) == set(NAMES)
    assert set(signals("Pumps move water.", [])) == set(NAMES)


def test_every_edit_changes_a_sentence_that_offers_a_place() -> None:
    text = (
        "In June Acme said that 12 km of pipe may be laid before Bolt arrives because some workers, at least "
        "3, think it is the best. It was not increased. It was built in 1998 and opened in 2003."
    )
    for edit in EDITS:
        changed = edit.apply(text)
        assert changed is not None, edit.kind
        assert changed != text


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "least"), [("wice_dev", 0.65), ("scifact_train", 0.60)], ids=["support", "contradiction"]
)
def test_public_sets_are_told_apart(shared_data: Path, name: str, least: float) -> None:
    path = shared_data / "data/cite_uniform" / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip("this public set is not here")
    figures = eval_citations(path)
    assert figures["balanced_accuracy"] >= least
    assert figures["auc"] >= 0.62
