"""Time-ordered, unguessable identifiers with a prefix that tells what they name."""

from __future__ import annotations

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32


def new_id(prefix: str) -> str:
    """Return `prefix_` followed by 26 characters: 48 bits of Unix milliseconds, 80 random bits.

    Ids sort by creation time, which keeps index inserts local. Layout: ULID, Crockford base 32.
    """
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return prefix + "_" + "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))
