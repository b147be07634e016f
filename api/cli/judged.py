"""Options that name the files of a judged set, the same for every command that reads one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def file_option(what: str) -> Any:
    """An option for a file that has to exist; `what` is its help."""
    return typer.Option(exists=True, dir_okay=False, readable=True, help=what)


CORPUS = file_option("JSON lines of _id, title and text.")
QUERIES = file_option("JSON lines of _id and text.")
QRELS = file_option("TSV of query-id, corpus-id and score.")
ANSWERS = file_option("JSON lines of _id and answers.")

Limit = Annotated[int | None, typer.Option(min=1, help="Ask only the first N judged questions.")]
Keep = Annotated[
    Path | None, typer.Option(file_okay=False, help="Keep the ingested corpus here and use it again.")
]
