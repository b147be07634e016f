"""Options that name the files of a judged set, the same for every command that reads one."""

from __future__ import annotations

from typing import Any

import typer


def file_option(what: str) -> Any:
    """An option for a file that has to exist; `what` is its help."""
    return typer.Option(exists=True, dir_okay=False, readable=True, help=what)


CORPUS = file_option("JSON lines of _id, title and text.")
QUERIES = file_option("JSON lines of _id and text.")
QRELS = file_option("TSV of query-id, corpus-id and score.")
ANSWERS = file_option("JSON lines of _id and answers.")
