"""Two sentences run together into one: a clause with two verbs and nothing that joins them. Pure; zh and en.

`Simon says that the song is about the subject's identity has long been unknown` has the words of two
sentences and says what neither does. What a source itself writes so is its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from generation.exchange import tokens_of
from generation.wording import HAN_CHAR

_FINITE_WORDS = "is are was were has had does did can could will would may might must 是"
_FINITE = frozenset(_FINITE_WORDS.split())
_JOINING_WORDS = """
and or but nor so yet who which that what whom whose where when while because as since until if though
although after before than whether how why then there , ， 、 ; ； : ： ? & /
而 并 且 但 所 就 也 都 则 或 与 和 he she it they we i you
"""
_JOINS = frozenset(_JOINING_WORDS.split())
_RELATIVES = frozenset(
    ("who", "which", "that", "what", "where", "whatever", "whoever", "he", "she", "it", "they", "we", "i")
)
_HEADS = frozenset(("that", "what", "whether", "how", "who", "which", "why", "凡"))
_BROKEN = re.compile(f'[.!?。！？—–()（）"“”](?=[\\s{HAN_CHAR}]|$)|\\s[—–-]\\s')
_LEAST = 2  # tokens between the two verbs: `it was is` is no clause of its own
_PERFECT = frozenset(("been", "had", "being", "not", "never", "also"))


def run_together(claim: str, window: str) -> str:
    """What stands between two finite verbs of one clause of a claim; empty when something joins them.

    Args:
        claim: one sentence.
        window: the sentences that carry it; what they have in a row is no fault of the claim's.
    """
    theirs = tokens_of(window)
    for clause in _BROKEN.split(claim):
        ours = tokens_of(clause)
        finite = [i for i, token in enumerate(ours) if token in _FINITE]
        for a, b in pairwise(finite):
            between = ours[a + 1 : b]
            telling = [t for t in between if t not in _PERFECT]
            if len(telling) < _LEAST or _JOINS & set(between) or _opens(ours[:a]):
                continue
            if not _in_a_row(ours[a : b + 1], theirs):
                return " ".join(between)
    return ""


def _opens(before: Sequence[str]) -> bool:
    """Whether the first verb is a clause's inside the subject: `that it was built is known`, `what he is`."""
    heads = [i for i, token in enumerate(before) if token in _HEADS and not _FINITE & set(before[:i])]
    return bool(heads) or bool(_RELATIVES & set(before[-1:]))


def _in_a_row(piece: Sequence[str], tokens: Sequence[str]) -> bool:
    size = len(piece)
    return any(tuple(tokens[i : i + size]) == tuple(piece) for i in range(len(tokens) - size + 1))
