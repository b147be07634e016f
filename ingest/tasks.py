"""Celery tasks of this stage: normalize, disambiguate, purge.

Each computes with no session open and writes its outputs with the job's end in one transaction, replacing
what an earlier attempt wrote, so running one twice gives the same rows. Heavy libraries are imported inside
the functions, in the pool's child.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import DocumentRejected
from core.jobs import JobRun, add_job, run_job
from core.packs import pack_path
from core.settings import get_settings
from core.types import JobStatus, Passage, Scope
from core.worker import Task, get_app, next_stage
from ingest import recycle, repository, writing
from ingest.blobs import BlobStore
from ingest.catalogue import Catalogue
from ingest.catalogue_repository import catalogue_stamp, load_catalogue
from ingest.near_duplicates import find_pairs
from ingest.relink import relink as relink_affected
from ingest.relink import relink_version
from ingest.values import Mention
from ingest.watching import ReadingWatch, until_stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from ingest.near import Signature
    from ingest.normalize import NormalizedDocument
    from ingest.repository import Original
    from ingest.split import PassageDraft

__all__ = ["disambiguate", "normalize", "purge", "recycle", "relink"]

_BATCH = 64  # passages between two progress reports


@get_app().task(name=Task.NORMALIZE.value)
def normalize(job_id: str) -> None:
    """Original → normalized text, offset map, passages."""
    run_job(job_id, until_stopped(_normalize))


@get_app().task(name=Task.DISAMBIGUATE.value)
def disambiguate(job_id: str) -> None:
    """Passages → mentions, each linked to an entity or NIL."""
    run_job(job_id, _disambiguate)


@get_app().task(name=Task.RELINK.value)
def relink(job_id: str) -> None:
    """Link anew the documents that a change of the catalogue concerns."""
    run_job(job_id, _relink)


@get_app().task(name=Task.PURGE.value)
def purge(job_id: str) -> None:
    """Remove every trace of a document that no index serves any more."""
    run_job(job_id, _purge)


# -- normalize ---------------------------------------------------------------------------------


def _normalize(run: JobRun) -> None:
    with run.db.read() as session:
        original = repository.original_of(session, run.subject_id, run.subject_version)
    if original is None:  # deleted meanwhile
        return
    try:
        document, drafts = _read(original, ReadingWatch(run))
    except DocumentRejected:
        with run.db.write() as session:
            writing.write_attempt(session, run.subject_id, run.subject_version, original.recipe)
        raise
    total = document.pages or len(drafts)  # in the unit that was told while it was read
    run.progress(total, total)
    signature = _signature(document.text)
    with run.finish() as session:
        if writing.write_normalized(
            session, run.subject_id, run.subject_version, document, drafts, original.recipe, signature
        ):
            _start_next(session, run)


def _signature(text: str) -> Signature | None:
    from ingest.near import shingles, signature

    distinct = shingles(text)
    return signature(distinct) if len(distinct) else None


def _read(original: Original, watch: ReadingWatch) -> tuple[NormalizedDocument, list[PassageDraft]]:
    """Raises `DocumentRejected`, with what its owner can do."""
    from ingest.normalize import build
    from ingest.sandbox import options_of, parse_in_sandbox
    from ingest.split import split
    from ingest.tokens import tokenizer_counter

    settings, recipe = get_settings(), original.recipe
    options = replace(options_of(settings.ingest), ocr=recipe.ocr, keep_hidden=recipe.keep_hidden)
    path = BlobStore.of(settings).existing(original.blob_hash)
    document = build(parse_in_sandbox(path, original.file_name, original.declared_type, options, watch))
    counter = tokenizer_counter(pack_path(recipe.encoder))
    drafts = split(document, counter, recipe.passage_tokens, recipe.passage_max_tokens)
    if not drafts:
        raise DocumentRejected("empty", "The document holds no text to search; upload one with content.")
    return document, drafts


# -- disambiguate ------------------------------------------------------------------------------


def _disambiguate(run: JobRun) -> None:
    scope = Scope.internal(run.tenant_id)
    with run.db.read() as session:
        found = repository.passages_to_link(session, scope, run.subject_id, run.subject_version)
        catalogue = _catalogue(session, run.tenant_id)
        near = find_pairs(session, run.subject_id, run.subject_version)
    if found is None:  # deleted meanwhile
        return
    title, passages = found
    mentions = _find_mentions(run, passages)
    if mentions is None:
        with run.finish(JobStatus.CANCELLED):
            return
    linked, beside = relink_version(title, passages, mentions, catalogue, document_id=run.subject_id)
    with run.finish() as session:
        if writing.write_mentions(session, run.subject_id, run.subject_version, linked, near, beside):
            _start_next(session, run)


def _find_mentions(run: JobRun, passages: Sequence[Passage]) -> list[Mention] | None:
    """Mentions of all passages, or None when somebody asked to stop."""
    from ingest.mentions import recognise

    mentions: list[Mention] = []
    for at in range(0, len(passages), _BATCH):
        if at:  # a short document is done sooner than its progress is written
            run.progress(at, len(passages))
            if run.cancelled:
                return None
        batch = passages[at : at + _BATCH]
        mentions.extend(recognise(batch))
    return mentions


_catalogues: dict[tuple[str, str], tuple[tuple[int, int, int], Catalogue]] = {}  # by database and tenant


def _catalogue(session: Session, tenant_id: str) -> Catalogue:
    """The tenant's catalogue, kept in this process for as long as it stays the same."""
    stamp = catalogue_stamp(session, tenant_id)
    key = (str(session.get_bind().engine.url), tenant_id)
    known = _catalogues.get(key)
    if known is None or known[0] != stamp:
        _catalogues.clear()  # one tenant at a time: a catalogue may be large
        known = _catalogues[key] = (stamp, load_catalogue(session, tenant_id))
    return known[1]


# -- relink --------------------------------------------------------------------------------------


def _relink(run: JobRun) -> None:
    done = relink_affected(run, _catalogue)
    with run.finish(JobStatus.CANCELLED if done is None else JobStatus.DONE):
        return


# -- purge -------------------------------------------------------------------------------------


def _purge(run: JobRun) -> None:
    with run.db.read() as session:
        digests = repository.blobs_of(session, run.subject_id)
    with run.finish() as session:
        repository.lock_blobs(session, digests)
        for digest in writing.purge_document(session, run.subject_id, digests):
            BlobStore.of().delete(digest)


def _start_next(session: Session, run: JobRun) -> None:
    following = next_stage(run.task)
    if following is not None:
        add_job(
            session,
            following,
            tenant_id=run.tenant_id,
            subject_kind="document",
            subject_id=run.subject_id,
            subject_version=run.subject_version,
            attempt_key=run.attempt_key,
            gives_way=run.gives_way,
        )
