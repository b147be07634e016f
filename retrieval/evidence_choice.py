"""From a ranking to the evidence of an answer: what is about the question, diverse, and fits the engine."""

from __future__ import annotations

from collections.abc import Sequence

from core.settings import get_settings
from core.types import CitationMode, Evidence, Passage
from ingest.encode import TokenVectors
from retrieval.depth import EVIDENCE, MOST, Depth
from retrieval.pack import Candidate, Dropped, Selection, diversify, fit
from retrieval.query_outcome import Outcome, Prepared
from retrieval.recall import Ranked, Ranking, encoded_text
from retrieval.rerank import Scored
from retrieval.sentence_scores import score_sentences


def choose_evidence(prepared: Prepared, ranking: Ranking) -> Outcome:
    """The passages that may be cited, marked in the order in which they are shown, with scored sentences."""
    settings = get_settings().retrieval
    about_others, own = _about_others(ranking)
    relevant, irrelevant = _relevant(prepared, own)
    relevant, irrelevant = _with_each(ranking, own, relevant, irrelevant)
    limit = min(prepared.profile.profile.max_evidence, EVIDENCE.get(ranking.reading.depth, MOST))
    selection = diversified(relevant, limit=limit, cap=settings.per_document_cap)
    by_id = {r.stored.passage.id: r for r in relevant}
    kept, dropped = selection.kept, (*selection.dropped, *irrelevant, *about_others)
    if _model_reads(prepared, ranking):
        from retrieval.budget import context_budget, token_counter

        fitted, over = fit(
            [_shown(by_id[key]) for key in kept],
            budget=context_budget(prepared.plan, settings),
            count_tokens=token_counter(prepared.plan),
        )
        kept, dropped = fitted, (*dropped, *over)
    chosen = [by_id[key] for key in canonical_order(kept)]
    sentences = score_sentences(
        ranking.question,
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
    # Evidence is always reranked unless the time budget cut the head short: then it has no sentences.
    own = iter(sentences)
    evidence = tuple(
        Evidence(
            marker=marker,
            passage=r.stored.passage,
            score=round(r.relevance, 6),
            routes=r.fused.hits,
            sentences=next(own) if r.scored is not None else (),
            document_name=r.stored.document_name,
            collection_id=r.stored.collection_id,
            collapsed=selection.collapsed.get(r.stored.passage.id, 0),
        )
        for marker, r in enumerate(chosen, 1)
    )
    return Outcome(ranking, evidence=evidence, total=len(ranking.ranked), dropped=dropped)


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
    threshold = prepared.query.policy.get("refusal_threshold")
    if threshold is None:
        threshold = get_settings().retrieval.refusal_threshold
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


def canonical_order(kept: Sequence[int]) -> Sequence[int]:
    """The order in which evidence is marked and shown: best first."""
    return kept


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
