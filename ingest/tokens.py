"""Token counts by the encoder's own tokenizer, in batches, without loading a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import regex

from core.errors import ConfigError

TokenCounter = Callable[[Sequence[str]], Sequence[int]]
"""Maps texts to their token counts, special tokens not included."""

_ROUGH_TOKEN = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]|[\p{L}\p{M}]{1,6}|\p{N}{1,3}|[^\s\p{L}\p{N}]"
)


@lru_cache(maxsize=4)
def tokenizer_counter(pack: Path) -> TokenCounter:
    """Counter of the pack in folder `pack` (it holds `tokenizer.json`).

    Raises:
        ConfigError: the folder holds no tokenizer.
    """
    file = pack / "tokenizer.json"
    if not file.is_file():
        raise ConfigError(f"no tokenizer at {file}; fetch the encoder pack with `geo models fetch`")
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for at in range(0, len(texts), 1024):  # bounds the memory of the encodings
            batch = tokenizer.encode_batch_fast(list(texts[at : at + 1024]), add_special_tokens=False)
            counts.extend(len(encoding.ids) for encoding in batch)
        return counts

    return count


def rough_counter(texts: Sequence[str]) -> list[int]:
    """Counts without a tokenizer: a CJK character, six letters, three digits or a mark are one token.

    For `geo parse` on a machine without packs; on mixed text it stays within about a third of e5's count.
    """
    return [sum(1 for _ in _ROUGH_TOKEN.finditer(text)) for text in texts]
