"""What `geo bench rebuild` asks over: made passages in all tiers, of two tenants, with the encoder's vectors.

A thousand texts are encoded; the others are those with another number at their end and a little noise on the
vector, so that a large index costs no hour of encoding. Token vectors are those of the text before it. What
was prepared is kept (`<cache>/bench-rebuild`) until the code that makes it changes; each run asks a copy.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.models import DocumentRow, PassageRow, TenantRow
from core.settings import cache_home, get_settings
from core.types import Role, Scope, Tier
from retrieval.measure import SEED
from retrieval.measure_texts import made_passages, made_questions
from retrieval.scratch import ScratchStack, scratch_stack

_ENCODED = 1000
_PER_DOCUMENT = 10
_NOISE = 0.25  # of a vector's length
_QUESTIONS = 400
_FOREIGN = "ten_other"
_CORPUS = "corpus.json"
_BATCH = 1000  # documents to an import
_TOKENS = 5000  # passages whose token vectors go into one transaction
_HERE = Path(__file__).parent
_MADE_BY = (
    "measure_rebuild_corpus.py", "measure_texts.py", "bulk.py", "analyzer.py", "token_codec.py",
    "segments.py", "structures.py", "lexical_writer.py",
)  # fmt: skip
"""Not the tables: what was kept is migrated like any installation."""
Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is there to be found.

    Attributes:
        questions: a few words of a passage each.
        foreign: documents of the other tenant.
        shard_bytes: the vectors and ids of all tiers in memory, once.
    """

    questions: list[str]
    foreign: set[str]
    shard_bytes: int


@contextmanager
def prepared(size: int, note: Note) -> Generator[tuple[ScratchStack, Corpus]]:
    """A scratch installation with the corpus; made where it is missing, removed at the end."""
    kept = cache_home() / "bench-rebuild" / f"{size}-{_key()}"
    if not (kept / _CORPUS).is_file():
        for old in kept.parent.glob(f"{size}-*"):
            shutil.rmtree(old, ignore_errors=True)
        with scratch_stack(kept) as stack:
            corpus = prepare(stack, size, note)
            stack.upload(())  # notes what a later run needs
        fields = {
            "questions": corpus.questions,
            "foreign": sorted(corpus.foreign),
            "shard": corpus.shard_bytes,
        }
        (kept / _CORPUS).write_text(json.dumps(fields), encoding="utf-8")
    folder = Path(tempfile.mkdtemp(prefix="geo-bench-"))
    try:
        note("corpus: copied from what is kept")
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        fields = json.loads((folder / _CORPUS).read_text(encoding="utf-8"))
        with scratch_stack(folder) as stack:
            yield stack, Corpus(fields["questions"], set(fields["foreign"]), fields["shard"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _key() -> str:
    digest = hashlib.sha256(get_settings().packs.encoder.encode())
    for name in _MADE_BY:
        digest.update((_HERE / name).read_bytes())
    return digest.hexdigest()[:16]


class _Progress:
    """Tells how far one step is and how long it will take."""

    def __init__(self, note: Note, what: str, total: int) -> None:
        self._note, self._what, self._total = note, what, total
        self._begun, self._told = time.monotonic(), 0.0

    def at(self, done: int) -> None:
        """So many are done."""
        now = time.monotonic()
        if done and (now - self._told > 5 or done >= self._total):
            self._told = now
            left = (now - self._begun) * (self._total - done) / done
            self._note(f"corpus: {self._what} {done} of {self._total}, {left:.0f} s left")


def prepare(stack: ScratchStack, size: int, note: Note) -> Corpus:
    """Fill the index; every fifth document is another tenant's, every fifth warm, every fifth cold."""
    from ingest.encode import encoder_name, get_encoder
    from ingest.service import create_collection
    from retrieval import index_repository, placing, placing_job
    from retrieval.bulk import BulkDocument, import_documents
    from retrieval.embed import encode_for_index
    from retrieval.writer import VectorSpace, index_writer

    space = VectorSpace(encoder_name(), get_encoder().dimension)
    base = made_passages(min(_ENCODED, size), seed=SEED)
    note(f"corpus: encoding {len(base)} texts")
    encoded = encode_for_index(base)
    noise = np.random.default_rng(SEED)
    other = Scope(_FOREIGN, None, "bench", Role.OPERATOR)
    with stack.db.write() as session:
        session.add(TenantRow(id=_FOREIGN, name="other"))
        session.flush()
        foreign_collection = create_collection(session, other, name="theirs").id

    def document(number: int) -> BulkDocument:
        rows = [(number * _PER_DOCUMENT + n) % len(base) for n in range(_PER_DOCUMENT)]
        shift = noise.standard_normal((_PER_DOCUMENT, space.dimension)).astype(np.float32)
        vectors = encoded.vectors[rows] + _NOISE * shift / np.linalg.norm(shift, axis=1, keepdims=True)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return BulkDocument(f"made {number}", [f"{base[row]} {number}" for row in rows], vectors)

    count = max(5, size // _PER_DOCUMENT)
    importing = _Progress(note, "documents", count)
    for start in range(0, count, _BATCH):
        numbers = range(start, min(count, start + _BATCH))
        own = [document(n) for n in numbers if n % 5]
        import_documents(stack.db, stack.scope, stack.collection_id, own, space)
        theirs = [document(n) for n in numbers if n % 5 == 0]
        import_documents(stack.db, other, foreign_collection, theirs, space)
        importing.at(min(count, start + _BATCH))
    with stack.db.read() as session:
        rows = session.query(DocumentRow.id, DocumentRow.name, DocumentRow.tenant_id).all()
        passages = session.query(PassageRow.id, PassageRow.ordinal, DocumentRow.name).join(
            DocumentRow, DocumentRow.id == PassageRow.document_id
        )
        tokens = [
            (passage_id, encoded.tokens[(int(name.split()[1]) * _PER_DOCUMENT + ordinal) % len(base)])
            for passage_id, ordinal, name in passages
        ]
    storing = _Progress(note, "token vectors", len(tokens))
    for start in range(0, len(tokens), _TOKENS):
        with stack.db.write() as session:
            index_repository.store_tokens(session, space.model, tokens[start : start + _TOKENS])
        storing.at(min(len(tokens), start + _TOKENS))
    for tier, rest in ((Tier.WARM, 1), (Tier.COLD, 2)):
        with stack.db.write() as session:
            placing.want(session, [i for i, name, _ in rows if int(name.split()[1]) % 5 == rest], tier)
    moving, moved = _Progress(note, "passages moved", 2 * len(tokens) // 5), 0
    with index_writer(stack.db, space) as writer:
        while placing_job.move_wanted(writer):
            moved += placing_job.BATCH_PASSAGES
            moving.at(moved)
    return Corpus(
        made_questions(base, _QUESTIONS, seed=SEED),
        {i for i, _, tenant in rows if tenant == _FOREIGN},
        len(tokens) * (4 * space.dimension + 8),
    )
