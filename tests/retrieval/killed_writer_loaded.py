"""Loaded once by the process that others are forked from; no database, no threads."""

import celery

import core.db
import retrieval.build_task
import retrieval.rebuild
import retrieval.tiers
import retrieval.writer
import tests.retrieval.indexing

__all__ = ["celery", "core", "retrieval", "tests"]
