"""Caps that every parser keeps."""

from __future__ import annotations

from core.errors import DocumentRejected
from ingest.parse.model import Limits


def check_length(chars: int, limits: Limits) -> None:
    """Refuse more decoded text than the cap.

    Raises:
        DocumentRejected: `too_big`.
    """
    if chars > limits.max_chars:
        raise DocumentRejected(
            "too_big", f"The document holds {chars:,} characters; the cap is {limits.max_chars:,}. Split it."
        )
