"""How well a text fits descriptions, by the encoder; loaded when the first ambiguous name asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_KEPT = 4096  # descriptions are asked for again and again; one vector is 1.5 kB


def similarity(context: str, descriptions: Sequence[str]) -> list[float]:
    """Cosine of `context` against each description, in [-1, 1]."""
    own = _encoded((context,))[0]
    return [float(own @ _vector(text)) for text in descriptions]


@lru_cache(maxsize=_KEPT)
def _vector(text: str) -> npt.NDArray[np.float32]:
    return _encoded((text,))[0]


@lru_cache(maxsize=64)
def _encoded(texts: tuple[str, ...]) -> npt.NDArray[np.float32]:
    from ingest.encode import encode_passages

    return encode_passages(texts)
