"""From a ranking to the evidence of an answer: what is about the question, diverse, and fits the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.settings import get_settings
from core.types import CitationMode, Evidence, Passage
from ingest.encode import TokenVectors
from retrieval.depth import EVIDENCE, MOST, Depth
from retrieval.fuse import Fused
from retrieval.live import StoredPassage
from retrieval.mmr import mmr_order
from retrieval.neighbours import Neighbour, that_fit
from retrieval.open_names import answered_for_each
from retrieval.pack import Candidate, Dropped, Selection, diversify, fit
from retrieval.query_outcome import Outcome, Prepared
from retrieval.ranking import Ranked, Ranking
from retrieval.recall import encoded_text
from retrieval.relevance import Question
from retrieval.rerank import Scored
from retrieval.sentence_scores import score_sentences

FindNeighbours = Callable[[Sequence[Passage]], Sequence[Neighbour]]
TOO_OLD = "too_old"
_NEVER_BESIDE = frozenset({"another_entity", "duplicate", TOO_OLD})  # not even where there is room


def choose_evidence(
    prepared: Prepared,
    ranking: Ranking,
    find_neighbours: FindNeighbours | None = None,
    *,
    old: frozenset[int] = frozenset(),
) -> Outcome:
    """The passages that may be cited, marked in the order in which they are shown, with scored sentences.

    Args:
        prepared: the query.
        ranking: of its passages.
        find_neighbours: passages beside some; None leaves them out.
        old: passages whose source is older than the policy lets be cited.
    """
    settings = get_settings().retrieval
    about_others, own = _about_others(ranking)
    outdated, own = _of_age(prepared, own, old)
    ranking = _with_listed(ranking, own)
    relevant, irrelevant = _relevant(prepared, own)
    relevant, irrelevant = _with_each(ranking, own, relevant, irrelevant)
    limit = min(prepared.profile.profile.max_evidence, EVIDENCE.get(ranking.reading.depth, MOST))
    relevant = _spread(relevant, settings.mmr_balance)
    selection = diversified(relevant, limit=limit, cap=settings.per_document_cap)
    by_id = {r.stored.passage.id: r for r in relevant}
    chosen: Sequence[Ranked] = [by_id[key] for key in selection.kept]
    left_out = (*selection.dropped, *irrelevant, *about_others, *outdated)
    if _model_reads(prepared, ranking):
        chosen, over = _within_budget(prepared, chosen)
        left_out = (*left_out, *over)
        if find_neighbours is not None and ranking.reading.depth is Depth.FULL:
            barred = {d.key for d in left_out if d.why in _NEVER_BESIDE}
            beside = [
                n
                for n in find_neighbours([r.stored.passage for r in chosen])
                if n.stored.passage.id not in barred
            ]
            chosen = _with_neighbours(prepared, ranking, chosen, beside, limit)
    shown = {r.stored.passage.id for r in chosen}
    return Outcome(
        ranking,
        evidence=_marked(ranking.question, chosen, selection.collapsed),
        total=len(ranking.ranked),
        dropped=tuple(d for d in left_out if d.key not in shown),
    )


def _within_budget(
    prepared: Prepared, chosen: Sequence[Ranked]
) -> tuple[Sequence[Ranked], tuple[Dropped, ...]]:
    """Those that the engine's context holds as a prompt shows them, and the others."""
    budget, count = _budget(prepared)
    by_id = {r.stored.passage.id: r for r in chosen}
    kept, over = fit([_shown(r) for r in chosen], budget=budget, count_tokens=count)
    return [by_id[key] for key in kept], over


def _with_neighbours(
    prepared: Prepared,
    ranking: Ranking,
    chosen: Sequence[Ranked],
    found: Sequence[Neighbour],
    limit: int,
) -> Sequence[Ranked]:
    """Each passage followed by its neighbours in the order of the document, while there is room for them."""
    budget, count = _budget(prepared)
    beside = that_fit(
        found,
        room=budget - sum(count(_shown(r).text) for r in chosen),
        most=limit - len(chosen),
        count=lambda stored: count(_shown(_beside(stored)).text),
    )
    of_ranking = {r.stored.passage.id: r for r in ranking.ranked}
    order: list[Ranked] = []
    for one in chosen:
        own = [n.stored for n in beside if n.anchor == one.stored.passage.id]
        own.sort(key=lambda stored: stored.passage.ordinal)
        order.append(one)
        order.extend(of_ranking.get(stored.passage.id) or _beside(stored) for stored in own)
    return order


def _budget(prepared: Prepared) -> tuple[int, Callable[[str], int]]:
    """Tokens that evidence may take, and what counts them."""
    from retrieval.budget import context_budget, token_counter

    return context_budget(prepared.plan, get_settings().retrieval), token_counter(prepared.plan)


def _marked(
    question: Question, chosen: Sequence[Ranked], collapsed: Mapping[int, int]
) -> tuple[Evidence, ...]:
    """The chosen passages as evidence, marked from 1, their sentences scored against each other.

    Evidence is always reranked unless the time budget cut the head short: then it has no sentences.
    """
    scored = score_sentences(
        question,
        [
            (
                r.stored.passage.text,
                _own_tokens(r.stored.passage, r.scored),
                r.stored.passage.span.start,
                r.relevance,
            )
            for r in chosen
            if r.scored is not None
        ],
    )
    sentences = iter(scored)
    return tuple(
        Evidence(
            marker=marker,
            passage=r.stored.passage,
            score=round(r.relevance, 6),
            routes=r.fused.hits,
            sentences=next(sentences) if r.scored is not None else (),
            document_name=r.stored.document_name,
            collection_id=r.stored.collection_id,
            collapsed=collapsed.get(r.stored.passage.id, 0),
        )
        for marker, r in enumerate(chosen, 1)
    )


