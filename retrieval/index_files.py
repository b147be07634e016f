"""Log entries → index files: the one place that changes vectors and lexical index together.

`apply_entries` is the whole meaning of the log. Indexing, deleting, moving between tiers, the tail of a
rebuild and a rollback all go through it, so they agree. Applying an entry twice changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.db import Database
from core.types import Tier
from retrieval import index_repository as repository
from retrieval.files import DamagedIndex
from retrieval.index_repository import LogEntry
from retrieval.lexical_store import LexicalBuild, change_lexical, is_of_before
from retrieval.manifest import LEXICAL, PARTS, IndexFolder, Manifest
from retrieval.tier_writer import Layout, open_tier
from retrieval.vector_tier import TierRef

log = logging.getLogger(__name__)
_CONVERTED = 1000  # passages per read


@dataclass(slots=True)
class Outcome:
    """What a run of log entries amounts to.

    Attributes:
        tiers: passages that are in a tier afterwards, by tier; each in one.
        deleted: passages that are nowhere afterwards.
        added: passages whose words have to be looked at; a move leaves them as they are.
    """

    tiers: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    deleted: set[int] = field(default_factory=set[int])
    added: set[int] = field(default_factory=set[int])

    @classmethod
    def of(cls, entries: Sequence[LogEntry]) -> Outcome:
        """The last entry of a passage says where it is."""
        last: dict[int, str | None] = {}
        added: set[int] = set()
        for entry in entries:
            for passage_id in entry.passage_ids:
                last[passage_id] = None if entry.op == "delete" else entry.tier
            if entry.op == "add":
                added.update(entry.passage_ids)
        outcome = cls(deleted={i for i, tier in last.items() if tier is None})
        for passage_id, tier in last.items():
            if tier is not None:
                outcome.tiers.setdefault(tier, set()).add(passage_id)
        outcome.added = added - outcome.deleted
        return outcome

    def elsewhere(self, tier: str) -> set[int]:
        """Passages that must not be in this tier."""
        others = (ids for name, ids in self.tiers.items() if name != tier)
        return self.deleted.union(*others)


def apply_entries(
    db: Database,
    folder: IndexFolder,
    manifest: Manifest,
    entries: Sequence[LogEntry],
    layout: Layout,
    *,
    model: str,
    dimension: int,
    parts: Sequence[str] = PARTS,
    strict: bool = False,
) -> Manifest:
    """Bring index files from `manifest.applied_seq` to the last of `entries`.

    The lexical index is committed before this returns; the manifest is neither numbered nor stored.

    Args:
        db: vectors and texts.
        folder: where the files are.
        manifest: what they are now.
        entries: what happened since, in order.
        layout: how segments are cut.
        model: the encoder whose vectors are indexed.
        dimension: its width.
        parts: what `manifest` holds; a build of one part leaves the others alone.
        strict: raise for damaged files. Otherwise the part begins anew with these entries, and the manifest
            says that it is refused until it is rebuilt.

    Returns:
        The manifest of the changed files, with the generation of the one given.

    Raises:
        DamagedIndex: `strict`, and a file that the manifest names is missing or does not match.
    """
    outcome = Outcome.of(entries)
    changed = replace(
        manifest,
        applied_seq=entries[-1].seq if entries else manifest.applied_seq,
        model=model,
        dimension=dimension,
    )
    for part in parts:
        change = _change_words if part == LEXICAL else _change_tier
        try:
            changed = change(db, folder, changed, part, outcome, layout)
        except DamagedIndex as error:
            if strict:
                raise
            log.error("part_damaged", extra={"part": part, "detail": error.detail})
            emptied = replace(changed, refused={**changed.refused, part: error.detail})
            emptied = replace(emptied, lexical="") if part == LEXICAL else emptied.with_tier(part, TierRef())
            changed = change(db, folder, emptied, part, outcome, layout)
    return changed


def _change_tier(
    db: Database, folder: IndexFolder, manifest: Manifest, part: str, outcome: Outcome, layout: Layout
) -> Manifest:
    wanted, ref = outcome.tiers.get(part, set[int]()), manifest.tier(part)
    if not wanted and not ref.segments:
        return manifest
    tier = open_tier(folder.tier(part), Tier(part), ref, dimension=manifest.dimension, layout=layout)
    tier.delete(sorted(outcome.elsewhere(part)))
    missing = sorted(wanted - tier.present(sorted(wanted)))
    with db.read() as session:
        vectors = repository.vector_rows(session, missing, manifest.model)
    tier.add(vectors)
    return manifest.with_tier(part, tier.commit())


def _change_words(
    db: Database, folder: IndexFolder, manifest: Manifest, _part: str, outcome: Outcome, _layout: Layout
) -> Manifest:
    if manifest.lexical and not outcome.added and not outcome.deleted:
        return manifest  # a move leaves the words where they are
    if manifest.lexical and is_of_before(folder.lexical, manifest.lexical):
        return replace(manifest, lexical=_converted(db, folder, outcome))
    with db.read() as session:  # texts are read as they are written: a thousand documents may be large
        texts = repository.lexical_documents(session, sorted(outcome.added))
        name = change_lexical(folder.lexical, manifest.lexical, texts, sorted(outcome.deleted))
    return replace(manifest, lexical=name)


def _converted(db: Database, folder: IndexFolder, outcome: Outcome) -> str:
    """An index of this release with what one of the release before held, which cannot be added to.

    Once per installation, by the first publish after an upgrade; the old one is served meanwhile.
    """
    log.info("lexical_index_converted")
    with LexicalBuild(folder.lexical) as build:
        taken: set[int] = set()
        after = repository.START
        while True:
            with db.read() as session:
                batch = repository.live_places(session, after, _CONVERTED)
                ids = {i for _, _, i in batch} - outcome.deleted
                build.change(repository.lexical_documents(session, sorted(ids)))
            taken |= ids
            if len(batch) < _CONVERTED:
                break
            after = batch[-1]
        with db.read() as session:
            build.change(repository.lexical_documents(session, sorted(outcome.added - taken)))
        return build.seal()
