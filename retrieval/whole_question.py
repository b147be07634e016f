"""A question as it is searched for: what it leaves to the turns before it is filled in by rules."""

from __future__ import annotations

from core.db import Database
from core.settings import get_settings
from retrieval.catalogues import catalogue_of
from retrieval.entity_names import named_in
from retrieval.followup import Rewritten, Turns, rewritten


def whole_question(db: Database, tenant_id: str, question: str, history: Turns) -> Rewritten:
    """The question, made whole; names that the tenant's catalogue knows count first.

    Args:
        db: for one short read for each turn that is looked at.
        tenant_id: whose catalogue.
        question: as asked.
        history: `{role, content}`, oldest first.
    """
    if not history or get_settings().retrieval.rewrite == "off":
        return Rewritten(question)

    def names(text: str) -> list[str]:
        with db.read() as session:
            found = named_in(session, tenant_id, text, catalogue_of(session, tenant_id))
        return [text[name.start : name.end] for name in found]

    return rewritten(question, history, names)
