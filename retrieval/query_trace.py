"""What is stored with a query of how its ranking came to be: ids, ranks and scores, never text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from retrieval.depth import losses
from retrieval.evidence_choice import TOO_OLD
from retrieval.query_outcome import Outcome, Prepared
from retrieval.query_repository import StoredQuery
from retrieval.ranking import Ranking
from retrieval.variants import WEIGHT

LATE = "late"  # the search did not wait any longer for what a model was to write
_MOST_DROPPED = 200  # passages that a trace tells of


def trace_of(prepared: Prepared, outcome: Outcome) -> dict[str, Any]:
    """What is stored with the query: ids, ranks and scores, never text (text is joined when read)."""
    trace: dict[str, Any] = {
        "routes": {r.value: report.as_json() for r, report in outcome.ranking.recalled.reports.items()},
        "question_lang": outcome.ranking.question.lang.value,
        "names": _names(outcome.ranking),
        "profile": prepared.profile.as_json(),
        "total": outcome.total,
        "rerank": _rerank(outcome.ranking),
        "dropped": [{"passage_id": d.key, "why": d.why, "of": d.of} for d in outcome.dropped[:_MOST_DROPPED]],
    }
    if prepared.asked.topic:
        trace["asked"] = asdict(prepared.asked)
    trace |= _rewriting(prepared.query)
    if prepared.query.task == "search":
        trace["hits"] = list(outcome.hits)
    else:
        trace["best_relevance"] = max((e.score for e in outcome.evidence), default=0.0)
        trace["readings"] = _readings(outcome)
        if outdated := sum(d.why == TOO_OLD for d in outcome.dropped):
            trace["too_old"] = outdated
    return trace


def late_rewrite(query: StoredQuery) -> str:
    """The kind of variants that its policy asks for, where the search did not wait for them; else empty."""
    kind: str = query.policy.get("rewrite", "off")
    waited = kind != "off" and query.task != "summarize"
    return kind if waited and not query.variants and not query.rewrite else ""


def _rewriting(query: StoredQuery) -> dict[str, Any]:
    """The variants that were searched for, or that they came too late."""
    told: dict[str, Any] = {}
    if query.variants:
        told["variants"] = [{**variant.as_json(), "weight": WEIGHT} for variant in query.variants]
    if kind := late_rewrite(query):
        told["rewrite"] = {"kind": kind, "state": LATE}
    return told


def _rerank(ranking: Ranking) -> dict[str, Any]:
    """How far the rerank read, and the depth of the answer with the chance that each depth loses it."""
    reading = ranking.reading
    told: dict[str, Any] = {
        "head": ranking.head,
        "read": len(reading.scored),
        "settled": reading.settled,
        "depth": reading.depth.value,
    }
    if reading.signals is not None:
        told["signals"] = {k: round(float(v), 4) for k, v in asdict(reading.signals).items()}
        told["losses"] = {depth.value: round(chance, 4) for depth, chance in losses(reading.signals).items()}
    return told


def _names(ranking: Ranking) -> list[dict[str, Any]]:
    """The names of the question with what they may mean, likeliest first."""
    return [
        {
            "start": name.name.start,
            "end": name.name.end,
            "certainty": round(name.certainty, 3),
            "readings": [
                {"entity_id": entity_id, "share": round(share, 3)}
                for entity_id, share in sorted(name.shares.items(), key=lambda item: (-item[1], item[0]))
            ],
        }
        for name in ranking.entities.weighed
    ]


def _readings(outcome: Outcome) -> list[list[int]]:
    """Markers of the evidence for each entity that a name of the question may mean; empty for one only."""
    groups = [
        [e.marker for e in outcome.evidence if e.passage.id in passages]
        for passages in outcome.ranking.entities.each
    ]
    groups = [group for group in groups if group]
    return groups if len(groups) > 1 else []
