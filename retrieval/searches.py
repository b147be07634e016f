"""The searches of one question, one per route: what each asks its index, and what it may show."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from core.db import Database
from core.errors import GeoError, TransientError
from core.settings import get_settings
from core.types import Hit, Route, Scope
from ingest.encode import TokenVectors, get_encoder
from ingest.fold import search_fold
from ingest.similarity import similarity
from retrieval.analyzer import tokens as search_tokens
from retrieval.catalogues import LazyCatalogue
from retrieval.centres import without
from retrieval.entity_names import named_in
from retrieval.entity_route import EntityHits, entity_hits, links_of
from retrieval.filters import Filters
from retrieval.hits import ranked_hits
from retrieval.identifiers import COMMON, Code, code_scores, codes, holds
from retrieval.language import question_language
from retrieval.live import StoredPassage, live_languages, live_passages
from retrieval.other_names import other_names, terms_beside
from retrieval.pushdown import Limits, Pushdown
from retrieval.relevance import Floats, Question, terms
from retrieval.routes import RouteSearch, search_until_enough
from retrieval.token_codec import worded
from retrieval.variants import Variant, joined


class DenseIndex(Protocol):
    """What the dense route needs of the vector tiers."""

    def search(
        self, vector: Floats, k: int, scope: Scope, *, passage_ids: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """The best `k` (passage id, cosine) of the scope, best first."""
        ...

    @property
    def refused(self) -> Mapping[str, str]:
        """Tiers that serve nothing, with the reason."""
        ...


class LexicalIndex(Protocol):
    """What the lexical route needs of the lexical index."""

    def search(
        self,
        question: str,
        k: int,
        scope: Scope,
        *,
        document_ids: Sequence[str] | None = None,
        passage_ids: Sequence[int] | None = None,
        beside: Mapping[str, float] | None = None,
    ) -> list[tuple[int, float]]:
        """The best `k` (passage id, BM25) of the scope, best first; `beside` are further tokens, weighed."""
        ...

    def holding(
        self,
        spellings: Sequence[Sequence[str]],
        k: int,
        scope: Scope,
        *,
        document_ids: Sequence[str] | None = None,
        passage_ids: Sequence[int] | None = None,
    ) -> list[int]:
        """Up to `k` passages of the scope that have all tokens of one of the spellings, ascending."""
        ...


class Snapshot(Protocol):
    """One published generation of both indexes (`retrieval.tiers.IndexSnapshot`)."""

    @property
    def generation(self) -> int:
        """Number of the generation."""
        ...

    @property
    def model(self) -> str:
        """The encoder of its vectors; empty while nothing was indexed."""
        ...

    @property
    def dense(self) -> DenseIndex:
        """The vectors."""
        ...

    @property
    def lexical(self) -> LexicalIndex:
        """The words."""
        ...


class SnapshotSource(Protocol):
    """Where snapshots come from (`retrieval.tiers.IndexReader`)."""

    def snapshot(self, *, wait: bool = False) -> Snapshot:
        """The newest generation; `wait` also waits for one that is being loaded."""
        ...


def prepare_question(text: str, model: str = "") -> Question:
    """Encode a question once for the dense route, the rerank and the sentences (about 3 ms).

    Args:
        text: the question.
        model: the encoder of the index that is asked; empty means that of the settings.

    Raises:
        TransientError: its vector is not finite; searching with it would find nothing.
    """
    tokens: list[TokenVectors] = []
    vector = get_encoder(model).encode_both([text], "query", lambda _, own: tokens.append(own))[0]
    if not np.isfinite(vector).all():
        raise TransientError("The encoder gave no usable vector for the question; try again.")
    return Question(
        text=text,
        lang=question_language(text),
        tokens=worded(text, tokens[0]).vectors,
        vector=vector,
        terms=terms(text),
    )


class LazyQuestion:
    """The encoded question, made once by whichever thread needs it first.

    Once per encoder, that is: a query that begins on one generation may end on one of another encoder.
    """

    def __init__(self, text: str) -> None:
        self.text, self._lock = text, threading.Lock()
        self._made: dict[str, Question] = {}

    def get(self, model: str = "") -> Question:
        """The question as this encoder sees it; the first caller encodes it."""
        with self._lock:
            if model not in self._made:
                self._made[model] = prepare_question(self.text, model)
            return self._made[model]


@dataclass(frozen=True, slots=True)
class Searches:
    """What one recall asks of one snapshot.

    Attributes:
        pushdown: what the filters leave, looked up once.
        catalogue: the names that are known, looked up once.
        entities: whether the entity route is asked.
        checked: whether dense and lexical hits are compared with the live rows as they are found, and more
            are asked for until `k` may be shown. Otherwise they are taken as the index gives them, unless a
            filter is applied to results: whoever loads the passages sees whether one was hidden.
        variants: texts that the dense and the lexical route ask for beside the question, under it.
        centre: [d], taken off the vector that the dense route asks with; it is then the only route.
        hidden: filled by the routes: ids that an index holds and this scope may not see now.
        entity_hits: filled by the entity route, whose hits are more than an order.
    """

    db: Database
    index: Snapshot
    scope: Scope
    question: LazyQuestion
    filters: Filters
    k: int
    pushdown: Pushdown
    catalogue: LazyCatalogue
    entities: bool = True
    checked: bool = True
    variants: tuple[Variant, ...] = ()
    centre: Floats | None = None
    hidden: set[int] = field(default_factory=set[int])
    entity_hits: list[EntityHits] = field(default_factory=list[EntityHits])

    def by_route(self) -> dict[Route, RouteSearch]:
        """One search per route; a question without codes asks no route for them."""
        searches: dict[Route, RouteSearch] = {Route.DENSE: self.dense}
        if self.centre is not None:
            return searches
        searches[Route.LEXICAL] = self.lexical
        found = codes(self.question.text)
        if self.entities:
            searches[Route.ENTITY] = self.entity
        if found:
            searches[Route.CODE] = lambda: self.code(found)
        return searches

    def dense(self) -> Sequence[Hit]:
        """Passages by cosine."""
        vector = self._vector()
        own = self._by_vector(vector if self.centre is None else without(vector[None], self.centre)[0])
        others = [self._by_vector(vector) for vector in self._variant_vectors()]
        return ranked_hits(Route.DENSE, joined(own, others)[: self.k])

    def _by_vector(self, vector: Floats) -> list[tuple[int, float]]:
        passages = self.pushdown.limits().passage_ids
        return self._widened(lambda n: self.index.dense.search(vector, n, self.scope, passage_ids=passages))

    def lexical(self) -> Sequence[Hit]:
        """Passages by BM25, for the words of the question and for other names of what it names."""
        own = self._by_words(self.question.text)
        others = [self._by_words(variant.text) for variant in self.variants if variant.by_words]
        return ranked_hits(Route.LEXICAL, joined(own, others)[: self.k])

    def _by_words(self, text: str) -> list[tuple[int, float]]:
        limits = self.pushdown.limits()
        names = other_names(text, self.catalogue.get())
        beside = terms_beside(search_tokens(text), names) if names else None
        return self._widened(
            lambda n: self.index.lexical.search(
                text,
                n,
                self.scope,
                document_ids=limits.document_ids,
                passage_ids=limits.passage_ids,
                beside=beside,
            )
        )

    def entity(self) -> Sequence[Hit]:
        """Passages that mention an entity of the question."""
        text = self.question.text
        catalogue = self.catalogue.get()
        names = named_in(self.db.quick(), self.scope.tenant_id, text, catalogue)
        if not names:
            self.entity_hits.append(EntityHits())
            return ()
        with self.db.read() as session:
            links = links_of(session, self.scope, self.filters, names, catalogue)
        found = entity_hits(text, links, limit=self.k, similarity=similarity, cosines=self._cosines)
        self.entity_hits.append(found)
        return ranked_hits(Route.ENTITY, found.scored)

    def _cosines(self, passage_ids: Sequence[int]) -> dict[int, float]:
        """Cosines of passages; none while the vectors are refused, which the dense route reports."""
        vector = self._vector()
        try:
            found = self.index.dense.search(vector, len(passage_ids), self.scope, passage_ids=passage_ids)
        except GeoError:
            return {}
        return dict(found)

    def _vector(self) -> Floats:
        """The question as the encoder of this generation sees it."""
        return self.question.get(self.index.model or get_settings().packs.encoder).vector

    def _variant_vectors(self) -> list[Floats]:
        """Of each variant, a passage encoded as one; a text without a usable vector is left out."""
        if not self.variants:
            return []
        encoder = get_encoder(self.index.model or get_settings().packs.encoder)
        vectors = [
            (encoder.encode_passages if variant.kind == "hyde" else encoder.encode_queries)([variant.text])[0]
            for variant in self.variants
        ]
        return [vector for vector in vectors if np.isfinite(vector).all()]

    def code(self, wanted: Sequence[Code]) -> Sequence[Hit]:
        """Passages that have a code of the question, the rarer the code the higher its score (at most 1)."""
        limits = self.pushdown.limits()
        matches = {code.text: self._having(code, limits) for code in wanted}
        return ranked_hits(Route.CODE, code_scores(matches))

    def _having(self, code: Code, limits: Limits) -> list[int]:
        """Passages with the code: its own token says so by itself, its parts must stand together in the text.

        One more than `COMMON` is asked for: with so many the code decides nothing, and none is looked at.
        """

        def holding(spellings: Sequence[Sequence[str]]) -> set[int]:
            found = self.index.lexical.holding(
                spellings,
                COMMON + 1,
                self.scope,
                document_ids=limits.document_ids,
                passage_ids=limits.passage_ids,
            )
            return set(found)

        whole = holding([own for own in code.spellings if len(own) == 1])
        if len(whole) > COMMON:
            return []
        apart = [own for own in code.spellings if len(own) > 1]
        parts = (holding(apart) - whole) if apart else set[int]()
        with self.db.read() as session:
            known = live_passages(session, self.scope, whole | parts, self.filters)
        self.hidden.update((whole | parts) - known.keys())
        together = {i for i in parts & known.keys() if holds(search_fold(shown_text(known[i])), code.text)}
        return sorted((whole & known.keys()) | together)

    def _widened(self, search: Callable[[int], Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
        filtered = self.filters.empty or self.pushdown.limits().passage_ids is not None
        if filtered and not self.checked:
            return list(search(self.k))
        return search_until_enough(search, self._keep, self.k)

    def _keep(self, ids: Sequence[int]) -> set[int]:
        with self.db.read() as session:
            visible = set(live_languages(session, self.scope, ids, self.filters))
        self.hidden.update(set(ids) - visible)
        return visible


def shown_text(stored: StoredPassage) -> str:
    """A passage with the name and the headings that it stands under."""
    return "\n".join((stored.document_name, *stored.passage.heading_path, stored.passage.text))
