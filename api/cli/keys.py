"""`geo keys create | list | revoke`: works on the database itself, so a lost key can be replaced."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import typer
from sqlalchemy import select

from api.cli.database import made_database
from api.cli.output import Json, emit
from core.db import Database
from core.errors import ConfigError
from core.models import TenantRow
from core.settings import get_settings
from core.types import Role, Scope

_PRINCIPAL = "cli"


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="API keys. Whoever may read the database may use this.", no_args_is_help=True)
    group.command("create")(create)
    group.command("list")(list_keys)
    group.command("revoke")(revoke)
    app.add_typer(group, name="keys")


@contextmanager
def _operator() -> Generator[tuple[Database, Scope]]:
    """The database and the scope of its operator."""
    from api.keys import DEFAULT_TENANT

    with made_database(get_settings()) as db:
        with db.read() as session:
            tenant_id = session.scalar(select(TenantRow.id).where(TenantRow.name == DEFAULT_TENANT))
        if tenant_id is None:
            raise ConfigError("this database has no tenant yet; start it once with: geo up")
        yield db, Scope(tenant_id, None, _PRINCIPAL, Role.OPERATOR)


def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    role: Annotated[Role, typer.Option(help="Each role includes the ones before it.")] = Role.READER,
    collection: Annotated[
        list[str] | None, typer.Option("--collection", "-c", help="Limit it to these; repeatable.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Another tenant; made if new.")] = None,
    as_json: Json = False,
) -> None:
    """Make a key and print it once."""
    from api import audit, keys

    with _operator() as (db, scope), db.write() as session:
        made, plaintext = keys.create(
            session, scope, name=name, role=role, collections=collection or None, tenant=tenant
        )
        audit.record(session, scope, "key.create", made.id)
    if as_json:
        emit({**_public(made), "key": plaintext})
    else:
        print(f"{made.id}  {made.role.value}  {made.tenant}\n{plaintext}\n(shown once, store it now)")


def list_keys(as_json: Json = False) -> None:
    """List all keys, without their secrets."""
    from api import keys

    with _operator() as (db, scope), db.read() as session:
        found = keys.list_keys(session, scope, limit=10_000)
    if as_json:
        emit({"items": [_public(key) for key in found]})
        return
    for key in found:
        state = "revoked" if key.revoked_at else "valid"
        print(f"{key.id}  {key.role.value:<9}{state:<8} {key.tenant}  {key.name}")


def revoke(key_id: Annotated[str, typer.Argument(help="Id of the key.")], as_json: Json = False) -> None:
    """End a key at once."""
    from api import audit, keys

    with _operator() as (db, scope), db.write() as session:
        revoked = keys.revoke(session, scope, key_id)
        audit.record(session, scope, "key.revoke", key_id)
    emit(_public(revoked)) if as_json else print(f"{revoked.id} is revoked")


def _public(key: Any) -> dict[str, Any]:
    return asdict(key)
