"""When a source says that it was written. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from core.types import Evidence
from retrieval.source_dates import stated_date


def source_date(e: Evidence, given: Mapping[str, date] | None = None) -> date | None:
    """The date that a source gives itself: in its metadata, else in its headings, name or first line.

    Args:
        e: the source.
        given: dates of documents that have one in their metadata.
    """
    return stated_date(e.passage, e.document_name, (given or {}).get(e.passage.document_id))
