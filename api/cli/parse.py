"""`geo parse`: read one file as ingest would and show what came out. Needs no running service."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.output import Json, emit, note
from core.errors import ConfigError, DocumentRejected
from core.settings import Settings, get_settings

if TYPE_CHECKING:
    from ingest.tokens import TokenCounter

# Reasons with a status of their own, and those that say the file is refused rather than broken.
_OWN_STATUS = frozenset({"no_text", "encrypted"})
_REFUSALS = frozenset({"unsupported_format", "type_mismatch", "too_big", "refused"})


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("parse")(parse_command)


def parse_command(
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="The file to read.")
    ],
    declared_type: Annotated[
        str, typer.Option("--type", help="Media type, as a client would declare it.")
    ] = "",
    json: Json = False,
) -> None:
    """Read FILE and print its text and passages, or why it cannot be used."""
    outcome = read_file(file, declared_type)
    if json:
        emit(outcome)
    else:
        _print(outcome)
    if outcome["status"] not in ("ok", "partial"):
        raise typer.Exit(1)


def read_file(file: Path, declared_type: str = "") -> dict[str, Any]:
    """Parse, normalize and split one file.

    Returns:
        `status` (ok, partial, no_text, encrypted, refused, error), `reason` and `detail` when it is not ok,
        `text` (normalized, width folded, as searched), `passages`, `pages`, `encoding`, `warnings`, and more
        about the document.
    """
    from ingest.normalize import build
    from ingest.sandbox import close_sandbox, parse_in_sandbox
    from ingest.split import split

    settings = get_settings()
    try:
        document = build(parse_in_sandbox(file.resolve(), file.name, declared_type))
        counter, warnings = _counter(settings)
        drafts = split(document, counter, settings.ingest.passage_tokens, settings.ingest.passage_max_tokens)
    except DocumentRejected as error:
        return _rejected(error)
    finally:
        close_sandbox()
    return {
        "status": "partial" if document.partial else "ok",
        "reason": None,
        "text": unicodedata.normalize("NFKC", document.text),
        "passages": [
            {
                "ordinal": d.ordinal,
                "start": d.span.start,
                "end": d.span.end,
                "page": d.page,
                "heading_path": list(d.heading_path),
                "lang": d.lang.value,
                "text": d.text,
            }
            for d in drafts
        ],
        "pages": document.pages,
        "encoding": document.encoding,
        "encoding_confidence": document.encoding_confidence,
        "media_type": document.media_type,
        "title": document.title,
        "lang": document.lang.value,
        "outline": document.outline,
        "warnings": document.warnings + warnings,
    }


def _counter(settings: Settings) -> tuple[TokenCounter, list[dict[str, Any]]]:
    """The encoder's own counter, or a rough one (with a warning) where its pack is not fetched yet."""
    from core.packs import pack_path
    from ingest.parse.model import ParseWarning
    from ingest.tokens import rough_counter, tokenizer_counter

    try:
        return tokenizer_counter(pack_path(settings.packs.encoder)), []
    except ConfigError as error:
        warning = ParseWarning("rough_token_counts", f"Passages were cut by estimated sizes: {error.detail}")
        return rough_counter, [warning.as_json()]


def _rejected(error: DocumentRejected) -> dict[str, Any]:
    status = error.code if error.code in _OWN_STATUS else "refused" if error.code in _REFUSALS else "error"
    return {
        "status": status,
        "reason": error.code,
        "detail": error.detail,
        "text": "",
        "passages": [],
        "pages": None,
        "encoding": None,
        "warnings": [],
    }


def _print(outcome: dict[str, Any]) -> None:
    if outcome["reason"]:
        note(f"{outcome['status']}: {outcome['detail']}")
        return
    facts = [outcome["media_type"], outcome["lang"], f"{len(outcome['passages'])} passages"]
    if outcome["pages"]:
        facts.append(f"{outcome['pages']} pages")
    if outcome["encoding"]:
        facts.append(f"{outcome['encoding']} ({outcome['encoding_confidence']:.2f})")
    note(f"{outcome['status']}: {', '.join(facts)}")
    for warning in outcome["warnings"]:
        note(f"warning {warning['code']}: {warning['detail']}")
    for passage in outcome["passages"]:
        place = " > ".join(passage["heading_path"])
        page = f" p. {passage['page']}" if passage["page"] else ""
        print(f"[{passage['ordinal']}]{page} {place}".rstrip())
        print(passage["text"] + "\n")
