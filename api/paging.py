"""Opaque cursors: the sort key of the last entry shown, so that pages neither skip nor repeat."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Protocol, TypeVar

from core.errors import InvalidInput


class Identified(Protocol):
    """Anything with an id that lists are sorted by."""

    @property
    def id(self) -> str | int:
        """The sort key."""
        ...


T = TypeVar("T", bound=Identified)


def encode_cursor(key: str | int) -> str:
    """Make a cursor of a sort key."""
    return base64.urlsafe_b64encode(str(key).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> str:
    """The sort key in a cursor; empty for the first page. Raises `InvalidInput` for anything else."""
    if not cursor:
        return ""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput("cursor: take it from `next_cursor` of the page before.") from error
    if not text.isascii() or not text.isprintable():
        raise InvalidInput("cursor: take it from `next_cursor` of the page before.")
    return text


def decode_number(cursor: str | None) -> int | None:
    """The same where the sort key is a number."""
    text = decode_cursor(cursor)
    if not text:
        return None
    if not text.isdigit() or len(text) > 18:
        raise InvalidInput("cursor: take it from `next_cursor` of the page before.")
    return int(text)


def cut(found: Sequence[T], limit: int) -> tuple[list[T], str | None]:
    """Split `limit + 1` found entries into a page and the cursor behind it."""
    page = list(found[:limit])
    return page, encode_cursor(page[-1].id) if len(found) > limit else None
