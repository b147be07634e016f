from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import bindparam, func, select, text
from sqlalchemy.exc import ProgrammingError

from core.db import Database, plain_rows
from core.errors import TransientError
from core.models import AuditRow
from core.write_turns import WriteTurns
from tests.core import crowd_of_writers
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]


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


def test_writers_of_a_process_come_in_turn(sqlite_database: Database) -> None:
    came: list[int] = []

    def write(number: int) -> None:
        with sqlite_database.write():
            came.append(number)

    with sqlite_database.write():
        threads = [threading.Thread(target=write, args=(n,)) for n in range(40)]
        turns = sqlite_database._turns
        assert turns is not None
        for number, thread in enumerate(threads):
            thread.start()
            until(lambda standing=number + 1: len(turns._line) == standing)  # so that they ask in this order
    for thread in threads:
        thread.join()
    assert came == list(range(40))


def test_writers_that_wait_keep_no_connection_from_the_readers(sqlite_database: Database) -> None:
    with sqlite_database.write():
        threads = [threading.Thread(target=_write_one, args=(sqlite_database, n)) for n in range(64)]
        for thread in threads:
            thread.start()
        with sqlite_database.read() as session:
            assert session.scalar(select(func.count()).select_from(AuditRow)) == 0
    for thread in threads:
        thread.join()


def test_a_writer_that_fails_passes_its_turn_on(sqlite_database: Database) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), sqlite_database.write():
            raise ZeroDivisionError
    _write_one(sqlite_database, 0)


def test_a_turn_that_is_never_passed_on_stops_nobody_for_ever() -> None:
    turns = WriteTurns(patience_s=0.05)
    turns._wait()  # and its thread is gone
    with turns.turn():
        pass
    with turns.turn():
        pass


def test_an_interrupted_wait_leaves_the_line() -> None:
    turns = WriteTurns(patience_s=30)
    with turns.turn(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Event, "wait", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            turns._wait()
    with turns.turn():
        assert not turns._line


def test_two_processes_with_sixty_writers_each_fail_no_write(sqlite_database: Database) -> None:
    """Each transaction keeps the lock for about a millisecond; SQLite alone lets some wait for seconds."""
    url = str(sqlite_database.engine.url)
    crowd = [sys.executable, "-m", "tests.core.crowd_of_writers", url]
    beside = [subprocess.Popen(crowd, cwd=ROOT) for _ in range(2)]
    assert [process.wait(timeout=60) for process in beside] == [0, 0]
    with sqlite_database.read() as session:
        written = session.scalar(select(func.count()).select_from(AuditRow))
    assert written == 2 * crowd_of_writers.THREADS * crowd_of_writers.ROWS_EACH


def _write_one(db: Database, number: int) -> None:
    with db.write() as session:
        session.add(AuditRow(tenant_id="t", principal=f"p{number}", action="a", subject="s"))


def _interrupted(*_: object) -> bool:
    raise KeyboardInterrupt


def test_a_quick_read_sees_what_was_committed_and_nothing_else(database: Database) -> None:
    count = select(func.count(), AuditRow.subject).where(AuditRow.action == bindparam("action"))
    count = count.group_by(AuditRow.subject)
    with database.write() as writing:
        writing.add(AuditRow(tenant_id="t", principal="p", action="a", subject="s"))
        writing.flush()
        assert list(database.quick().rows(count, {"action": "a"})) == []
    assert [tuple(row) for row in database.quick().rows(count, {"action": "a"})] == [(1, "s")]
    assert list(database.quick().rows(count, {"action": "b"})) == []
    with database.read() as session:
        assert list(map(tuple, plain_rows(session, count, {"action": "a"}))) == [(1, "s")]


def test_a_quick_read_of_what_is_not_there_is_an_outage_that_ends(database: Database) -> None:
    """The connection goes back whole: the next read finds the database again."""
    for _ in range(30):  # more than the pool has
        with pytest.raises((TransientError, ProgrammingError)):
            database.quick().rows(text("SELECT nothing FROM nowhere"), {})
    assert database.quick().rows(select(func.count()).select_from(AuditRow), {})[0][0] == 0


def test_quick_reads_of_many_threads_are_each_their_own(database: Database) -> None:
    with database.write() as session:
        session.add_all(
            AuditRow(tenant_id="t", principal="p", action=str(n), subject=f"s{n}") for n in range(8)
        )
    wanted = select(AuditRow.subject).where(AuditRow.action == bindparam("action"))
    wrong: list[object] = []

    def read(number: int) -> None:
        for _ in range(50):
            found = database.quick().rows(wanted, {"action": str(number)})
            if [row[0] for row in found] != [f"s{number}"]:
                wrong.append(found)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
