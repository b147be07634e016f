"""How many prompt tokens a perfect prefix cache would save, for an order of passages. Pure.

The cache holds blocks of tokens, least recently used out first; a block is found only behind the block
before it, as in the engine. Prompts are rules, passages of one length and a question of their own.
"""

from __future__ import annotations

import random
import statistics
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Order = tuple[int, ...]
_Block = tuple[int, Order, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """Lengths in tokens. `passage` is that of each passage with its number and the gap behind it."""

    rules: int
    passage: int
    question: int
    block: int

    def tokens(self, passages: int) -> int:
        """Of a prompt."""
        return self.rules + passages * self.passage + self.question

    def blocks(self, order: Order, number: int) -> Iterator[_Block]:
        """What decides the content of each whole block of prompt `number`, from the start."""
        for index in range(self.tokens(len(order)) // self.block):
            end = (index + 1) * self.block
            touched = max(0, -(-(end - self.rules) // self.passage))
            own = number if touched > len(order) else -1  # with tokens of the question nothing is shared
            yield index, order[:touched], own


class PrefixCache:
    """Blocks by what is in them, the least recently used first.

    Args:
        layout: of the prompts.
        capacity: blocks.
    """

    def __init__(self, layout: Layout, capacity: int) -> None:
        self._layout, self._capacity = layout, capacity
        self._blocks: OrderedDict[_Block, None] = OrderedDict()

    def found(self, order: Order, number: int) -> int:
        """Tokens of the prompt that need not be computed now."""
        found = 0
        for block in self._layout.blocks(order, number):
            if block not in self._blocks:
                break
            found += self._layout.block
        return min(found, self._layout.tokens(len(order)) - 1)

    def serve(self, order: Order, number: int) -> int:
        """Compute the prompt; returns the tokens that were found."""
        found = self.found(order, number)
        for block in reversed(list(self._layout.blocks(order, number))):  # a prompt's end goes out first
            self._blocks.pop(block, None)
            self._blocks[block] = None
        while len(self._blocks) > self._capacity:
            self._blocks.popitem(last=False)
        return found

    def best_order(self, passages: Sequence[int], rank: Callable[[int], int]) -> Order:
        """The order of which most is found now; the rest, and ties, by `rank`."""
        shape, rest = self._layout, tuple(sorted(passages, key=rank))
        best, most = rest, self.found(rest, -1)

        def look(begun: Order, left: Order) -> None:
            nonlocal best, most
            whole_blocks = shape.rules + (len(begun) + 1) * shape.passage - shape.block
            for passage in left:
                others = tuple(p for p in left if p != passage)
                found = self.found((*begun, passage, *others), -1)
                if found > most:
                    best, most = (*begun, passage, *others), found
                if others and found >= whole_blocks:
                    look((*begun, passage), others)

        look((), rest)
        return best


@dataclass(frozen=True, slots=True)
class Simulated:
    """Tokens that were computed for each prompt, and of how many."""

    computed: tuple[int, ...]
    tokens: int

    @property
    def hit_share(self) -> float:
        """Share of all prompt tokens that was found."""
        return 1.0 - sum(self.computed) / (self.tokens * len(self.computed))

    @property
    def median(self) -> float:
        """Computed tokens of the median prompt."""
        return statistics.median(self.computed)


def zipf_draws(
    documents: int, exponent: float, passages: int, prompts: int, *, seed: int
) -> list[tuple[int, ...]]:
    """For each prompt, different documents drawn by Zipf's law (0 is the likeliest), then ranked at random.

    How relevant a document is to a question does not follow from how popular it is, so the ranking of those
    drawn is a shuffle.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible sample, not a secret
    weights = [1.0 / (rank**exponent) for rank in range(1, documents + 1)]
    drawn: list[tuple[int, ...]] = []
    for _ in range(prompts):
        chosen: list[int] = []
        while len(chosen) < passages:
            one = rng.choices(range(documents), weights)[0]
            if one not in chosen:
                chosen.append(one)
        rng.shuffle(chosen)
        drawn.append(tuple(chosen))
    return drawn


def simulate(
    draws: Sequence[tuple[int, ...]],
    layout: Layout,
    capacity: int,
    order: Callable[[PrefixCache, tuple[int, ...]], Order],
    *,
    skip: int,
) -> Simulated:
    """Serve all prompts in turn from an empty cache; the first `skip` are not counted."""
    cache, computed = PrefixCache(layout, capacity), list[int]()
    tokens = layout.tokens(len(draws[0]))
    for number, drawn in enumerate(draws):
        found = cache.serve(order(cache, drawn), number)
        if number >= skip:
            computed.append(tokens - found)
    return Simulated(tuple(computed), tokens)


def best(draws: Sequence[tuple[int, ...]], layout: Layout, capacity: int, *, skip: int) -> Simulated:
    """The bound: every prompt in the order of which the cache holds most, popularity being known."""
    return simulate(
        draws, layout, capacity, lambda cache, drawn: cache.best_order(drawn, lambda p: p), skip=skip
    )


def as_ranked(draws: Sequence[tuple[int, ...]], layout: Layout, capacity: int, *, skip: int) -> Simulated:
    """Evidence in the order of its relevance."""
    return simulate(draws, layout, capacity, lambda _cache, drawn: drawn, skip=skip)
