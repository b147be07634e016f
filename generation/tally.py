"""Counts over answers whose questions have gold answers. Pure."""

from __future__ import annotations

import statistics
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.types import AnswerStatus, Verdict
from generation.values import AnswerView


@dataclass(slots=True)
class AnswerTally:
    """Counts over answers; `figures` turns them into the shares that are printed."""

    n: int = 0
    with_gold: int = 0
    with_gold_document: int = 0
    refused: int = 0
    incomplete: int = 0
    sentences: list[int] = field(default_factory=list[int])
    citations: int = 0
    right_citations: int = 0
    invalid_markers: int = 0
    unsupported_shown: int = 0
    partial_shown: int = 0
    quotes: int = 0
    exact_quotes: int = 0
    replaced: int = 0
    notices: dict[str, int] = field(default_factory=dict[str, int])
    modes: dict[str, int] = field(default_factory=dict[str, int])
    laps_ms: list[float] = field(default_factory=list[float])

    def add(
        self,
        answer: AnswerView,
        *,
        gold: Sequence[str],
        relevant: Mapping[str, float],
        corpus_ids: Mapping[str, str],
        broken: int,
    ) -> None:
        """Count one answer.

        Args:
            answer: as the doors show it.
            gold: accepted answer strings.
            relevant: judged documents.
            corpus_ids: document id → id in the corpus.
            broken: its claims that are shown as supported and fail the check when it is made again.
        """
        self.n += 1
        self.sentences.append(len(answer.claims))
        self.refused += answer.status is AnswerStatus.REFUSED
        self.incomplete += answer.status is AnswerStatus.INCOMPLETE
        self.with_gold += contains_gold(answer.text if answer.claims else "", gold)
        cited = [c for claim in answer.claims for c in claim.citations]
        right = [c for c in cited if corpus_ids.get(c.document_id) in relevant]
        self.citations += len(cited)
        self.right_citations += len(right)
        self.with_gold_document += bool(right)
        texts = {s.passage_id: s.text or "" for s in answer.sources}
        quoted = [c for c in cited if c.quote is not None]
        self.quotes += len(quoted)
        self.exact_quotes += sum(
            bool(c.quote) and c.quote.text in texts.get(c.passage_id, "") for c in quoted
        )
        self.replaced += sum(c.reason.startswith("replaced_by_source") for c in answer.claims)
        for notice in answer.notices:
            self.notices[notice.code] = self.notices.get(notice.code, 0) + 1
        markers = {s.marker: s.passage_id for s in answer.sources}
        self.invalid_markers += sum(markers.get(c.marker) != c.passage_id for c in cited)
        self.unsupported_shown += broken + sum(c.verdict is Verdict.UNSUPPORTED for c in answer.claims)
        self.partial_shown += sum(c.verdict is Verdict.PARTIAL for c in answer.claims)
        used = answer.mode_used.value if answer.mode_used else "none"
        self.modes[used] = self.modes.get(used, 0) + 1

    def figures(self) -> dict[str, Any]:
        """Shares of all questions, except `citation_precision` (of all citations)."""
        n = max(1, self.n)
        return {
            "n": self.n,
            "contains_gold": round(self.with_gold / n, 4),
            "sentences_shown": round(statistics.fmean(self.sentences), 3) if self.sentences else 0.0,
            "cited_gold_document": round(self.with_gold_document / n, 4),
            "citation_precision": round(self.right_citations / max(1, self.citations), 4),
            "invalid_markers": self.invalid_markers,
            "unsupported_shown": self.unsupported_shown,
            "partial_shown": self.partial_shown,
            "refused": round(self.refused / n, 4),
            "incomplete": round(self.incomplete / n, 4),
            "quotes_found": round(self.exact_quotes / self.quotes, 4) if self.quotes else None,
            "replaced_by_source": self.replaced,
            "notices": self.notices,
            "modes_used": self.modes,
            "p50_ms": round(statistics.median(self.laps_ms), 1) if self.laps_ms else None,
        }


def contains_gold(text: str, gold: Sequence[str]) -> bool:
    """Whether one of the gold strings stands in the text (width, case and white space folded)."""
    folded = _folded(text)
    return any(_folded(answer) in folded for answer in gold if _folded(answer))


def _folded(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())
