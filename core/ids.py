"""Time-ordered, unguessable identifiers with a prefix that tells what they name."""

from __future__ import annotations

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]  # two characters a step: a bulk import makes many ids


def new_id(prefix: str) -> str:
    """Return `prefix_` followed by 26 characters: 48 bits of Unix milliseconds, 80 random bits.

    Ids sort by creation time, which keeps index inserts local. Layout: ULID, Crockford base 32.
    """
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return prefix + "_" + "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])
