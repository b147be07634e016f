"""Index jobs taken together: texts of many documents in one encoding, many documents in one publish.

    while a job is open:
        take in the jobs that wait
        encode for half a second: half for the oldest document, the rest for those nearest to their end
        publish the documents that are complete, in one generation, and finish their jobs

A small document that comes while a large one is encoded is therefore searchable after a round or two, and
the large one loses at most half of the encoder to it. Each job is claimed, kept and settled for itself by the
rules of `core/jobs.py`, so a worker killed anywhere here loses nothing: vectors are stored by slices, log
entries say again what they said before, and a document goes live in the transaction that ends its job. A job
that was tried before runs with few others like it, and one that was tried twice alone, so that a document
that kills the worker takes no other with it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from core.db import Database
from core.errors import DocumentRejected, LeaseLost, PermanentError, TransientError
from core.jobs import JobRun, claim, settle, waiting_jobs
from core.retry import classify
from core.settings import get_settings
from core.worker import Task
from ingest.clean import visible
from retrieval import going_live
from retrieval import index_repository as repository
from retrieval.embed import Encoded, Vectors, reuse_vectors, usable
from retrieval.writer import IndexWriter, VectorSpace, index_writer

log = logging.getLogger(__name__)

ROUND_S = 0.5  # between two publishes; with the publish itself, a new document waits about a second at most
_ROOM = 256  # jobs open at once
_SLICE_MIN, _SLICE_MAX = 16, 1024  # passages per encoding; the rate decides
# A killed worker leaves up to `_ROOM` jobs behind. One of them may have killed it: taken eight at a time, and
# alone after that, it ends by itself while the others lose one attempt to it at most.
_TRIED_TOGETHER = 8
_GROUPED_BELOW = 3  # attempts that must be left to run alone
NO_TEXT = "The document holds no text to search; upload one with content."
Encode = Callable[[str, Sequence[str]], "Vectors | Encoded"]


@dataclass(slots=True, eq=False)
class OpenJob:
    """One claimed job: which passages its version has, which still need a vector, and which will get none."""

    run: JobRun
    ids: Sequence[int]
    missing: list[int]
    failed: list[int] = field(default_factory=list[int])

    @property
    def done(self) -> int:
        """Passages that need no more encoding."""
        return len(self.ids) - len(self.missing)

    @property
    def warnings(self) -> list[dict[str, object]]:
        """What the version's owner should know."""
        return [{"code": "passages_without_vector", "passage_ids": self.failed}] if self.failed else []


