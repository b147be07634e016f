"""A process that answers many at once, made to answer evenly: called when it has loaded what it needs."""

from __future__ import annotations

import gc
import sys

_HAND_OVER_S = (
    0.001  # Python's 5 ms is as long as a whole search: whoever comes back from a library waits for it
)
_YOUNG = 10_000  # new objects between two looks for garbage; Python's 700 is a few requests' rows


def answer_evenly() -> None:
    """Leave what is loaded out of the garbage collector's rounds, and have threads hand over sooner.

    A full round over the objects of the libraries and models stops every thread for 0.1 s and more. What is
    loaded stays for the process's life; what comes later is collected as ever.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)
    sys.setswitchinterval(_HAND_OVER_S)
