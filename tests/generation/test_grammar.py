from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import xgrammar

from core.errors import InvalidInput
from generation.grammar import free_grammar


@pytest.fixture(scope="module")
def tokenizer(generator_pack: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(generator_pack)


@pytest.fixture(scope="module")
def compiler(tokenizer: Any) -> Any:
    return xgrammar.GrammarCompiler(xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=49152))


def accepts(compiler: Any, tokenizer: Any, text: str, *, markers: list[int], max_sentences: int) -> bool:
    compiled = compiler.compile_grammar(free_grammar(markers, max_sentences=max_sentences))
    matcher = xgrammar.GrammarMatcher(compiled)
    ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
    return all(matcher.accept_token(i) for i in ids)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("The tower is 3.5 m tall. [2]", True),
        ("The tower is tall. [2] It opened in 1889! [1]", True),
        ("We met Dr. Smith there. [1]", True),
        ("塔高三百三十米。[2]它建于1889年。[1]", True),
        ("The tower is tall. [3]", False),
        ("The tower is tall.", False),
        ("The tower is tall [2]", False),
        ("The tower. It is tall. [2]", False),
        ("[1]", False),
        ("One. [1] Two. [1] Three. [1]", False),
        ("The tower\nis tall. [1]", False),
    ],
)
def test_only_sentences_with_an_allowed_marker_are_accepted(
    compiler: Any, tokenizer: Any, text: str, allowed: bool
) -> None:
    assert accepts(compiler, tokenizer, text, markers=[1, 2], max_sentences=2) is allowed


def test_finding_the_allowed_tokens_costs_almost_nothing(compiler: Any, tokenizer: Any) -> None:
    compiled = compiler.compile_grammar(free_grammar([1, 2, 3, 4], max_sentences=20))
    matcher = xgrammar.GrammarMatcher(compiled)
    mask = xgrammar.allocate_token_bitmask(1, 49152)
    text = "The pump house at the north gate, built in 1812.5, holds pumps of one make. [2] " * 8
    laps: list[float] = []
    for token in tokenizer.encode(text.strip(), add_special_tokens=False):
        begun = time.perf_counter()
        matcher.fill_next_token_bitmask(mask)
        laps.append(time.perf_counter() - begun)
        assert matcher.accept_token(token)
    assert sorted(laps)[len(laps) // 2] < 0.001  # the slow shapes took 40 ms and more


def test_a_grammar_out_of_bounds_is_refused_before_the_engine() -> None:
    for markers, sentences in (([], 1), ([0], 1), ([1000], 1), (range(1, 502), 1), ([1], 0), ([1], 21)):
        with pytest.raises(InvalidInput):
            free_grammar(list(markers), max_sentences=sentences)
