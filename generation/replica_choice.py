"""Which of several servers a request goes to, and when one is left alone. Pure: time is passed in.

Questions over the same evidence go to the same server, whose prefix cache then holds it, unless that server
is clearly busier than the least busy one. Rendezvous hashing moves only the keys of a server that comes or
goes (Thaler and Ravishankar, IEEE/ACM ToN 1998, doi:10.1109/90.663936).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

_PREFIX_CHARS = 1024  # of the prompt's evidence: about ten blocks of 32 tokens, enough to tell sets apart
_BUSIER, _SLACK = 1.5, 4  # affinity is worth a queue of half as many again and four, not more


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server that may be asked. `requests`: running and waiting there, own and foreign."""

    url: str
    requests: int


def prefix_key(cache_salt: str, system: str, evidence: str) -> str:
    """What requests that can share cached blocks have in common: tenant, instructions, first evidence."""
    return "\x00".join((cache_salt, system, evidence[:_PREFIX_CHARS]))


def rendezvous(key: str, urls: Sequence[str]) -> list[str]:
    """The servers by their weight for this key, heaviest first; the order of `urls` does not matter."""

    def weight(url: str) -> bytes:
        return hashlib.blake2b(f"{url}\x00{key}".encode(), digest_size=8).digest()

    return sorted(set(urls), key=lambda url: (weight(url), url), reverse=True)


def choose(key: str, candidates: Sequence[Candidate]) -> str:
    """The first server in the key's order that is not much busier than the least busy one.

    Raises:
        ValueError: there is no candidate.
    """
    if not candidates:
        raise ValueError("no candidate")
    requests = {c.url: c.requests for c in candidates}
    bound = min(requests.values()) * _BUSIER + _SLACK
    return next(url for url in rendezvous(key, list(requests)) if requests[url] <= bound)


class Breaker:
    """Leaves a server alone after failures, and says when to look at it again.

    Closed: it is asked. Open: only probes go there, at doubling gaps. A good probe closes it; only a finished
    request resets the gaps, because a server may look well and fail every request.

    Args:
        failures: in a row that open it.
        first_s: gap before the first probe.
        longest_s: the gap's bound.
    """

    def __init__(self, *, failures: int = 3, first_s: float = 1.0, longest_s: float = 30.0) -> None:
        self._bound, self._first_s, self._longest_s = failures, first_s, longest_s
        self._failures, self._opened = 0, 0
        self._probe_at = 0.0
        self.closed = True

    def failed(self, now: float) -> None:
        """A request or a probe failed at `now` (monotonic seconds)."""
        self._failures += 1
        if self.closed and self._failures < self._bound:
            return
        self.closed = False
        self._probe_at = now + min(self._longest_s, self._first_s * 2**self._opened)
        self._opened = min(self._opened + 1, 16)

    def probe_due(self, now: float) -> bool:
        """Whether to look at it: always while it is asked, at the gap's end while it is not."""
        return self.closed or now >= self._probe_at

    def probed(self) -> None:
        """A probe went well."""
        if not self.closed:
            self.closed, self._failures = True, 0

    def succeeded(self) -> None:
        """A request was finished."""
        self.closed, self._failures, self._opened = True, 0, 0
