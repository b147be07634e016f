"""When a source says that it was written. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from core.types import Evidence

_DATE = re.compile(r"(?<!\d)([12]\d{3})(?:[-/.]|年)\s?(\d{1,2})(?:(?:[-/.]|月)\s?(\d{1,2})日?)?(?!\d)")


def source_date(e: Evidence, given: Mapping[str, date] | None = None) -> date | None:
    """The date that a source gives itself: in its metadata, else in its headings, else in its name."""
    if given and e.passage.document_id in given:
        return given[e.passage.document_id]
    for text in (*reversed(e.passage.heading_path), e.document_name, e.passage.text.split("\n")[0][:80]):
        match = _DATE.search(text)
        if match is None:
            continue
        try:
            return date(int(match[1]), int(match[2]), int(match[3] or 1))
        except ValueError:
            continue
    return None
