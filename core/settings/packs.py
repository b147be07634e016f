"""Settings of the model packs, and where they are kept."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field

from core.settings.section import Section


def cache_home() -> Path:
    """Where what can be fetched or made again is kept: model packs, what `geo bench` prepared."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geo-engine"


class PackSettings(Section):
    """Model packs: public ids, and the folder they are unpacked in."""

    folder: Path = Field(
        default_factory=lambda: cache_home() / "packs", description="where geo models fetch puts them"
    )
    encoder: str = Field(
        default="intfloat/multilingual-e5-small",
        description="of a new index; an existing one keeps its own until a rebuild changes it",
    )
    generator: str = Field(
        default="HuggingFaceTB/SmolLM2-135M-Instruct", description="the model that writes answers"
    )
    reranker: str = Field(
        default="", description="a cross-encoder that reads question and passage together; empty: none"
    )
    nli: str = Field(
        default="", description="an entailment model that verdicts ask as well; empty: the rules alone"
    )
    spacy_en: str = Field(default="en_core_web_sm", description="an en_core_web_* package; finds names")
    spacy_zh: str = Field(default="", description="a zh_core_web_* package; empty: jieba's tags")
