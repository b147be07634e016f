"""Search a better retrieval profile on judged questions: each is looked at once, then ranked again. Pure.

What the encoder and the indexes say of a question does not depend on the weights. So each question keeps its
routes' hits and the closeness of its candidates, and one trial is arithmetic on these: the same functions as
the ranking's own (`recall.fuse`, `rerank.final_order`). Questions are divided by a hash of their id; what is
chosen on one part is judged on the other, which no trial has seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.types import Lang
from retrieval.measure import Measure
from retrieval.measure_slices import bootstrap
from retrieval.profile import Profile, mostly_across
from retrieval.recall import fuse
from retrieval.rerank import final_order
from retrieval.routes import Recalled

if TYPE_CHECKING:
    import optuna

HELD_OUT = 3  # one question of so many is held out
MIN_QUESTIONS = 6
DEEPEST = 100  # hits per route and candidates whose closeness is known
# A depth costs time, so one that gains nothing is not taken: about a thousandth for each doubling.
_DEPTH_COST = 0.001 / 64


@dataclass(frozen=True, slots=True)
class Seen:
    """What one question's ranking depends on, whatever the weights.

    Attributes:
        recalled: hits of all routes, `DEEPEST` deep.
        langs: languages of the passages, by id.
        against: what speaks against passages, on the entity route's scale.
        closeness: by passage id, as `Scored.maxsim`.
        across: the same, as `Scored.closeness` across languages; empty when no candidate is in another one.
        document_of: passage id → document.
        relevant: judged documents with their gains.
    """

    id: str
    text: str
    lang: Lang
    recalled: Recalled
    langs: Mapping[int, Lang]
    against: Mapping[int, float]
    closeness: Mapping[int, float]
    across: Mapping[int, float]
    document_of: Mapping[int, str]
    relevant: Mapping[str, float]


def ranking(seen: Seen, profile: Profile) -> list[str]:
    """Documents, best first, as a query with this profile would rank them."""
    fused = fuse(seen.text, seen.recalled, seen.langs, profile=profile, against=seen.against)
    langs = [seen.langs[f.passage_id] for f in fused]
    size = profile.head_size(seen.lang, langs)
    head = [f.passage_id for f in fused[:size]]
    close = seen.across if seen.across and mostly_across(seen.lang, langs[:size]) else seen.closeness
    order = final_order(
        [(f.passage_id, f.score) for f in fused],
        {i: close[i] for i in head if i in close},
        weight=profile.tokens_weight(seen.lang, langs[:size]),
        exact={f.passage_id: f.exact for f in fused},
    )
    return list(dict.fromkeys(seen.document_of[i] for i, _ in order))


def scores(questions: Sequence[Seen], profile: Profile, measure: Measure) -> list[float]:
    """The measure of each question."""
    return [measure(ranking(seen, profile), seen.relevant) for seen in questions]


def held_out(question_id: str) -> bool:
    """Whether a question judges and does not choose; by its id alone, so the same in every run."""
    return hashlib.sha256(question_id.encode()).digest()[0] % HELD_OUT == 0


def tune(
    questions: Sequence[Seen],
    present: Profile,
    measure: Measure,
    *,
    trials: int,
    seed: int,
    told: Callable[[int, int], None],
) -> tuple[Profile, dict[str, Any]]:
    """The best profile of so many trials, and how it does beside the present one.

    Args:
        questions: at least `MIN_QUESTIONS`, some on either side of `held_out`.
        present: the first trial, so that nothing worse on the chosen part comes out.
        measure: of a ranking, higher is better.
        trials: how many profiles are tried.
        seed: of the sampler and of the bootstrap.
        told: called as `told(done, trials)`.

    Returns:
        The profile, and `chosen_on` and `held_out`: number of questions, both means, their difference with
        its 95 % interval and p by paired bootstrap.

    Raises:
        ValueError: too few questions, or none on one side.
    """
    import optuna

    chosen_on = [seen for seen in questions if not held_out(seen.id)]
    judged_on = [seen for seen in questions if held_out(seen.id)]
    if len(questions) < MIN_QUESTIONS or not chosen_on or not judged_on:
        raise ValueError(
            f"{len(chosen_on)} questions to choose on and {len(judged_on)} to judge on are too few;"
            f" name a set with at least {MIN_QUESTIONS} judged questions"
        )
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    spoken = {seen.lang for seen in chosen_on}
    crossing = any(seen.across for seen in chosen_on)
    study.enqueue_trial(_numbers(present, spoken, crossing))

    def one(trial: optuna.Trial) -> float:
        tried = _suggested(trial, present, spoken, crossing)
        found = scores(chosen_on, tried, measure)
        told(trial.number + 1, trials)
        return sum(found) / len(found) - _DEPTH_COST * (tried.rerank_k + tried.route_k / 4)

    study.optimize(one, n_trials=trials)
    best = _suggested(optuna.trial.FixedTrial(study.best_params), present, spoken, crossing)
    return best, {
        "chosen_on": _compared(chosen_on, present, best, measure, seed),
        "held_out": _compared(judged_on, present, best, measure, seed),
    }


def _suggested(
    trial: optuna.Trial | optuna.trial.FixedTrial, present: Profile, spoken: set[Lang], crossing: bool
) -> Profile:
    """A profile: what the questions cannot tell anything of stays as it is."""
    changes: dict[str, Any] = {
        "entity": trial.suggest_float("entity", 0.0, 2.0, step=0.1),
        "route_k": trial.suggest_int("route_k", 20, DEEPEST, step=10),
        "rerank_k": trial.suggest_int("rerank_k", 5, DEEPEST, step=5),
    }
    for name in _languages(spoken):
        changes[name] = getattr(present, name).model_copy(
            update={
                "lexical": trial.suggest_float(f"{name}.lexical", 0.0, 2.0, step=0.05),
                "tokens": trial.suggest_float(f"{name}.tokens", 0.0, 6.0, step=0.25),
            }
        )
    if crossing:
        changes["across"] = present.across.model_copy(
            update={
                "tokens": trial.suggest_float("across.tokens", 0.0, 12.0, step=0.5),
                "head": trial.suggest_int("across.head", 20, DEEPEST, step=10),
            }
        )
    return present.model_copy(update=changes)


def _numbers(profile: Profile, spoken: set[Lang], crossing: bool) -> dict[str, Any]:
    """A profile as the parameters of a trial; the weights are relative to a dense route of 1."""
    found: dict[str, Any] = {
        "entity": profile.entity,
        "route_k": min(DEEPEST, profile.route_k),
        "rerank_k": min(DEEPEST, profile.rerank_k),
    }
    for name in _languages(spoken):
        found |= {
            f"{name}.lexical": getattr(profile, name).lexical,
            f"{name}.tokens": getattr(profile, name).tokens,
        }
    if crossing:
        found |= {"across.tokens": profile.across.tokens, "across.head": min(DEEPEST, profile.across.head)}
    return found


def _languages(spoken: set[Lang]) -> list[str]:
    return sorted({"zh" if lang is Lang.ZH else "en" for lang in spoken})


def _compared(
    questions: Sequence[Seen], present: Profile, best: Profile, measure: Measure, seed: int
) -> dict[str, Any]:
    before, after = scores(questions, present, measure), scores(questions, best, measure)
    return {
        "n": len(questions),
        "present": round(sum(before) / len(before), 4),
        "tuned": round(sum(after) / len(after), 4),
        **bootstrap([b - a for a, b in zip(before, after, strict=True)], seed=seed),
    }
