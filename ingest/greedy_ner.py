"""spaCy's greedy transition recogniser, decided for all tokens at once. Pure: arrays in, entities out.

The library walks a text token by token: one small matrix product and one lock per token. Outside an entity,
though, what is decided about a token depends on that token alone, and inside one on the token and the
entity's first. So all tokens are first decided as if no entity were open, then the entities that begin are
followed side by side to their ends, and last a walk over the text keeps those that begin in no earlier one.
The outcome is the library's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Int = npt.NDArray[np.intp]

FEATURES = 3  # the token; the entity's first token; the token before
_OUT = "O"


@dataclass(frozen=True, slots=True)
class Entity:
    """Half-open token numbers, counted through all texts of the batch, and the label."""

    start: int
    end: int
    label: str


class GreedyNer:
    """The decisions of one pipeline.

    Args:
        moves: name of each class: `B-ORG`, `I-ORG`, `L-ORG`, `U-ORG`, `O`; others are never chosen.
        bias: [h, p] of the hidden layer of h maxout units with p pieces.
        weights: [len(moves), h] from there to the scores of the classes.
        offsets: [len(moves)] added to the scores.
    """

    def __init__(self, moves: Sequence[str], bias: Float32, weights: Float32, offsets: Float32) -> None:
        self._bias = bias
        number = {name: i for i, name in enumerate(moves)}
        chosen = [
            i for i, name in enumerate(moves) if name == _OUT or (name[:2] in ("B-", "U-") and name[2:])
        ]
        names = [moves[i] for i in chosen]
        self._labels = [name[2:] for name in names]
        self._out = names.index(_OUT)
        self._begins = np.array([name.startswith("B-") for name in names])
        self._first = (weights[chosen], offsets[chosen])
        self._inside, self._last = (
            _rows(weights, offsets, [number.get(move + label, -1) for label in self._labels])
            for move in ("I-", "L-")
        )

    def entities(
        self, features: Float32, lengths: Sequence[int], blank: npt.NDArray[np.bool_]
    ) -> list[Entity]:
        """Entities of a batch of texts, in order.

        Args:
            features: [1 + n, 3, h, p]: what each of n tokens adds to the hidden layer in each of the three
                places; the first row stands for a token that is not there.
            lengths: tokens of each text; they sum to n.
            blank: [n]: the token is white space, where no entity begins.
        """
        ends = np.cumsum(lengths)[np.asarray(lengths, np.intp) > 0] - 1
        final = np.zeros(len(blank), np.bool_)
        final[ends] = True
        decided = self._decided_outside(features, blank, final)
        found: list[Entity] = []
        stops = self._stops(features, decided, final)
        done = 0
        starts: list[int] = np.flatnonzero(decided != self._out).tolist()
        for start in starts:
            if start >= done:
                done = stops.get(start, start + 1)
                found.append(Entity(start, done, self._labels[decided[start]]))
        return found

    def _decided_outside(
        self, features: Float32, blank: npt.NDArray[np.bool_], final: npt.NDArray[np.bool_]
    ) -> Int:
        """[n]: the best of `B`, `U` and `O` for each token while no entity is open."""
        weights, offsets = self._first
        scores = _maxout(features[1:, 0], features[0, 1], features[0, 2], self._bias) @ weights.T + offsets
        scores[np.ix_(final, self._begins)] = -np.inf  # an entity of several tokens needs a next one
        scores[blank] = -np.inf
        scores[blank, self._out] = 0
        return scores.argmax(axis=1)

    def _stops(self, features: Float32, decided: Int, final: npt.NDArray[np.bool_]) -> dict[int, int]:
        """End of the entity that begins at each token decided as `B`."""
        stops: dict[int, int] = {}
        start = np.flatnonzero(self._begins[decided])
        token = start + 1
        while len(start):
            hidden = _maxout(features[token + 1, 0], features[start + 1, 1], features[token, 2], self._bias)
            goes_on, ends = (
                (hidden * weights[decided[start]]).sum(axis=1) + offsets[decided[start]]
                for weights, offsets in (self._inside, self._last)
            )
            closed = final[token] | (ends > goes_on)
            stops.update(zip(start[closed].tolist(), (token[closed] + 1).tolist(), strict=True))
            start, token = start[~closed], token[~closed] + 1
        return stops


def _rows(weights: Float32, offsets: Float32, numbers: Sequence[int]) -> tuple[Float32, Float32]:
    """Rows of these classes; a class that is not there (-1) never wins."""
    chosen = np.asarray(numbers, np.intp)
    missing = chosen < 0
    return (
        np.where(missing[:, None], np.float32(0), weights[chosen]),
        np.where(missing, np.float32(-np.inf), offsets[chosen]),
    )


def _maxout(first: Float32, second: Float32, third: Float32, bias: Float32) -> Float32:
    """[n, h]: the largest piece of each unit. Added up in the library's order, so that sums are equal."""
    summed = first + second
    summed += third
    summed += bias
    return summed.max(axis=-1)
