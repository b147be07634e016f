"""How a mode is decoded: its instructions, its grammar, its reader, and what becomes of each claim. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from core.types import CitationMode, Claim, Evidence, Verdict
from generation.answer import cite, settled
from generation.entail import Entails
from generation.grammar import free_grammar
from generation.grammar_check import checked
from generation.parse import ClaimParser, Event, ParsedClaim
from generation.parse_quote import QuotedClaim, QuoteParser
from generation.policy import kept_mode as kept_mode
from generation.quote_grammar import place_of, quote_grammar
from generation.verify import judge


class Parser(Protocol):
    """Reads deltas; see `ClaimParser`."""

    def feed(self, delta: str) -> list[Event]:
        """Events that are certain after `delta`."""
        ...

    def close(self, *, truncated: bool = False) -> list[Event]:
        """Events of what is still held."""
        ...


@dataclass(frozen=True, slots=True)
class Settling:
    """What a claim is settled with.

    Attributes:
        evidence: what stood in the prompt.
        show_partial: whether partly borne out claims may stay.
        shown: texts of the claims before it.
        entails: the entailment model, where one is configured.
        question: that is answered; empty for a summary.
    """

    evidence: Sequence[Evidence]
    show_partial: bool
    shown: Sequence[str]
    entails: Entails | None = None
    question: str = ""


class Scheme(Protocol):
    """One way to decode."""

    mode: CitationMode

    def grammar(self, evidence: Sequence[Evidence], *, max_sentences: int) -> str:
        """EBNF for this evidence.

        Raises:
            InvalidInput: there is none; the engine was not asked.
        """
        ...

    def parser(self) -> Parser:
        """A reader for one answer."""
        ...

    def settle(self, parsed: ParsedClaim, with_: Settling) -> Claim:
        """The claim's final form."""
        ...


class FreeScheme:
    """Sentences that end in markers."""

    mode = CitationMode.FREE

    def grammar(self, evidence: Sequence[Evidence], *, max_sentences: int) -> str:
        """See `Scheme`."""
        return checked(free_grammar([e.marker for e in evidence], max_sentences=max_sentences))

    def parser(self) -> Parser:
        """See `Scheme`."""
        return ClaimParser()

    def settle(self, parsed: ParsedClaim, with_: Settling) -> Claim:
        """See `Scheme`."""
        return settled(
            parsed.text,
            parsed.markers,
            with_.evidence,
            show_partial=with_.show_partial,
            shown=with_.shown,
            entails=with_.entails,
            question=with_.question,
        )


class QuoteScheme:
    """Claims, each after the words that it copies from its passage."""

    mode = CitationMode.QUOTE

    def grammar(self, evidence: Sequence[Evidence], *, max_sentences: int) -> str:
        """See `Scheme`."""
        return checked(quote_grammar(evidence, max_sentences=max_sentences))

    def parser(self) -> Parser:
        """See `Scheme`."""
        return QuoteParser()

    def settle(self, parsed: ParsedClaim, with_: Settling) -> Claim:
        """The quote stays where it bears the claim out; else its sentence does, or the claim is mended."""
        source = next((e for e in with_.evidence if e.marker in parsed.markers), None)
        quote = parsed.quote if isinstance(parsed, QuotedClaim) else ""
        place = place_of(source, quote) if source is not None else None
        claim = FreeScheme().settle(parsed, with_)
        if source is None or place is None or claim.text != parsed.text:
            return claim
        if not any(c.passage_id == source.passage.id for c in claim.citations):
            return claim  # another passage bears it out: its sentence is the quote
        if judge(parsed.text, quote).verdict is Verdict.SUPPORTED:
            others = [c for c in claim.citations if c.passage_id != source.passage.id]
            own = cite(source, place, quote)
            return replace(claim, citations=tuple(sorted((own, *others), key=lambda c: c.marker)))
        # The copied words alone do not bear it out; the sentences around them, which are cited now, do.
        return replace(claim, reason="quote_widened;" + claim.reason)


def scheme_of(mode: CitationMode) -> Scheme:
    """The scheme of a mode that is decoded."""
    return QuoteScheme() if mode is CitationMode.QUOTE else FreeScheme()
