"""Which passages prompts have had most: the order in which they stand in the next prompt.

The engine keeps the keys and values of whole blocks from a prompt's start. What two prompts share counts only
as far as they begin alike, so the passages that most prompts have must stand first. How often a prompt had a
passage is counted where the cache is, in the generation worker, and per tenant, as the cache is.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from core.types import CitationMode, Lang

HALF_LIFE = 1000  # prompts of a tenant after which one counts half
CAPACITY = 50_000  # passages and openings remembered, all tenants together
DEPTH = 2  # passages of an opening: deeper ones are too rare to be worth holding ready
_Key = TypeVar("_Key")
_LARGEST_WEIGHT = 1e9  # counts are scaled down before a float loses the small ones


@dataclass(frozen=True, slots=True)
class Form:
    """What decides the words before the passages."""

    lang: Lang
    mode: CitationMode
    tone: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What prompts of one tenant begin with: the rules of a form, then these passages."""

    tenant_id: str
    form: Form
    passages: tuple[int, ...]


class PromptBook:
    """Counts passages and openings of prompts, recent ones more. Safe to share between threads."""

    def __init__(self, *, half_life: int = HALF_LIFE, capacity: int = CAPACITY) -> None:
        self._growth, self._capacity = 2.0 ** (1.0 / half_life), capacity
        self._weight = 1.0  # of the next prompt; a growing weight is a decay of all that came before
        self._passages: dict[tuple[str, int], float] = {}
        self._openings: dict[Opening, float] = {}
        self._noted = 0
        self._lock = threading.Lock()

    @property
    def noted(self) -> int:
        """Prompts counted so far."""
        return self._noted

    def order(self, tenant_id: str, passages: Iterable[int]) -> tuple[int, ...]:
        """The canonical order of these passages: the most used first, ties by id."""
        with self._lock:
            return tuple(sorted(passages, key=lambda p: (-self._passages.get((tenant_id, p), 0.0), p)))

    def note(self, tenant_id: str, form: Form, passages: Sequence[int]) -> None:
        """Count one prompt of `tenant_id` that had `passages`, in this order."""
        if not passages:
            return
        with self._lock:
            self._noted += 1
            self._weight *= self._growth
            for passage in passages:
                key = (tenant_id, passage)
                self._passages[key] = self._passages.get(key, 0.0) + self._weight
            opening = Opening(tenant_id, form, tuple(passages[:DEPTH]))
            self._openings[opening] = self._openings.get(opening, 0.0) + self._weight
            self._tidy()

    def popular(self, limit: int) -> list[Opening]:
        """The openings of most prompts, most frequent first; one that was seen only once is none."""
        with self._lock:
            best = heapq.nlargest(limit, self._openings.items(), key=lambda item: item[1])
            return [opening for opening, weight in best if weight > self._weight]

    def _tidy(self) -> None:
        if self._weight > _LARGEST_WEIGHT:
            self._passages = {key: w / self._weight for key, w in self._passages.items()}
            self._openings = {key: w / self._weight for key, w in self._openings.items()}
            self._weight = 1.0
        self._passages = _most(self._passages, self._capacity)
        self._openings = _most(self._openings, self._capacity)


def _most(weights: dict[_Key, float], capacity: int) -> dict[_Key, float]:
    """The heavier half, once there are more than `capacity`."""
    if len(weights) <= capacity:
        return weights
    return dict(heapq.nlargest(capacity // 2, weights.items(), key=lambda item: item[1]))
