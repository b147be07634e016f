"""Languages that model families write. Pure."""

from __future__ import annotations

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


def known_languages(model: str) -> tuple[str, ...]:
    """Languages of the model's family; an unknown family counts as writing both."""
    lowered = model.lower()
    for family, languages in _FAMILY_LANGUAGES:
        if family in lowered:
            return languages
    return ("en", "zh")
