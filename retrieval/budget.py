"""The token budget that evidence may fill, and the generator's own token counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.errors import ConfigError
from core.packs import pack_path
from core.settings import RetrievalSettings, get_settings
from ingest.tokens import tokenizer_counter


def context_budget(plan: Mapping[str, Any] | None, settings: RetrievalSettings) -> int:
    """Tokens for evidence: what the published engine plan grants, else the configured default."""
    granted = (plan or {}).get("context_budget")
    return int(granted) if granted else settings.default_context_budget


def token_counter(plan: Mapping[str, Any] | None) -> Callable[[str], int]:
    """Counter by the generator's tokenizer, without loading a model.

    Where the pack is not on this machine (the engine runs elsewhere) a text counts as many tokens as it has
    UTF-8 bytes: a byte-level tokenizer never makes more, so the prompt cannot overflow.
    """
    pack_id = (plan or {}).get("tokenizer") or get_settings().packs.generator
    try:
        count = tokenizer_counter(pack_path(str(pack_id)))
    except ConfigError:
        return lambda text: len(text.encode())
    return lambda text: count([text])[0]