class IndexJobs:
    """The open jobs of one call.

    Args:
        db: jobs, passages and vectors.
        space: which encoder's vectors the index holds now; a rebuild may change that at any moment.
        encode: (encoder, texts) → [n, d] float32 unit rows; a row of NaN means that this text failed.
        stopping: whether the process was asked to end; open jobs are handed back then.
        between: called once a round, for work that must not wait behind a long queue.
    """

    def __init__(
        self,
        db: Database,
        space: Callable[[], VectorSpace],
        encode: Encode,
        *,
        stopping: Callable[[], bool] = lambda: False,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self._db, self._space_now, self._encode = db, space, encode
        self._space = space()
        self._stopping, self._between = stopping, between
        self._open: list[OpenJob] = []
        self._slice = _SLICE_MIN

    def run(self, first: str) -> None:
        """Do this job and all that wait, until none is open."""
        tried = self._take((first,))
        if tried == 1 and get_settings().worker.max_attempts > _GROUPED_BELOW:
            self._take(waiting_jobs(self._db, Task.INDEX, _TRIED_TOGETHER - 1, attempts=1))
        try:
            while self._open and not self._stopping():
                if not tried:
                    self._take(waiting_jobs(self._db, Task.INDEX, _ROOM - len(self._open)))
                self._follow_encoder()
                self._encode_round()
                self._publish([job for job in self._open if not job.missing])
                self._between()
        finally:
            for job in self._open:
                self._hand_back(job)

    def _follow_encoder(self) -> bool:
        """Whether the index changed its encoder; open jobs then need vectors of the new one."""
        space = self._space_now()
        if space == self._space:
            return False
        log.info("encoder_changed", extra={"before": self._space.model, "after": space.model})
        self._space = space
        for job in self._open:
            with self._db.read() as session:
                job.missing = repository.ids_without_vector(session, job.ids, space.model)
            job.failed = []
        return True

    # -- open and close ----------------------------------------------------------------------------

    def _take(self, job_ids: Sequence[str]) -> int:
        """Claim and open jobs; says how often the one tried most was tried before."""
        if not job_ids:
            return 0
        runs = claim(self._db, job_ids)
        tried = max((run.attempt - 1 for run in runs), default=0)
        for run in runs:
            try:
                self._open_job(run)
            except Exception as error:  # noqa: BLE001 - `settle` sorts errors into retry and end
                settle(run, error)
        return tried

    def _open_job(self, run: JobRun) -> None:
        with self._db.read() as session:
            ids = repository.version_passages(session, run.subject_id, run.subject_version)
        if ids is None:  # deleted meanwhile
            with run.finish():
                pass
            settle(run)
            return
        if not ids:
            raise DocumentRejected("empty", NO_TEXT)
        if run.subject_version > 1:
            reuse_vectors(self._db, run.subject_id, ids, self._space.model)
        with self._db.read() as session:
            missing = repository.ids_without_vector(session, ids, self._space.model)
        self._open.append(OpenJob(run, ids, missing))

    def _end(self, job: OpenJob, error: Exception | None = None) -> None:
        if job in self._open:
            self._open.remove(job)
            settle(job.run, error)

    def _hand_back(self, job: OpenJob) -> None:
        try:
            job.run.hand_back()
        except (LeaseLost, TransientError):  # its lease ends by itself
            log.warning("hand_back_failed", extra={"job_id": job.run.id}, exc_info=True)

    # -- encode ------------------------------------------------------------------------------------

    def _encode_round(self) -> None:
        deadline = time.monotonic() + ROUND_S
        while not self._stopping():
            chosen = self._choose(self._slice)
            if not chosen:
                return
            begun = time.monotonic()
            self._encode_slice(chosen)
            rate = sum(map(len, chosen.values())) / max(1e-3, time.monotonic() - begun)
            self._slice = max(_SLICE_MIN, min(_SLICE_MAX, int(rate * ROUND_S / 2)))
            if time.monotonic() >= deadline:
                return

    def _choose(self, count: int) -> dict[int, list[int]]:
        """Passages to encode next, by position of their job: the oldest's share, then the smallest rests."""
        wanting = [(at, job) for at, job in enumerate(self._open) if job.missing]
        wanting.sort(key=lambda entry: entry[1].run.gives_way)  # stable: the oldest stays first
        chosen: dict[int, list[int]] = {}
        for at, job in wanting[:1]:
            chosen[at] = job.missing[: max(1, count // 2)]
        left = count - sum(map(len, chosen.values()))
        by_rest = sorted(wanting, key=lambda entry: (entry[1].run.gives_way, len(entry[1].missing)))
        for at, job in by_rest:
            taken = len(chosen.get(at, ()))
            more = job.missing[taken : taken + left]
            if more:
                chosen[at] = [*chosen.get(at, ()), *more]
                left -= len(more)
        return chosen

    def _encode_slice(self, chosen: dict[int, list[int]]) -> None:
        parts = [(self._open[at], ids) for at, ids in chosen.items()]
        try:
            self._encode_parts(parts)
        except Exception as error:  # one bad document must not fail those that share its slice
            if len(parts) == 1:
                self._end(parts[0][0], error)
                return
            log.warning("encoding_apart", exc_info=True)
            for job, ids in parts:
                try:
                    self._encode_parts([(job, ids)])
                except Exception as own:  # noqa: BLE001 - `settle` sorts errors into retry and end
                    self._end(job, own)

    def _encode_parts(self, parts: Sequence[tuple[OpenJob, list[int]]]) -> None:
        model = self._space.model
        with self._db.read() as session:
            wanted = repository.passages_without_vector(session, [i for _, ids in parts for i in ids], model)
        texts = [p for p in wanted if visible(p.text)]  # a blank has no direction
        made = usable(texts, lambda given: self._encode(model, given))
        failed = {p.id for p in wanted} - {i for i, _ in made.vectors}
        lost: list[tuple[OpenJob, LeaseLost]] = []
        with self._db.write() as session:
            repository.store_vectors(session, model, made.vectors)
            repository.store_tokens(session, model, made.tokens)
            for job, ids in parts:
                try:
                    job.run.report(session, job.done + len(ids), len(job.ids))
                except LeaseLost as error:
                    lost.append((job, error))
        for job, ids in parts:
            seen = set(ids)
            job.missing = [i for i in job.missing if i not in seen]
            job.failed.extend(i for i in ids if i in failed)
        for job, error in lost:
            self._end(job, error)

    # -- publish -----------------------------------------------------------------------------------

    def _publish(self, complete: Sequence[OpenJob]) -> None:
        for job in complete:
            if len(job.failed) == len(job.ids):
                count = len(job.ids)
                self._end(
                    job,
                    PermanentError(
                        f"The encoder {self._space.model} gave no usable vector for any of {count} passages."
                    ),
                )
        ready = [job for job in complete if job in self._open]
        if not ready:
            return
        try:
            self._publish_together(ready)
        except Exception as error:
            if len(ready) == 1 or isinstance(classify(error), TransientError):
                for job in ready:
                    self._end(job, error)
                return
            log.warning("publishing_apart", exc_info=True)
            for job in ready:
                self._publish([job])

    def _publish_together(self, jobs: Sequence[OpenJob]) -> None:
        with index_writer(self._db, self._space) as writer:
            if self._follow_encoder():  # under the lease it stays as it is
                return
            with self._db.write() as session:
                for job in jobs:
                    writer.append(session, "add", job.run.subject_id, job.run.subject_version, job.ids)
            writer.catch_up()
            gone, refused = False, dict[str, Exception]()
            with self._db.write() as session:
                for job in jobs:
                    try:
                        with session.begin_nested():
                            gone |= self._go_live(session, writer, job)
                    except Exception as error:  # noqa: BLE001 - settled below, each for itself
                        refused[job.run.id] = error
            for job in jobs:
                job.run.finished = job.run.id not in refused
                self._end(job, refused.get(job.run.id))
            if gone:
                self._catch_up_later(writer)

    def _go_live(self, session: Session, writer: IndexWriter, job: OpenJob) -> bool:
        run = job.run
        run.close(session)
        gone = going_live.make_live(session, run.subject_id, run.subject_version, job.warnings)
        if gone:
            writer.append(session, "delete", run.subject_id, run.subject_version, sorted(gone))
        return bool(gone)

    def _catch_up_later(self, writer: IndexWriter) -> None:
        """Tombstones of versions that no route shows any more; if this fails the next writer does it."""
        try:
            writer.catch_up()
        except Exception:
            log.warning("catch_up_failed", exc_info=True)
