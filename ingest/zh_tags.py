"""Chinese words with their part of speech, as jieba's tagger gives them, at a tenth of its cost.

Most words come from the dictionary, by jieba's port to Rust. What is left over, runs of single characters
among which the unknown names stand, jieba cuts and tags by a hidden Markov model: plain Python over
dictionaries, most of its tagger's time. Here the same path is found on arrays, and kept, since texts repeat
such runs. Of jieba itself only the model and the dictionary's frequencies are read, not the dictionary
with all beginnings of words that its own tagger holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from core.errors import ConfigError
from ingest.zh_names import ZhToken

_COMMON = 20  # rarer words of the dictionary are as likely a name
_KEPT = 1 << 14  # runs of two characters on average; 5 MB
_NEVER = -3.14e100  # log-probability that jieba gives to what its model has not seen
_UNKNOWN, _NUMBER, _LETTERS = "x", "m", "eng"

# Where jieba's tagger cuts a text before it looks for words, and what it does with what is in none.
_PARTS = regex.compile(r"[\u4E00-\u9FD5a-zA-Z0-9+#&._]+|[^\u4E00-\u9FD5a-zA-Z0-9+#&._]+")
_SEARCHED = regex.compile(r"[\u4E00-\u9FD5a-zA-Z0-9+#&._]")
_REST = regex.compile(
    r"(?P<han>[\u4E00-\u9FD5]+)|(?P<number>[.0-9]+)|(?P<letters>[a-zA-Z0-9]+)|(?P<other>[+#&_]+)"
)

State = tuple[str, str]
"""Place of a character in its word (`B`, `M`, `E` or `S`), and the word's tag."""
Word = tuple[str, str]
"""A word and its tag."""


def tagged(text: str) -> list[ZhToken]:
    """Words of a text in order and without gaps."""
    tokens: list[ZhToken] = []
    at = 0
    for word, tag in _words(text):
        tokens.append(ZhToken(word, tag, at))
        at += len(word)
    return tokens


def in_dictionary(word: str) -> bool:
    """Whether a word is common enough not to be a name."""
    return word in _common_words()


def _words(text: str) -> Iterator[Word]:
    for part in _PARTS.findall(text):
        if _SEARCHED.match(part):
            yield from _searched(part)
        else:
            yield part, _UNKNOWN


def _searched(part: str) -> Iterator[Word]:
    import rjieba

    run: list[Word] = []
    for word, tag in rjieba.tag(part, False):
        # Letters and digits side by side are one word here, and single ones to jieba's tagger.
        if len(word) == 1 or (tag in (_LETTERS, _NUMBER) and word.isascii() and not _is_word(word)):
            run.append((word, tag))
            continue
        yield from _left_over(run)
        run.clear()
        yield word, tag
    yield from _left_over(run)


def _left_over(run: list[Word]) -> Sequence[Word]:
    """The words in a run of single characters."""
    if not run:
        return ()
    text = "".join(word for word, _ in run)
    if len(text) == 1:
        return ((text, _UNKNOWN if text.isascii() else run[0][1]),)
    return run.copy() if _is_word(text) else _modelled(text)


def _is_word(word: str) -> bool:
    import rjieba

    return bool(rjieba.has_word(word))


@lru_cache(maxsize=_KEPT)
def _modelled(text: str) -> tuple[Word, ...]:
    words: list[Word] = []
    for found in _REST.finditer(text):
        kind = found.lastgroup
        if kind == "han":
            words.extend(_cut(found.group()))
        else:
            tag = {"number": _NUMBER, "letters": _LETTERS}.get(kind or "", _UNKNOWN)
            words.append((found.group(), tag))
    return tuple(words)


def _cut(text: str) -> Iterator[Word]:
    begin = 0
    states = _path()(text)
    for at, (place, tag) in enumerate(states):
        if place in ("E", "S"):
            yield text[begin : at + 1], tag
            begin = at + 1
    if begin < len(text):
        yield text[begin:], states[begin][1]


