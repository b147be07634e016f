"""Languages that models write."""

from __future__ import annotations

from collections.abc import Sequence

from core.packs import pack_languages

# Languages that a model family writes well enough for `free`; from the publishers' model cards.
_FAMILY_LANGUAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("smollm", ("en",)),
    ("tinyllama", ("en",)),
    ("phi-", ("en",)),
    ("qwen", ("en", "zh")),
    ("glm", ("en", "zh")),
    ("yi-", ("en", "zh")),
    ("internlm", ("en", "zh")),
    ("deepseek", ("en", "zh")),
    ("minicpm", ("en", "zh")),
)


def written_languages(model: str, planned: Sequence[str] = ()) -> tuple[str, ...]:
    """Languages that `model` writes: as its plan says where there is one, else its pack, else its family."""
    return tuple(planned) or pack_languages(model) or known_languages(model)


def known_languages(model: str) -> tuple[str, ...]:
    """Languages of the model's family; an unknown family counts as writing both."""
    lowered = model.lower()
    for family, languages in _FAMILY_LANGUAGES:
        if family in lowered:
            return languages
    return ("en", "zh")
