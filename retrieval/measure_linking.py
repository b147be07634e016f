"""What linking adds to ingest: `python -m retrieval.measure_linking`, a part of `geo bench ingest`.

Documents of ten passages walk through every stage, English ones, Chinese ones and both, in turn, in one
process that has loaded its models before. The stage that links is taken whole, with its job, its transactions
and its look for near-duplicates, against all other stages together.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from core.types import Lang
from core.worker import Task
from ingest.lang import language_of
from retrieval.measure_ingest_child import cpu_seconds, encode_all
from retrieval.measure_texts import made_passages
from retrieval.scratch import CorpusDocument, ScratchStack, scratch_stack

_PASSAGES = 10  # of a document
_WARM = 2  # documents of a language before anything is counted, so that models are loaded
_EVERY = 16  # words between two names, about as in encyclopaedias and news
_GROUPS = ("en", "zh", "both")
_SURNAMES = "王李张刘陈杨赵黄周吴"
_GIVEN = "伟芳娜敏静强磊军洋勇艳杰涛明超秀霞平刚桂"
Figures = dict[str, Any]


def named_passages(count: int, *, seed: int) -> list[str]:
    """Made passages, English and Chinese in turn, with names of people, firms and towns among the words."""
    source = random.Random(seed)  # noqa: S311 - filler text, no secret
    return [
        _with_names(passage, source, zh=number % 2 == 1)
        for number, passage in enumerate(made_passages(count, seed=seed))
    ]


def _with_names(passage: str, source: random.Random, *, zh: bool) -> str:
    sentences = passage.split("。" if zh else ". ")
    named: list[str] = []
    for sentence in sentences:
        words = [sentence[i : i + 2] for i in range(0, len(sentence), 2)] if zh else sentence.split(" ")
        words[:1] = [word.capitalize() for word in words[:1]]
        for at in range(source.randrange(_EVERY), len(words), _EVERY):
            words[at] = _zh_name(source) if zh else _en_name(source)
        named.append(("" if zh else " ").join(words))
    return ("。" if zh else ". ").join(named)


def _en_name(source: random.Random) -> str:
    first, last = (
        source.choice("BDFGHLMNRST") + source.choice(("arl", "ent", "oran", "ilda", "ester", "umar"))
        for _ in range(2)
    )
    return source.choice((f"{first} {last}", f"{last} Corporation", f"the University of {last}", last))


def _zh_name(source: random.Random) -> str:
    person = source.choice(_SURNAMES) + "".join(source.choices(_GIVEN, k=2))
    word = "".join(source.choices(_GIVEN + "远海山云河石光", k=2))
    return source.choice((person, f"{word}科技有限公司", f"{word}市", f"{word}大学", person))


def measure_linking(passages: str, documents: str, rounds: str) -> Figures:
    """Processor seconds of linking over those of all other stages.

    Args:
        passages: JSON lines of strings.
        documents: per round and group.
        rounds: each goes through the groups, the next one beginning with another.

    Returns:
        Per group that has texts: the ratio of each round.
    """
    with Path(passages).open(encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]
    given = {group: documents_of(texts, group) for group in _GROUPS}
    ratios: dict[str, list[float]] = {group: [] for group in _GROUPS}
    with scratch_stack() as stack:
        stack.ingest([d for group in ("en", "zh") for d in _taken(given[group], _WARM)])
        for number in range(int(rounds)):
            for shift in range(len(_GROUPS)):
                group = _GROUPS[(number + shift) % len(_GROUPS)]
                some = _taken(given[group], int(documents))
                if some:
                    ratios[group].append(_linking_extra(stack, some))
    return {group: values for group, values in ratios.items() if values}


def documents_of(texts: Sequence[str], group: str) -> Iterator[CorpusDocument]:
    """Documents of ten passages of one language, or of the two in turn; no text is used twice in a group.

    As for the recogniser, what is not Chinese is `en`.
    """
    by_language: dict[str, list[str]] = {"en": [], "zh": []}
    for text in texts:
        by_language["zh" if language_of(text) is Lang.ZH else "en"].append(text)
    if group != "both":
        yield from _documents(by_language[group], group)
        return
    # From the other end, so that they are not those of the other groups.
    sides = [_documents(rows[::-1], f"both {language}") for language, rows in by_language.items()]
    for pair in zip(*sides, strict=False):
        yield from pair


def _documents(rows: Sequence[str], group: str) -> Iterator[CorpusDocument]:
    for at in range(0, len(rows) - _PASSAGES + 1, _PASSAGES):
        text = "\n\n".join(rows[at : at + _PASSAGES])
        yield CorpusDocument(f"{group}{at}", f"report {group} {at}", f"{text}\n")


def _taken(documents: Iterator[CorpusDocument], count: int) -> list[CorpusDocument]:
    return list(islice(documents, count))


def _linking_extra(stack: ScratchStack, documents: Sequence[CorpusDocument]) -> float:
    others = cpu_seconds(lambda: stack.upload(documents))
    others += cpu_seconds(lambda: stack.run_jobs([Task.NORMALIZE]))
    linking = cpu_seconds(lambda: stack.run_jobs([Task.DISAMBIGUATE]))
    others += cpu_seconds(lambda: encode_all(stack))
    others += cpu_seconds(lambda: stack.run_jobs([Task.INDEX]))
    return round(linking / others, 4)


if __name__ == "__main__":
    print(json.dumps(measure_linking(*sys.argv[1:])))  # noqa: T201 - read by `measure_ingest`
