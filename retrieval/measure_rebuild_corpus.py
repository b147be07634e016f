"""What `geo bench rebuild` asks over: made passages in all tiers, of two tenants, with the encoder's vectors.

A thousand texts are encoded; the others are those with another number at their end and a little noise on the
vector, so that a large index costs no hour of encoding. Token vectors are those of the text before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.models import DocumentRow, PassageRow, TenantRow
from core.types import Role, Scope, Tier
from retrieval.measure import SEED
from retrieval.measure_texts import made_passages, made_questions
from retrieval.scratch import ScratchStack

_ENCODED = 1000
_PER_DOCUMENT = 10
_NOISE = 0.25  # of a vector's length
_QUESTIONS = 400
_FOREIGN = "ten_other"
_BATCH = 5000


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


def prepare(stack: ScratchStack, size: int) -> Corpus:
    """Fill the index; every fifth document is another tenant's, every fifth warm, every fifth cold."""
    from ingest.encode import encoder_name, get_encoder
    from ingest.service import create_collection
    from retrieval import index_repository, placing, placing_job
    from retrieval.bulk import BulkDocument, import_documents
    from retrieval.embed import encode_for_index
    from retrieval.writer import VectorSpace, index_writer

    space = VectorSpace(encoder_name(), get_encoder().dimension)
    base = made_passages(min(_ENCODED, size), seed=SEED)
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
    for start in range(0, count, _BATCH):
        numbers = range(start, min(count, start + _BATCH))
        own = [document(n) for n in numbers if n % 5]
        import_documents(stack.db, stack.scope, stack.collection_id, own, space)
        theirs = [document(n) for n in numbers if n % 5 == 0]
        import_documents(stack.db, other, foreign_collection, theirs, space)
    with stack.db.read() as session:
        rows = session.query(DocumentRow.id, DocumentRow.name, DocumentRow.tenant_id).all()
        passages = session.query(PassageRow.id, PassageRow.ordinal, DocumentRow.name).join(
            DocumentRow, DocumentRow.id == PassageRow.document_id
        )
        tokens = [
            (passage_id, encoded.tokens[(int(name.split()[1]) * _PER_DOCUMENT + ordinal) % len(base)])
            for passage_id, ordinal, name in passages
        ]
    for start in range(0, len(tokens), _BATCH):
        with stack.db.write() as session:
            index_repository.store_tokens(session, space.model, tokens[start : start + _BATCH])
    for tier, rest in ((Tier.WARM, 1), (Tier.COLD, 2)):
        with stack.db.write() as session:
            placing.want(session, [i for i, name, _ in rows if int(name.split()[1]) % 5 == rest], tier)
    with index_writer(stack.db, space) as writer:
        while placing_job.move_wanted(writer):
            pass
    return Corpus(
        made_questions(base, _QUESTIONS, seed=SEED),
        {i for i, _, tenant in rows if tenant == _FOREIGN},
        len(tokens) * (4 * space.dimension + 8),
    )
