"""The grammar of a `quote` answer: words copied from a passage, then a sentence of the model's own.

    [2] "330 metres tall" The tower is 330 metres tall.
    [1] "静置十分钟" 清洗后要静置十分钟。

Each line names a passage, copies a run of its words, and states a claim. The run is spelled out by the
grammar from the passage itself, so whatever is decoded there stands in the passage character by character. A
run stays inside a sentence and has at least `MIN_WORDS` words; Chinese is cut into clauses, because every
start that a grammar offers costs time in each step. Past `MAX_WORD_PASSAGES` passages, or where words would
make it too large, whole sentences are offered.

Compile time follows the number of places where a run may start: see docs/benchmarks.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.errors import InvalidInput
from core.types import Evidence, Span
from generation.grammar import CLAIM, MAX_MARKERS, MAX_SENTENCES
from generation.untrusted import instructs
from generation.wording import HAN_CHAR
from ingest.sentences import sentences

MAX_WORD_PASSAGES = 8
MAX_UNITS = 450  # of all passages; more words than that are taken two, three or four at a time
MAX_JOINED = 4  # beyond, whole sentences are offered
MAX_QUOTE_SENTENCES = 400
MIN_WORDS = 3
_UNIT = re.compile(
    rf"[{HAN_CHAR}\u3000-\u303f\uff00-\uffef][^，。；：、！？,;\s]*[，。；：、！？,;]*|[^\s{HAN_CHAR}]+"
)
# A quote ends at the first straight quotation mark, so it has none; control characters spell nothing.
_UNQUOTABLE = re.compile(r'["\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd]')


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring units of a passage that a quote may be cut from, each with what stands before it."""

    units: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole run."""
        return "".join(self.units)


def quote_grammar(evidence: Sequence[Evidence], *, max_sentences: int) -> str:
    """EBNF (xgrammar dialect) of a `quote` answer; made once per evidence set.

    Args:
        evidence: what may be quoted; at least one passage must have a sentence to quote.
        max_sentences: from 1 to `MAX_SENTENCES`.

    Raises:
        InvalidInput: out of bounds, or nothing can be quoted; nothing was sent to the engine.
    """
    return _grammar(tuple((e.marker, e.passage.text) for e in evidence), max_sentences)


@lru_cache(maxsize=64)
def _grammar(passages: tuple[tuple[int, str], ...], max_sentences: int) -> str:
    if not 1 <= max_sentences <= MAX_SENTENCES:
        raise InvalidInput(f"A grammar allows 1 to {MAX_SENTENCES} sentences.")
    if not 0 < len(passages) <= MAX_MARKERS:
        raise InvalidInput(f"A grammar needs 1 to {MAX_MARKERS} passages.")
    runs = {marker: quotable(text) for marker, text in sorted(passages)}
    runs = {marker: own for marker, own in runs.items() if own}
    if not runs:
        raise InvalidInput("No passage has a sentence that can be quoted.")
    joined = -(-sum(len(run.units) for own in runs.values() for run in own) // MAX_UNITS)
    if len(runs) <= MAX_WORD_PASSAGES and joined <= MAX_JOINED:
        rules = [rule for marker, own in runs.items() for rule in _words(marker, own, joined)]
    else:
        rules = [rule for marker, own in runs.items() for rule in _wholes(marker, own)]
    lines = " | ".join(f'"[{marker}] \\"" q{marker} "\\" " claim' for marker in runs)
    more = f' ("\\n" line){{0,{max_sentences - 1}}}' if max_sentences > 1 else ""
    return "\n".join((f"root ::= line{more}", f"line ::= {lines}", *CLAIM, *rules))


@lru_cache(maxsize=512)
def quotable(text: str) -> tuple[Run, ...]:
    """Runs of a passage that may be quoted, in order; sentences that give instructions are left out."""
    found: list[Run] = []
    for span in sentences(text):
        sentence = text[span.start : span.end]
        if instructs(sentence):
            continue
        for piece in _UNQUOTABLE.split(sentence):
            units = _units(piece.strip())
            if sum(c.isalnum() for c in piece) > 1:
                found.append(Run(units))
    return tuple(found)


def _units(piece: str) -> tuple[str, ...]:
    units: list[str] = []
    end = 0
    for match in _UNIT.finditer(piece):
        units.append(piece[end : match.end()])
        end = match.end()
    if end < len(piece) and units:
        units[-1] += piece[end:]
    return tuple(units)


def _words(marker: int, runs: Iterable[Run], joined: int) -> list[str]:
    """A chain of rules per run: after each unit the quote goes on or ends.

    Args:
        marker: of the passage.
        runs: of the passage.
        joined: words that make one unit.
    """
    starts: list[str] = []
    rules: list[str] = []
    for number, run in enumerate(runs):
        units = tuple("".join(run.units[i : i + joined]) for i in range(0, len(run.units), joined))
        least = -(-_least(run.units) // joined)
        for i in range(least, len(units)):
            rest = f" r{marker}_{number}_{i + 1}?" if i + 1 < len(units) else ""
            rules.append(f"r{marker}_{number}_{i} ::= {_literal(units[i])}{rest}")
        for i in range(len(units) - least + 1):
            more = f" r{marker}_{number}_{i + least}?" if i + least < len(units) else ""
            starts.append(_literal("".join(units[i : i + least]).lstrip()) + more)
    return [f"q{marker} ::= " + " | ".join(dict.fromkeys(starts)), *rules]


def _least(units: Sequence[str]) -> int:
    """Units of the shortest quote: some words of a language with spaces, one clause of Chinese."""
    wide = sum(bool(re.search(f"[{HAN_CHAR}]", unit)) for unit in units)
    return 1 if wide * 2 >= len(units) else min(MIN_WORDS, len(units))


def _wholes(marker: int, runs: Iterable[Run]) -> list[str]:
    texts = [_literal(run.text) for run in runs][:MAX_QUOTE_SENTENCES]
    return [f"q{marker} ::= " + " | ".join(dict.fromkeys(texts))]


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\") + '"'


def place_of(evidence: Evidence, quote: str) -> Span | None:
    """Where a quote stands, in the document version's offsets; None when the passage does not have it."""
    at = evidence.passage.text.find(quote) if quote else -1
    if at < 0:
        return None
    start = evidence.passage.span.start + at
    return Span(start, start + len(quote))
