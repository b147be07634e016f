"""The beat's entry to `ingest.reprocessing`, for the maintenance worker."""

from __future__ import annotations

import logging

from core.db import get_database
from core.worker import TOP_UP, get_app
from ingest.reprocessing import top_up

log = logging.getLogger(__name__)


@get_app().task(name=TOP_UP)
def top_up_task() -> None:
    """Give every walk under way its next documents."""
    given = top_up(get_database())
    if given:
        log.info("reprocess_topped_up", extra={"documents": given})
