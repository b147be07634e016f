"""Log entries → index files: the one place that changes vectors and lexical index together.

`apply_entries` is the whole meaning of the log. Indexing, deleting, the tail of a rebuild and a rollback all
go through it, so they agree. Applying an entry twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.db import Database
from core.types import Tier
from retrieval import index_repository as repository
from retrieval.index_repository import LogEntry
from retrieval.lexical_store import change_lexical
from retrieval.manifest import IndexFolder, Manifest
from retrieval.tier_writer import Layout, open_tier


def apply_entries(
    db: Database,
    folder: IndexFolder,
    manifest: Manifest,
    entries: Sequence[LogEntry],
    layout: Layout,
    *,
    model: str,
    dimension: int,
) -> Manifest:
    """Bring index files from `manifest.applied_seq` to the last of `entries`.

    The lexical index is committed before this returns; the manifest is neither numbered nor stored.

    Returns:
        The manifest of the changed files, with the generation of the one given.

    Raises:
        DamagedIndex: a file that the manifest names is missing or does not match.
    """
    final: dict[int, str] = {}
    for entry in entries:
        for passage_id in entry.passage_ids:
            final[passage_id] = entry.op
    adds = [i for i, op in final.items() if op == "add"]
    deletes = [i for i, op in final.items() if op == "delete"]
    hot = open_tier(
        folder.tier(Tier.HOT.value), Tier.HOT, manifest.tier(Tier.HOT.value),
        dimension=dimension, layout=layout,
    )  # fmt: skip
    hot.delete(deletes)
    missing = sorted(set(adds) - hot.present(adds))
    with db.read() as session:
        vectors = repository.vector_rows(session, missing, model)
    hot.add(vectors)
    ref = hot.commit()
    with db.read() as session:  # texts are read as they are written: a thousand documents may be large
        texts = repository.lexical_documents(session, adds)
        lexical = change_lexical(folder.lexical, manifest.lexical, texts, deletes)
    return replace(
        manifest,
        applied_seq=entries[-1].seq if entries else manifest.applied_seq,
        model=model,
        dimension=dimension,
        lexical=lexical,
    ).with_tier(Tier.HOT.value, ref)
