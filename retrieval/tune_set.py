"""`geo tune`: look at the questions of a judged set once, on a scratch installation or a live collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import select

from core.db import Database, get_database
from core.errors import InvalidInput, NotFound
from core.models import CollectionRow, DocumentRow
from core.settings import get_settings
from core.types import DocumentStatus, Role, Scope
from retrieval.centres import centres_of
from retrieval.filters import Filters
from retrieval.language import across
from retrieval.measure import Measure, Qrels, ndcg, read_corpus, read_jsonl, read_qrels, reciprocal_rank
from retrieval.profile import ProfileInForce, built_in
from retrieval.profiles import profile_of
from retrieval.ranking import encode_packed, packed_of, token_cache
from retrieval.recall import Stopwatch, encoded_text, recall_and_fuse
from retrieval.rerank import score_head
from retrieval.scratch import scratch_stack
from retrieval.searches import LazyQuestion, SnapshotSource
from retrieval.tune import DEEPEST, Seen, tune

Progress = Callable[[int, int], None]
_LOOK_S = 3600.0  # a look at a question has all the time that it needs


def recall_at_1(ranking: Sequence[str], relevant: Mapping[str, float]) -> float:
    """Whether the first document is a relevant one."""
    return float(bool(ranking) and ranking[0] in relevant)


MEASURES: Mapping[str, Measure] = {"ndcg@10": ndcg, "mrr@10": reciprocal_rank, "recall@1": recall_at_1}


@dataclass(frozen=True, slots=True)
class Search:
    """How a tune searches.

    Attributes:
        measure: a name of `MEASURES`.
        limit: look at the first so many judged questions only.

    Raises:
        InvalidInput: an unknown measure.
    """

    measure: str = "ndcg@10"
    trials: int = 100
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise InvalidInput(f"Unknown measure {self.measure!r}; known: {', '.join(MEASURES)}.")


def tune_on_corpus(
    corpus: Path,
    queries: Path,
    qrels: Path,
    search: Search,
    *,
    keep: Path | None,
    told: Callable[[str], Progress],
) -> dict[str, Any]:
    """Ingest a corpus into a scratch folder and tune on it, against the built-in profile.

    Returns:
        `profile` and `figures`, as `POST /v1/admin/retrieval-profiles` takes them.

    Raises:
        InvalidInput: too few judged questions.
    """
    from retrieval.tiers import get_reader

    documents = read_corpus(corpus)
    with scratch_stack(keep) as stack:
        known = {*stack.corpus_ids.values(), *stack.same}
        stack.ingest([d for d in documents if d.id not in known], told("ingest"))
        judged = {
            query: {stack.same.get(document, document): gain for document, gain in own.items()}
            for query, own in read_qrels(qrels).items()
        }
        scope = stack.scope.narrowed((stack.collection_id,))
        one = partial(look, stack.db, get_reader(), scope, stack.corpus_ids)
        return _tuned(one, queries, judged, ProfileInForce(built_in(get_settings().retrieval)), search, told)


def tune_on_collection(
    collection: str, queries: Path, qrels: Path, search: Search, *, told: Callable[[str], Progress]
) -> dict[str, Any]:
    """Tune on the documents of a live collection, against the profile that is in force for it.

    Judgements name documents by id or by name. Nothing is written.

    Raises:
        NotFound: no such collection, or its name is that of several.
        InvalidInput: too few judged questions.
    """
    from retrieval.tiers import get_reader

    db = get_database()
    with db.read() as session:
        c, d = CollectionRow, DocumentRow
        called = (c.id == collection) | (c.name == collection)
        found = session.execute(select(c.id, c.tenant_id).where(c.deleted_at.is_(None), called)).all()
        if len(found) != 1:
            raise NotFound(f"{len(found)} collections are called {collection!r}; give the id of one.")
        collection_id, tenant_id = found[0]
        ready = (d.collection_id == collection_id, d.status == DocumentStatus.READY.value)
        names = {row.id: row.name for row in session.execute(select(d.id, d.name).where(*ready))}
        present = profile_of(session, tenant_id, (collection_id,), get_settings().retrieval)
    by_name = {name: document_id for document_id, name in names.items()}
    judged = {
        query: {by_name.get(document, document): gain for document, gain in own.items()}
        for query, own in read_qrels(qrels).items()
    }
    scope = Scope(tenant_id, (collection_id,), "tune", Role.OPERATOR)
    one = partial(look, db, get_reader(), scope, {i: i for i in names})
    return _tuned(one, queries, judged, present, search, told)


def _tuned(
    look_at: Callable[[str, str, Mapping[str, float]], Seen],
    queries: Path,
    judged: Qrels,
    present: ProfileInForce,
    search: Search,
    told: Callable[[str], Progress],
) -> dict[str, Any]:
    lines = [
        (str(q["_id"]), str(q["text"])) for q in read_jsonl(queries, "_id", "text") if str(q["_id"]) in judged
    ]
    asked = lines[: search.limit]
    begun = time.perf_counter()
    show = told("look")
    seen: list[Seen] = []
    for number, (query_id, text) in enumerate(asked, 1):
        seen.append(look_at(query_id, text, judged[query_id]))
        show(number, len(asked))
    looked_s = time.perf_counter() - begun
    try:
        best, figures = tune(
            seen,
            present.profile,
            MEASURES[search.measure],
            trials=search.trials,
            seed=search.seed,
            told=told("try"),
        )
    except ValueError as error:
        raise InvalidInput(f"{error}.") from error
    return {
        "profile": best.model_dump(mode="json"),
        "figures": {
            **figures,
            "base": present.id,
            "measure": search.measure,
            "trials": search.trials,
            "seed": search.seed,
            "questions": queries.name,
            "looked_s": round(looked_s, 1),
            "tried_s": round(time.perf_counter() - begun - looked_s, 1),
        },
    }


def look(
    db: Database,
    index: SnapshotSource,
    scope: Scope,
    names: Mapping[str, str],
    query_id: str,
    text: str,
    relevant: Mapping[str, float],
) -> Seen:
    """Ask all routes as deeply as any trial may, and score every candidate once."""
    s = get_settings().retrieval
    deep = built_in(s).model_copy(update={"route_k": DEEPEST, "entity": 1.0})
    question = LazyQuestion(text)
    merged = recall_and_fuse(db, index, scope, question, Filters(), DEEPEST, s, Stopwatch(), deep)
    model = merged.snapshot.model or get_settings().packs.encoder
    asked = question.get(model)
    passages = {i: stored.passage for i, stored in merged.known.items()}
    crossing = any(across(asked.lang, p.lang) for p in passages.values())
    scored = score_head(
        asked,
        [(i, encoded_text(p), p.lang) for i, p in sorted(passages.items())],
        load=lambda ids: packed_of(db, ids, model),
        encode=lambda texts: encode_packed(texts, model),
        cache=token_cache(model),
        budget_s=_LOOK_S,
        centres=centres_of(model) if crossing else None,
    ).scored
    return Seen(
        query_id,
        text,
        asked.lang,
        merged.recalled,
        {i: p.lang for i, p in passages.items()},
        merged.entities.against,
        {one.passage_id: one.maxsim for one in scored},
        {one.passage_id: one.closeness for one in scored} if crossing else {},
        {i: names.get(p.document_id, p.document_id) for i, p in passages.items()},
        relevant,
    )
