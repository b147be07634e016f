"""Grammars that the engine decodes under.

The grammar of `free` answers is built from numbers only; `quote_grammar.py` spells passages out.

`free`: one to `max_sentences` sentences; each ends in punctuation and one marker of the evidence:

    The tower is 330 metres tall. [2] It opened in 1889. [1]
    塔高三百三十米。[2]

A full stop is inside a sentence only between a letter or digit and another (3.5, U.S.) or after a known
abbreviation, because the decoder must know where a marker is due. The length of a sentence is left to the
token limit. The shape is chosen for the decoder: finding the allowed tokens of a step takes 3 µs; with a
counted repetition of characters it takes 400 ms, with the character class in a rule of its own 40 ms.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import InvalidInput

MAX_MARKERS = 500
MAX_SENTENCES = 20

_PLAIN = "[^\\n\\r\\t\\[\\].!?。！？]"
_END = '([.!?] " " | [。！？])'
_ABBREVIATIONS = (
    "Mr",
    "Mrs",
    "Ms",
    "Dr",
    "Prof",
    "St",
    "No",
    "vs",
    "approx",
    "e.g",
    "i.e",
    "Fig",
    "Jr",
    "U.S",
    "U.K",
)

_SHORT = " | ".join(f'"{a}. "' for a in _ABBREVIATIONS) + ' | " " [A-Z] ". "'  # and initials: John C. Low
# Inside one rule: a character class behind a rule of its own has every token looked at in every step.
_BODY = f'{_PLAIN} ({_PLAIN} | "." [0-9A-Za-z] | {_SHORT})*'
_UNQUOTED = _PLAIN.replace("[^", '[^"')
# One sentence that ends its line. It begins as sentences do: a small model goes on with "is …" as if the
# words that it copied were its subject, and leaves quotation marks open.
CLAIM = (
    r"claim ::= [A-Z0-9\u00c0-\u1fff\u3040-\u9fff\uac00-\ud7af] "
    f'({_UNQUOTED} | "." [0-9A-Za-z] | {_SHORT})* [.!?。！？]',
)


def free_grammar(markers: Sequence[int], *, max_sentences: int) -> str:
    """EBNF (xgrammar dialect) of a `free` answer.

    Args:
        markers: allowed marker numbers, each from 1 to 999; at least one, at most `MAX_MARKERS`.
        max_sentences: from 1 to `MAX_SENTENCES`.

    Raises:
        InvalidInput: out of bounds; nothing was sent to the engine.
    """
    allowed = sorted(set(markers))
    if not allowed or len(allowed) > MAX_MARKERS or allowed[0] < 1 or allowed[-1] > 999:
        raise InvalidInput(f"A grammar needs 1 to {MAX_MARKERS} markers between 1 and 999.")
    if not 1 <= max_sentences <= MAX_SENTENCES:
        raise InvalidInput(f"A grammar allows 1 to {MAX_SENTENCES} sentences.")
    ids = " | ".join(f'"{n}"' for n in allowed)
    more = f' (" "? sentence){{0,{max_sentences - 1}}}' if max_sentences > 1 else ""
    return "\n".join(
        (
            f"root ::= sentence{more}",
            f"sentence ::= {_BODY} {_END} marker",
            f'marker ::= "[" ({ids}) "]"',
        )
    )
