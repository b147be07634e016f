"""A process in which many threads write at once, with little patience. Given a URL; non-zero if one fails."""

from __future__ import annotations

import sys
import threading
import time

from core.db import Database
from core.errors import TransientError
from core.models import AuditRow
from core.settings import get_settings

THREADS, ROWS_EACH = 60, 10
PATIENCE_MS = 3_000


def main(url: str) -> int:
    usual = get_settings()
    little = usual.database.model_copy(update={"busy_timeout_ms": PATIENCE_MS})
    db = Database(url, settings=usual.model_copy(update={"database": little}))
    failed: list[TransientError] = []

    def write(number: int) -> None:
        for n in range(ROWS_EACH):
            try:
                with db.write() as session:
                    session.add(AuditRow(tenant_id="t", principal=f"p{number}", action="a", subject=str(n)))
                    session.flush()
                    time.sleep(0.001)
            except TransientError as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failed[:1]:
        sys.stderr.write(f"{len(failed)} failed: {error}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