class MarkovPath:
    """The likeliest states of characters, as jieba's model has them.

    Args:
        start: log-probability of each state of a first character.
        steps: per state, of the states that may follow.
        emissions: per state, of the characters it gives.
        possible: states that a known character may have.
    """

    def __init__(
        self,
        start: dict[State, float],
        steps: dict[State, dict[State, float]],
        emissions: dict[State, dict[str, float]],
        possible: dict[str, Sequence[State]],
    ) -> None:
        # Of equally likely states jieba takes the greatest, so they stand in falling order.
        self._states = sorted(steps, reverse=True)
        self._number = {state: i for i, state in enumerate(self._states)}
        self._start = np.array([start[s] for s in self._states])
        self._steps = np.full((len(self._states), len(self._states)), -np.inf)
        for before, after in steps.items():
            for state, logp in after.items():
                self._steps[self._number[before], self._number[state]] = logp
        self._leads = np.isfinite(self._steps)
        self._goes_on = np.logical_or.reduce(self._leads, axis=1)
        self._emissions, self._possible = emissions, possible
        self._of_character = lru_cache(maxsize=8192)(self._states_of)

    def __call__(self, text: str) -> list[State]:
        """States of the characters of a text that is not empty."""
        states, emitted = self._of_character(text[0])
        logp = self._start[states] + emitted
        walked: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = [(states, states)]
        for character in text[1:]:
            alive = self._goes_on[states]
            before, logp = states[alive], logp[alive]
            kept = np.flatnonzero(alive)
            states, emitted = self._next(before, character)
            totals = logp[:, None] + self._steps[before[:, None], states] + emitted
            best = totals.argmax(axis=0)
            logp = totals[best, np.arange(len(states))]
            walked.append((states, kept[best]))
        at = int(logp.argmax())
        path: list[State] = []
        for states, came_from in reversed(walked):
            path.append(self._states[states[at]])
            at = int(came_from[at])
        return path[::-1]

    def _next(
        self, before: npt.NDArray[np.intp], character: str
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """States that the character may have after these; any that may follow, if none of its own does."""
        states, emitted = self._of_character(character)
        follows = np.logical_or.reduce(self._leads[before], axis=0)
        fit = follows[states]
        if fit.all():
            return states, emitted
        if fit.any():
            return states[fit], emitted[fit]
        others = np.flatnonzero(follows) if follows.any() else np.arange(len(self._states))
        return others, self._emitted(others, character)

    def _states_of(self, character: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        known = self._possible.get(character)
        numbers = sorted(self._number[s] for s in known) if known else range(len(self._states))
        states = np.fromiter(numbers, np.intp)
        return states, self._emitted(states, character)

    def _emitted(self, states: npt.NDArray[np.intp], character: str) -> npt.NDArray[np.float64]:
        return np.array([self._emissions[self._states[i]].get(character, _NEVER) for i in states])


@lru_cache(maxsize=1)
def _path() -> MarkovPath:
    return MarkovPath(*(_table(name) for name in ("prob_start", "prob_trans", "prob_emit", "char_state_tab")))


def _table(name: str) -> Any:
    """A table of jieba's tagger by itself; importing the package would read the dictionary as well."""
    spec = spec_from_file_location(f"geo_jieba_{name}", _jieba() / "posseg" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ConfigError(f"jieba holds no {name}; install jieba 0.42")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.P


@lru_cache(maxsize=1)
def _common_words() -> frozenset[str]:
    with (_jieba() / "dict.txt").open(encoding="utf-8") as lines:
        entries = (line.split(" ") for line in lines)
        return frozenset(entry[0] for entry in entries if int(entry[1]) >= _COMMON)


def _jieba() -> Path:
    spec = find_spec("jieba")
    if spec is None or spec.origin is None:
        raise ConfigError("jieba is not installed; install geo-engine with its dependencies")
    return Path(spec.origin).parent