def _about_others(ranking: Ranking) -> tuple[tuple[Dropped, ...], Sequence[Ranked]]:
    """Passages about somebody else of the name that the question means, and the rest.

    They answer a question that was not asked, however near they are.
    """
    others = ranking.entities.others
    about = tuple(
        Dropped(r.stored.passage.id, "another_entity", None)
        for r in ranking.ranked
        if r.stored.passage.id in others
    )
    return about, [r for r in ranking.ranked if r.stored.passage.id not in others]


def _of_age(
    prepared: Prepared, own: Sequence[Ranked], old: frozenset[int]
) -> tuple[tuple[Dropped, ...], Sequence[Ranked]]:
    """The passages that may be cited by their age; those that would have been evidence are told of."""
    threshold = _threshold(prepared)
    outdated = tuple(
        Dropped(r.stored.passage.id, TOO_OLD, None)
        for r in own
        if r.stored.passage.id in old and r.relevance >= threshold
    )
    return outdated, [r for r in own if r.stored.passage.id not in old] if old else own


def _threshold(prepared: Prepared) -> float:
    threshold = prepared.query.policy.get("refusal_threshold")
    return get_settings().retrieval.refusal_threshold if threshold is None else threshold


def _with_listed(ranking: Ranking, own: Sequence[Ranked]) -> Ranking:
    """The ranking with those readings of an open name that the answer lists."""
    entities = ranking.entities
    if not entities.each:
        return ranking
    relevance = {r.stored.passage.id: r.relevance for r in own}
    return replace(
        ranking,
        entities=replace(entities, each=answered_for_each(entities.each, relevance, entities.said)),
    )


def _with_each(
    ranking: Ranking, own: Sequence[Ranked], relevant: Sequence[Ranked], irrelevant: tuple[Dropped, ...]
) -> tuple[Sequence[Ranked], tuple[Dropped, ...]]:
    """Where a name may mean several and one of them is answered for, the best passage of each other one too.

    The asker sees then that there are several, and not one as if there were no other.
    """
    chosen = {r.stored.passage.id for r in relevant}
    groups = ranking.entities.each
    if not irrelevant or not any(group & chosen for group in groups):
        return relevant, irrelevant
    for group in groups:
        best = next((r.stored.passage.id for r in own if r.stored.passage.id in group), None)
        if best is not None and not group & chosen:
            chosen.add(best)
    kept = [r for r in own if r.stored.passage.id in chosen]
    return kept, tuple(d for d in irrelevant if d.key not in chosen)


def _relevant(prepared: Prepared, ranked: Sequence[Ranked]) -> tuple[Sequence[Ranked], tuple[Dropped, ...]]:
    """Passages that would not answer by themselves do not stand beside one that does.

    A true sentence about something else is no part of an answer. When nothing is relevant, all stay: the
    answer is a refusal and shows what came nearest.
    """
    threshold = _threshold(prepared)
    relevant = [r for r in ranked if r.relevance >= threshold]
    if not relevant:
        return ranked, ()
    others = tuple(
        Dropped(r.stored.passage.id, "irrelevant", None) for r in ranked if r.relevance < threshold
    )
    return relevant, others


def _model_reads(prepared: Prepared, ranking: Ranking) -> bool:
    """Whether the evidence goes into a prompt, so that the engine's budget limits it.

    `extract` shows sentences that the reranker chose, and so does `free` in a language that the model does
    not know: both may draw on all of the evidence.
    """
    if prepared.query.policy.get("mode", CitationMode.EXTRACT.value) == CitationMode.EXTRACT.value:
        return False
    if ranking.reading.depth is Depth.EXTRACT:
        return False
    languages: Sequence[str] = (prepared.plan or {}).get("languages", ())
    return not languages or ranking.question.lang.value in languages


def _beside(stored: StoredPassage) -> Ranked:
    """A passage that no route brought."""
    return Ranked(stored, Fused(stored.passage.id, 0.0, ()), 0.0, 0.0, None)


def _spread(ranked: Sequence[Ranked], balance: float) -> Sequence[Ranked]:
    """The reranked passages by marginal relevance, the others as they were."""
    read = [r for r in ranked if r.scored is not None and len(r.scored.tokens)]
    if balance >= 1 or len(read) < 3:
        return ranked
    means = np.stack([r.scored.tokens.mean for r in read if r.scored is not None])
    order = mmr_order([r.score for r in read], means, balance=balance)
    first = [read[n] for n in order]
    chosen = {r.stored.passage.id for r in first}
    return [*first, *(r for r in ranked if r.stored.passage.id not in chosen)]


def diversified(ranked: Sequence[Ranked], *, limit: int, cap: int) -> Selection:
    """`diversify` over ranked passages."""
    return diversify(
        [Candidate(r.stored.passage.id, r.stored.passage.document_id, r.stored.passage.text) for r in ranked],
        per_document_cap=cap,
        limit=limit,
    )


def _shown(one: Ranked) -> Candidate:
    """The evidence as a prompt shows it, for counting: marker, name, headings and text."""
    passage = one.stored.passage
    heading = " / ".join((one.stored.document_name, *passage.heading_path))
    return Candidate(passage.id, passage.document_id, f"[00] {heading}\n{passage.text}\n\n")


def _own_tokens(passage: Passage, scored: Scored) -> TokenVectors:
    """Token places counted from the passage's own text; those of its headings come before 0."""
    before = len(encoded_text(passage)) - len(passage.text)
    tokens = scored.tokens.vectors()
    return TokenVectors(tokens.vectors, tokens.offsets - before)
