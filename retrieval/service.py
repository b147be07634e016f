"""The light door of retrieval for the HTTP process: queries and searches."""

from __future__ import annotations

from retrieval.queries import SearchHit, SearchResult, get_search_result, submit_query

__all__ = ["SearchHit", "SearchResult", "get_search_result", "submit_query"]
