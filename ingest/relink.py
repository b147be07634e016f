"""Linking anew what a changed catalogue concerns: the documents that have a changed name, and no others.

The changed aliases are looked for in the text of every passage, because a name nobody knew may stand there
without a mention, and among the keys of the mentions. Each document found is linked in a transaction of its
own, so a killed worker loses one document's work and the next attempt does it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.jobs import JobRun
from core.models import EntityAliasRow, EntityRow, MentionRow, PassageRow
from core.settings import get_settings
from core.types import LinkedMention, Passage, Scope, Span
from ingest import repository, writing
from ingest.catalogue import Alias, Catalogue, CatalogueEntity, with_catalogue_names
from ingest.coreference import with_short_forms
from ingest.disambiguate import Context, link
from ingest.fold import search_fold
from ingest.growth import GROWN
from ingest.nil_clusters import affiliations, name_key
from ingest.similarity import similarity
from ingest.values import Mention

_BATCH = 500  # passages read at a time
_FEW = 64  # changed names up to which a passage is first searched for them as plain text

Version = tuple[str, int]
"""A document and a version of it."""
CatalogueOf = Callable[[Session, str], Catalogue]
"""Gives a tenant's catalogue."""


def relink(run: JobRun, catalogue_of: CatalogueOf) -> int | None:
    """Link anew every document version that has a name changed since the job was queued.

    Returns:
        How many documents were linked; None when somebody asked to stop.
    """
    since = datetime.fromisoformat(run.args["since"])
    with run.db.read() as session:
        changed = _changed(session, run.tenant_id, since)
    found = _affected(run, changed)
    if found is None:
        return None
    affected = sorted(found)
    for number, (document_id, version) in enumerate(affected):
        run.progress(number, len(affected))
        if run.cancelled:
            return None
        _relink_one(run, document_id, version, catalogue_of)
    run.progress(len(affected), len(affected))
    return len(affected)


def relink_version(
    title: str,
    passages: Sequence[Passage],
    recognised: Sequence[Mention],
    catalogue: Catalogue,
    *,
    document_id: str,
) -> tuple[list[LinkedMention], list[frozenset[str]]]:
    """Mentions of a version with their links, and the organisations beside each person.

    Args:
        title: the document's.
        passages: all of the version, in order.
        recognised: what the recogniser found in them.
        catalogue: the tenant's.
        document_id: for names that a person split by document.
    """
    mentions = with_short_forms(passages, with_catalogue_names(passages, recognised, catalogue))
    linked = link(
        mentions,
        {p.id: Context("\n".join((title, *p.heading_path, p.text))) for p in passages},
        catalogue,
        document_id=document_id,
        threshold=get_settings().ingest.link_threshold,
        similarity=similarity,
    )
    return linked, affiliations(passages, linked)


def _relink_one(run: JobRun, document_id: str, version: int, catalogue_of: CatalogueOf) -> None:
    with run.db.read() as session:
        found = repository.passages_to_link(session, Scope.internal(run.tenant_id), document_id, version)
        recognised = _recognised(session, document_id, version)
        catalogue = catalogue_of(session, run.tenant_id)
    if found is None or not found[1]:  # deleted, or replaced by a newer version
        return
    title, passages = found
    linked, beside = relink_version(title, passages, recognised, catalogue, document_id=document_id)
    with run.db.write() as session:
        writing.write_links(session, document_id, version, linked, beside)


def _changed(session: Session, tenant_id: str, since: datetime) -> Catalogue:
    """A catalogue of the changed aliases alone."""
    rows = session.execute(
        select(EntityAliasRow.entity_id, EntityAliasRow.folded, EntityAliasRow.alias)
        .join(EntityRow, EntityRow.id == EntityAliasRow.entity_id)
        .where(
            EntityAliasRow.tenant_id == tenant_id,
            EntityAliasRow.changed_at >= since,
            EntityRow.provenance != GROWN,
        )
    ).all()
    return Catalogue.build(
        [CatalogueEntity(r.entity_id, "", r.alias) for r in rows],
        [Alias(r.entity_id, r.folded, r.alias) for r in rows],
    )


def _affected(run: JobRun, changed: Catalogue) -> set[Version] | None:
    """Versions with a changed name in their text or among their mentions; None when asked to stop.

    How many there are is not known before the end, so progress tells only that the job is alive.
    """
    found: set[Version] = set()
    names = [alias.folded for alias in changed.names] if len(changed) <= _FEW else []
    for batch in _passages(run) if len(changed) else ():
        run.progress(0, 0)
        if run.cancelled:
            return None
        for document_id, version, text in batch:
            if (document_id, version) not in found and _holds(text, names) and changed.find(text):
                found.add((document_id, version))
    mentioned = run.args.get("entity_ids", [])
    with run.db.read() as session:
        # A blocked entity has lost its mentions; they are found by its names.
        own = session.scalars(select(EntityAliasRow.alias).where(EntityAliasRow.entity_id.in_(mentioned)))
        keys = sorted({name_key(alias) for alias in (*(a.spelling for a in changed.names), *own)})
        for at in range(0, len(keys), _BATCH):
            found.update(
                (document_id, version)
                for document_id, version in session.execute(
                    select(MentionRow.document_id, MentionRow.version)
                    .where(MentionRow.tenant_id == run.tenant_id, MentionRow.key.in_(keys[at : at + _BATCH]))
                    .distinct()
                )
            )
        found.update(
            (document_id, version)
            for document_id, version in session.execute(
                select(MentionRow.document_id, MentionRow.version)
                .where(MentionRow.tenant_id == run.tenant_id, MentionRow.entity_id.in_(mentioned))
                .distinct()
            )
        )
    return found


def _holds(text: str, names: Sequence[str]) -> bool:
    """Whether one of a few names may stand in a text; with no names to try, any text may."""
    if not names:
        return True
    folded = search_fold(text)
    return any(name in folded for name in names)


def _passages(run: JobRun) -> Iterator[list[tuple[str, int, str]]]:
    """Document, version and text of all passages of the tenant, in batches."""
    last = 0
    while True:
        with run.db.read() as session:
            rows = session.execute(
                select(PassageRow.id, PassageRow.document_id, PassageRow.version, PassageRow.text)
                .where(PassageRow.tenant_id == run.tenant_id, PassageRow.id > last)
                .order_by(PassageRow.id)
                .limit(_BATCH)
            ).all()
        if not rows:
            return
        last = rows[-1].id
        yield [(r.document_id, r.version, r.text) for r in rows]


def _recognised(session: Session, document_id: str, version: int) -> list[Mention]:
    """The recogniser's mentions as stored; those that only a catalogue knew are found again."""
    return [
        Mention(r.passage_id, Span(r.start, r.end), r.surface, r.type)
        for r in session.scalars(
            select(MentionRow)
            .where(
                MentionRow.document_id == document_id, MentionRow.version == version, MentionRow.type != ""
            )
            .order_by(MentionRow.start, MentionRow.id)
        )
    ]
