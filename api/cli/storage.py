"""`geo migrate | backup | restore | doctor`: the data folder and its database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.database import made_database
from api.cli.output import Json, emit
from core.db import Database
from core.errors import Conflict
from core.settings import get_settings

if TYPE_CHECKING:
    from api.cli.data.doctor import Finding


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("migrate")(migrate)
    app.command("backup")(backup)
    app.command("restore")(restore)
    app.command("doctor")(doctor)


def migrate(as_json: Json = False) -> None:
    """Bring the database to this version's revision. Safe to run at every start."""
    from migrations import run as migrations

    settings = get_settings()
    db = Database(settings.database_url, settings=settings)
    try:
        before = migrations.current(db)
        migrations.upgrade(db)
        after = migrations.current(db)
    finally:
        db.dispose()
    if as_json:
        emit({"before": before, "after": after})
    else:
        print(f"the database is at {after}" + ("" if before == after else f" (was {before or 'empty'})"))


def backup(
    target: Annotated[Path, typer.Argument(help="The archive: .tar.gz, .tar.zst or .tar")],
    as_json: Json = False,
) -> None:
    """Write rows and originals to one archive; the service may go on running."""
    from api.cli.data.archive import backup as write

    settings = get_settings()
    with made_database(settings) as db:
        manifest = write(settings, db, target)
    size = target.stat().st_size
    if as_json:
        emit({"path": str(target), "size_bytes": size, **{k: manifest[k] for k in ("rows", "missing_blobs")}})
    else:
        print(f"{target}: {sum(manifest['rows'].values())} rows, {size / (1 << 20):.1f} MiB")


def restore(
    source: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="An archive of geo backup.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace existing data; a safety copy stays beside it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring an archive back into this data folder. The stack must be stopped."""
    from api.cli.data.archive import restore as bring_back
    from api.cli.embedded.state import is_running

    settings = get_settings()
    if is_running(settings):
        raise Conflict(f"the stack of {settings.root} is running; stop it with: geo down")
    done = bring_back(settings, source, force=force)
    if as_json:
        emit(done)
        return
    print(f"restored {sum(done['rows'].values())} rows from {done['made_at']} into {settings.root}")
    print("the index is built from them at the next start: geo up")
    if done["safety_copy"]:
        print(f"the data that was there is in {done['safety_copy']}")
    if done["missing_blobs"]:
        print(f"{len(done['missing_blobs'])} originals were not in the archive; geo doctor names them")


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Remove files and rows that nothing refers to.")] = False,
    as_json: Json = False,
) -> None:
    """Look for leftovers and contradictions between rows, originals and index files. Exit 1 on any."""
    from api.cli.data.doctor import FIX, examine, mend

    settings = get_settings()
    mended: list[Finding] = []
    with made_database(settings) as db:
        findings = examine(settings, db)
        if fix and any(f.mend == FIX for f in findings):
            mended = [f for f in findings if f.mend == FIX]
            mend(settings, db)
            findings = examine(settings, db)
            mended = [f for f in mended if f.check not in {left.check for left in findings}]
    if as_json:
        told = {"findings": [f.as_dict() for f in findings], "mended": [f.as_dict() for f in mended]}
        emit({"ok": not findings, **told})
        if findings:
            raise typer.Exit(1)
        return
    for finding in mended:
        print(f"removed: {finding.detail}")
    if not findings:
        print("nothing is wrong")
    else:
        for finding in findings:
            print(f"{finding.check}: {finding.count} — {finding.detail}\n  mend with: {finding.mend}")
    if findings:
        raise typer.Exit(1)
