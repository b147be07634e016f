"""What all tables share: the metadata with its naming of constraints, and the types of columns."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Integer, MetaData, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from core.db import UtcDateTime, utcnow

EPOCH = text("'1970-01-01 00:00:00'")
BigId = BigInteger().with_variant(Integer, "sqlite")  # SQLite autoincrements INTEGER only
_Json = JSON().with_variant(postgresql.JSONB(), "postgresql")


class Base(DeclarativeBase):
    """Declarative base with stable constraint names, so that migrations can drop them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - read by SQLAlchemy as a class attribute
        datetime: UtcDateTime,
        dict[str, Any]: _Json,
        list[Any]: _Json,
        list[str]: _Json,
    }


def created() -> Mapped[datetime]:
    """A column that holds when its row was written."""
    return mapped_column(default=utcnow)
