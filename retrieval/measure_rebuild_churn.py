"""Documents that come and go while `geo bench rebuild` asks: uploaded, looked for, deleted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from core.errors import GeoError
from core.models import DocumentRow
from core.types import DocumentStatus
from retrieval.scratch import CorpusDocument, ScratchStack

_UPLOAD_EVERY_S, _DELETE_EVERY_S = 1.0, 2.0
_WARM_S, _GIVEN_UP_S = 180, 10
_LOOKING = 2  # threads that ask for fresh documents, beside the rate
Find = Callable[[str, str], bool]
"""`(question, document id)` → whether the document is shown."""


@dataclass(slots=True)
class Churn:
    """Documents that come and go: when they were ready, when found, when deleted."""

    fresh_s: list[float] = field(default_factory=list[float])
    deleted: dict[str, float] = field(default_factory=dict[str, float])
    uploaded: int = 0
    waiting: dict[str, str] = field(default_factory=dict[str, str])


def warm(stack: ScratchStack, churn: Churn) -> None:
    """One document through all stages: the workers then have loaded their models."""
    _upload(stack, churn)
    deadline = time.monotonic() + _WARM_S
    while not _ready(stack, churn):
        if time.monotonic() > deadline:
            raise GeoError(f"No document was ready within {_WARM_S} s; the workers' messages stand above.")
        time.sleep(0.05)
    churn.waiting.clear()
    churn.uploaded -= 1


@contextmanager
def coming_and_going(stack: ScratchStack, churn: Churn, find: Find) -> Generator[None]:
    """Upload a document every second, look when it is ready and when it is found, delete older ones."""
    stop = threading.Event()
    looking = ThreadPoolExecutor(_LOOKING)
    threads = [
        threading.Thread(target=_upload_some, args=(stack, churn, stop)),
        threading.Thread(target=_watch, args=(stack, churn, find, looking, stop)),
        threading.Thread(target=_delete_some, args=(stack, churn, stop)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        looking.shutdown()
        churn.waiting.clear()


def _upload_some(stack: ScratchStack, churn: Churn, stop: threading.Event) -> None:
    while not stop.wait(_UPLOAD_EVERY_S):
        _upload(stack, churn)


def _upload(stack: ScratchStack, churn: Churn) -> None:
    churn.uploaded += 1
    code = f"QX{len(stack.corpus_ids):05d}Z"
    text = f"The valve with the code {code} is opened at noon and closed in the evening."
    known = set(stack.corpus_ids)
    stack.upload([CorpusDocument(code, code, text)])
    (document_id,) = set(stack.corpus_ids) - known
    churn.waiting[document_id] = f"When is the valve with the code {code} opened?"


def _watch(
    stack: ScratchStack, churn: Churn, find: Find, looking: ThreadPoolExecutor, stop: threading.Event
) -> None:
    """Ask for every document from the moment it is ready until it is found."""
    while not stop.wait(0.01):
        for document_id in _ready(stack, churn):
            question, ready = churn.waiting.pop(document_id), time.monotonic()
            looking.submit(_look_for, document_id, question, ready, churn, find)


def _ready(stack: ScratchStack, churn: Churn) -> list[str]:
    waiting = list(churn.waiting)
    if not waiting:
        return []
    with stack.db.read() as session:
        rows = session.query(DocumentRow.id).where(
            DocumentRow.id.in_(waiting), DocumentRow.status == DocumentStatus.READY.value
        )
        return [document_id for (document_id,) in rows]


def _look_for(document_id: str, question: str, ready: float, churn: Churn, find: Find) -> None:
    while not find(question, document_id):
        if document_id in churn.deleted or time.monotonic() - ready > _GIVEN_UP_S:
            break
    churn.fresh_s.append(time.monotonic() - ready)


def _delete_some(stack: ScratchStack, churn: Churn, stop: threading.Event) -> None:
    from ingest.service import delete_document

    while not stop.wait(_DELETE_EVERY_S):
        gone = {*churn.deleted, *churn.waiting}
        waiting = [d for d in list(stack.corpus_ids) if d not in gone][: -int(5 / _UPLOAD_EVERY_S)]
        if not waiting:
            continue
        with stack.db.write() as session:
            delete_document(session, stack.scope, document_id=waiting[0])
        churn.deleted[waiting[0]] = time.monotonic()
