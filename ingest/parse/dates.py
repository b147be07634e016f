"""Dates as documents write them → ISO 8601."""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime

import regex

_ISO = regex.compile(r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?(?:[T ]+(\d.*))?)?月?)?\s*")
_SHORT_HOUR = regex.compile(r"^(?=\d(?::|$))")


def iso_date(written: str) -> str:
    """`written` as an ISO 8601 date or date-time; empty when it is not one that can be told.

    Takes ISO 8601 of any precision, RFC 5322 (mail, RSS) and year-month-day with `/`, `.` or 年月日.
    """
    written = written.strip()
    found = _ISO.fullmatch(written)
    try:
        if found is None:
            return parsedate_to_datetime(written).isoformat()
        year, month, day, time = found.groups()
        if time is not None:
            return datetime.fromisoformat(
                f"{year}-{month:0>2}-{day:0>2}T{_SHORT_HOUR.sub('0', time)}"
            ).isoformat()
        if day is not None:
            return datetime(int(year), int(month), int(day)).date().isoformat()  # noqa: DTZ001 - a date has no zone
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    return year if month is None or not 1 <= int(month) <= 12 else f"{year}-{month:0>2}"
