"""From a ranking to one page of a search, and the event that carries it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from retrieval.evidence_choice import diversified
from retrieval.queries import page_of
from retrieval.query_outcome import Outcome, Prepared
from retrieval.query_trace import trace_of
from retrieval.ranking import Ranked, Ranking


def search_page(prepared: Prepared, ranking: Ranking) -> Outcome:
    """Diversify the whole ranking, then cut the page out of it: score → sort → slice."""
    offset, top_k = page_of(prepared.query.options)
    selection = diversified(ranking.ranked, limit=offset + top_k, cap=offset + top_k)
    by_id = {r.stored.passage.id: r for r in ranking.ranked}
    page = selection.kept[offset : offset + top_k]
    hits = tuple(
        _hit(by_id[key], offset + i, selection.collapsed.get(key, 0)) for i, key in enumerate(page, 1)
    )
    duplicates = sum(1 for d in selection.dropped if d.why == "duplicate")
    return Outcome(ranking, hits=hits, total=len(ranking.ranked) - duplicates, dropped=selection.dropped)


def _hit(one: Ranked, rank_: int, collapsed: int) -> dict[str, Any]:
    return {
        "rank": rank_,
        "passage_id": one.stored.passage.id,
        "score": round(one.relevance, 6),
        "fused": round(one.fused.score, 6),
        "reranked": None if one.scored is None else round(one.scored.maxsim, 6),
        "cross": None if one.cross is None else round(one.cross, 6),
        "routes": [{"route": h.route.value, "rank": h.rank, "score": h.score} for h in one.fused.hits],
        "collapsed": collapsed,
    }


def search_payload(prepared: Prepared, outcome: Outcome) -> dict[str, Any]:
    """The `search` event: the hits with their passages as the search door shows them."""
    by_id = {r.stored.passage.id: r.stored for r in outcome.ranking.ranked}
    hits: list[dict[str, Any]] = []
    for hit in outcome.hits:
        stored = by_id[hit["passage_id"]]
        passage = stored.passage
        hits.append(
            {
                **hit,
                "document_id": passage.document_id,
                "document_name": stored.document_name,
                "collection_id": stored.collection_id,
                "version": passage.version,
                "page": passage.page,
                "heading_path": list(passage.heading_path),
                "lang": passage.lang.value,
                "text": passage.text,
            }
        )
    payload = {**trace_of(prepared, replace(outcome, hits=())), "hits": hits}
    if not prepared.query.options.get("explain"):
        payload.pop("dropped")
    return payload
