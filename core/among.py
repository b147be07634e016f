"""`column IN (values)` whose statement text is the same for any number of values.

An `IN` with a placeholder for each value is another text for each number of them: the database prepares it
anew and SQLAlchemy puts it together anew. Values in one array or JSON list cost neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, any_, bindparam, column, func, select
from sqlalchemy.dialects.postgresql import ARRAY

SQLITE = "sqlite"


def among(what: ColumnElement[Any], name: str, dialect: str) -> ColumnElement[bool]:
    """The condition; the values are bound under `name`, as `bound` gives them.

    Args:
        what: a column of whole numbers or of text.
        name: of the parameter.
        dialect: `sqlite`, else PostgreSQL.
    """
    if dialect == SQLITE:
        return what.in_(select(column("value")).select_from(func.json_each(bindparam(name))))
    return what == any_(bindparam(name, type_=ARRAY(what.type)))


def bound(values: Iterable[Any], dialect: str) -> Any:
    """The values as the parameter of `among`."""
    return json.dumps(list(values), ensure_ascii=False) if dialect == SQLITE else list(values)
