from __future__ import annotations

import threading

import pytest
from sqlalchemy import func, select

from core.db import Database
from core.models import AuditRow


@pytest.mark.parametrize(
    "rows_each", [20, pytest.param(400, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
)
def test_thirty_writers_lose_no_row(database: Database, rows_each: int) -> None:
    def write(number: int) -> None:
        for i in range(rows_each):
            with database.write() as session:
                session.add(AuditRow(tenant_id="t", principal=f"p{number}", action="a", subject=str(i)))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(AuditRow)) == 30 * rows_each


def test_a_read_waits_for_no_writer(database: Database) -> None:
    with database.write() as writing:
        writing.add(AuditRow(tenant_id="t", principal="p", action="a", subject="s"))
        writing.flush()
        with database.read() as reading:
            assert reading.scalar(select(func.count()).select_from(AuditRow)) == 0


def test_times_come_back_aware(database: Database) -> None:
    with database.write() as session:
        session.add(AuditRow(tenant_id="t", principal="p", action="a", subject="s"))
    with database.read() as session:
        at = session.scalars(select(AuditRow.at)).one()
    assert at.utcoffset() is not None
