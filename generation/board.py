"""The claims of one answer as they are shown, with what must be said beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.metrics import CLAIMS
from core.types import Claim, Evidence, Lang, Verdict
from generation.conflicts import find_conflict, resolve
from generation.policy import CitationPolicy
from generation.sources import DocumentFacts
from generation.stream import EventWriter
from generation.values import Notice


class ClaimBoard:
    """Keeps claims in order, tells the stream, and puts the other side beside a contradicted claim.

    Args:
        events: where claims go.
        evidence: what may be cited.
        policy: its rules for markers, quotes and conflicts hold for every claim.
        lang: of the notices.
        documents: facts of the documents behind the evidence.
    """

    def __init__(
        self,
        events: EventWriter,
        evidence: Sequence[Evidence],
        policy: CitationPolicy,
        *,
        lang: Lang,
        documents: Mapping[str, DocumentFacts],
    ) -> None:
        self._events, self._evidence, self._policy, self._lang = events, evidence, policy, lang
        self._by_marker = {e.marker: e for e in evidence}
        self._dates = {key: known.dated for key, known in documents.items() if known.dated}
        self._trust = {key: known.rank for key, known in documents.items()}
        self.claims: list[Claim] = []
        self.notices: list[Notice] = []

    def use(self, evidence: Sequence[Evidence]) -> None:
        """Cite from this evidence from now on."""
        self._evidence = evidence
        self._by_marker = {e.marker: e for e in evidence}

    def note(self, notice: Notice | None) -> None:
        """Say something beside the claims, once."""
        if notice is not None and notice not in self.notices:
            self.notices.append(notice)

    def show(self, claim: Claim, *, apart: bool = False) -> None:
        """Publish a claim; one that another source contradicts is shown as the policy's rule says.

        `apart`: it is about one of several of a name, so what is said of another does not contradict it.
        """
        claim = replace(claim, citations=claim.citations[: self._policy.max_markers])
        if self._policy.require_quotes and any(c.quote is None for c in claim.citations):
            claim = Claim("", (), Verdict.UNSUPPORTED, "no_exact_quote")
        if claim.text and self._has(claim):
            # Shown already, as the other side of a conflict; provisional text of it is taken back.
            claim = Claim("", (), Verdict.SUPPORTED, "repeated_source")
        conflict = None if apart else find_conflict(claim, self._evidence)
        if conflict is None:
            self._publish(claim)
            return
        resolution = resolve(
            claim,
            conflict,
            self._evidence,
            rule=self._policy.conflict,
            lang=self._lang,
            dates=self._dates,
            trust=self._trust,
        )
        self.note(resolution.notice)
        for shown in resolution.claims:
            if not self._has(shown):
                self._publish(shown)

    def _has(self, claim: Claim) -> bool:
        return any(c.text == claim.text for c in self.claims)

    def _publish(self, claim: Claim) -> None:
        ordinal = len(self.claims)
        self.claims.append(claim)
        CLAIMS.labels(claim.verdict.value).inc()
        self._events.claim(ordinal, claim, self._by_marker)
