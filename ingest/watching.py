"""Between the parser and the job: progress on, and the wish to stop back."""

from __future__ import annotations

from collections.abc import Callable

from core.jobs import JobRun
from core.types import JobStatus
from ingest.parse.progress import PagesRead


class ReadingStopped(Exception):
    """Somebody asked to stop while the document was being read."""


class ReadingWatch:
    """Stores the pages read as the job's progress, which renews its lease too.

    Called about once a second, so a document that is read at once costs no transaction.

    Raises:
        ReadingStopped: the job is cancelled, for example because its document is being deleted.
        LeaseLost: another worker took over.
    """

    def __init__(self, run: JobRun) -> None:
        self._run = run
        self._told = (0, 0)

    def __call__(self, pages: PagesRead | None) -> None:
        """As the sandbox's `Watch`."""
        if self._run.cancelled:
            raise ReadingStopped
        if pages is not None and (pages.done, pages.total) > self._told:
            self._told = (pages.done, pages.total)
            self._run.progress(*self._told)


def until_stopped(work: Callable[[JobRun], None]) -> Callable[[JobRun], None]:
    """`work`, whose job ends as cancelled when its reading was stopped."""

    def run_it(run: JobRun) -> None:
        try:
            work(run)
        except ReadingStopped:
            with run.finish(JobStatus.CANCELLED):
                return

    return run_it
