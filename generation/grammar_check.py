"""A grammar is parsed here before it goes to the engine, so that a bad one never stops it for everyone."""

from __future__ import annotations

from functools import lru_cache

from core.errors import InvalidInput

MAX_CHARS = 200_000


@lru_cache(maxsize=256)
def checked(grammar: str) -> str:
    """The grammar itself, once it is known to parse.

    Raises:
        InvalidInput: it is too large or the engine's compiler would refuse it.
    """
    if len(grammar) > MAX_CHARS:
        raise InvalidInput(f"A grammar of {len(grammar)} characters is too large; {MAX_CHARS} are allowed.")
    try:
        from xgrammar import Grammar
    except ImportError:
        return grammar  # the engine is elsewhere, and so is its compiler
    try:
        Grammar.from_ebnf(grammar)
    except RuntimeError as error:
        raise InvalidInput(f"The grammar does not parse: {str(error)[:300]}") from error
    return grammar
