"""What commands print: one JSON object with `--json`, lines for people without it."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def emit(value: Any) -> None:
    """Print one JSON value on stdout."""
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def note(text: str) -> None:
    """Tell a person about progress, on stderr."""
    print(text, file=sys.stderr, flush=True)
