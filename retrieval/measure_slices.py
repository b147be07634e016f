"""Figures by kind of question, and whether a difference between two rankings is more than chance. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.types import Lang
from retrieval.identifiers import codes
from retrieval.language import question_language
from retrieval.relevance import terms

RESAMPLES = 2000
_NUMBER = re.compile(
    r"多少|几|何时|什么时候|哪一?年|\bhow (?:many|much|long|old|far)\b|\bwhen\b", re.IGNORECASE
)
_SHORT, _LONG = 4, 12  # terms of a question


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's figures: its text, and measure by name for the final ranking and for each route."""

    text: str
    final: Mapping[str, float]
    routes: Mapping[str, Mapping[str, float]]


def kinds(text: str) -> list[str]:
    """The slices that a question belongs to."""
    found = [question_language(text).value if question_language(text) is not Lang.UND else "other language"]
    count = len(terms(text))
    found.append("short" if count <= _SHORT else "long" if count > _LONG else "middle")
    if codes(text):
        found.append("code")
    if _NUMBER.search(text):
        found.append("number")
    return found


def by_kind(asked: Sequence[Asked], measures: Sequence[str] = ("recall@1", "ndcg@10")) -> dict[str, Any]:
    """Means of the final ranking and of the best route, per slice."""
    slices: dict[str, list[Asked]] = {}
    for one in asked:
        for kind in kinds(one.text):
            slices.setdefault(kind, []).append(one)
    return {
        kind: {
            "n": len(own),
            **{name: round(_mean([a.final[name] for a in own]), 4) for name in measures},
            "best_route": round(max(_route_means(own, "ndcg@10").values(), default=0.0), 4),
        }
        for kind, own in sorted(slices.items())
    }


def against_best_route(asked: Sequence[Asked], *, measure: str = "ndcg@10", seed: int = 0) -> dict[str, Any]:
    """The final ranking beside the best route: difference, its 95 % interval and p by paired bootstrap.

    Questions are drawn with replacement, both rankings of a question together. `p` is twice the share of
    draws on the other side of zero.

    Source: Sakai, SIGIR 2006, doi:10.1145/1148170.1148261.
    """
    means = _route_means(asked, measure)
    if not means:
        return {}
    best = max(means, key=lambda route: (means[route], route))
    differences = [a.final[measure] - a.routes[best][measure] for a in asked]
    return {"route": best, "measure": measure, **bootstrap(differences, seed=seed)}


def bootstrap(differences: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> dict[str, Any]:
    """Mean of paired differences with its 95 % percentile interval and two-sided p."""
    if not differences:
        return {"difference": 0.0, "ci95": [0.0, 0.0], "p": 1.0}
    source = random.Random(seed)  # noqa: S311 - resampling, no secret
    means = sorted(_mean(source.choices(differences, k=len(differences))) for _ in range(resamples))
    below = sum(1 for m in means if m <= 0) / resamples
    above = sum(1 for m in means if m >= 0) / resamples
    return {
        "difference": round(_mean(differences), 4),
        "ci95": [round(means[int(0.025 * resamples)], 4), round(means[int(0.975 * resamples) - 1], 4)],
        "p": round(min(1.0, 2 * min(below, above)), 4),
    }


def _route_means(asked: Sequence[Asked], measure: str) -> dict[str, float]:
    routes = sorted({route for a in asked for route in a.routes})
    return {route: _mean([a.routes[route][measure] for a in asked]) for route in routes}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
