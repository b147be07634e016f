"""Query parameters that a door does not have are refused, as unknown fields of a body are.

`?colection=pumps` would otherwise list everything, and of a value given twice the first would go unheard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from core.errors import InvalidInput


async def only_known(request: Request) -> None:
    """A dependency of routers.

    Raises:
        InvalidInput: a parameter that the door does not have, or one more than once.
    """
    given = Counter(name for name, _ in request.query_params.multi_items())
    if not given:
        return
    route = request.scope["route"]
    known = set(_names(route.dependant)) if isinstance(route, APIRoute) else set[str]()
    for name, times in given.items():
        if name not in known:
            takes = f"this door takes {', '.join(sorted(known))}" if known else "this door takes none"
            raise InvalidInput(f"There is no query parameter {name[:40]}; {takes}.")
        if times > 1:
            raise InvalidInput(f"The query parameter {name} is given {times} times; it takes one value.")


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _names(inner)
