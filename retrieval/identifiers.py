"""Codes of a question: model numbers, versions, file names, error codes, order numbers. Pure.

A code names one thing. A passage that lacks it is about another thing, however near its words are, and an
encoder sees hardly any difference between `V0122` and `V0123`. So codes are found by their own rule, looked
up by themselves (`Route.CODE`), and compared as written but for case, width and the marks between parts:
`XY-2080`, `xy2080` and `XY_2080` are one code.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ingest.fold import search_fold
from retrieval.analyzer import word_token

MAX_CODES = 8  # of one question
COMMON = 64  # a code in more passages than this names a subject, which words and vectors find as well
CODE_WEIGHT = 16.0
"""What a code in one passage alone adds to a sum of standardized scores: more than those can differ by."""

_JOINTS = r"\-_./:@+#"
_RUN = re.compile(rf"(?<![A-Za-z0-9])[A-Za-z0-9]+(?:[{_JOINTS}]+[A-Za-z0-9]+)*")
_GROUPS = re.compile(r"[a-z]+|[0-9]+")
_UNIT_WORDS = """
st nd rd th s d h m k b g l t w v a c f x am pm bc ad mm cm dm km kg mg ml ms hz khz mhz ghz kb mb gb tb bn mn
kw kv mw mah px pt yr min hr sec pct percent rmb usd eur ft mi lb oz kpa mpa
"""
_ENDS = """
sh py js ts json yaml yml toml xml csv tsv txt md pdf doc docx xls xlsx ppt pptx conf cfg ini log exe dll so
zip tar gz html htm css sql java c h cpp go rs rb php bat ps1 jpg jpeg png svg lock iso deb rpm
"""
_UNITS, _FILE_ENDS = frozenset(_UNIT_WORDS.split()), frozenset(_ENDS.split())
# A bare number is a code after one of these.
_NUMBERED = re.compile(
    r"(?:错误码?|代码|编号|型号|工单号?|单号|订单号?|编码|序列号|端口|\berror|\bcode|\bport|\bno\.|\bnumber|\bid)"
    r"\s*(?:为|是|is)?\s*[:：#]?\s*(\d{2,})(?![\w.,]*\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Code:
    """One code.

    Attributes:
        text: folded, as the question has it.
        spellings: alternatives of how an index may hold it; of each, all tokens are needed.
    """

    text: str
    spellings: tuple[tuple[str, ...], ...]


def codes(text: str) -> tuple[Code, ...]:
    """The codes of a question, in order, each once; at most `MAX_CODES`."""
    plain = unicodedata.normalize("NFKC", text)
    found = [*code_texts(text), *(match.group(1) for match in _NUMBERED.finditer(plain))]
    return tuple(_code(run) for run in dict.fromkeys(found))[:MAX_CODES]


def code_texts(text: str) -> list[str]:
    """Every code of a text, folded, in order."""
    plain = unicodedata.normalize("NFKC", text)
    return [search_fold(run.group()) for run in _RUN.finditer(plain) if is_code(run.group())]


def is_code(run: str) -> bool:
    """Whether a run of letters, digits and joints names one thing. Quantities, dates and words do not."""
    parts = [part for part in re.split(rf"[{_JOINTS}]+", run) if part]
    if sum(map(len, parts)) < 3:
        return False
    digits = any(c.isdigit() for c in run)
    if any(c.isalpha() for c in run):
        return _mixed(run, parts) if digits else _lettered(run, parts)
    if len(parts) == 1:
        return len(run) >= 6  # shorter ones are years and amounts
    if "/" in run or ":" in run:  # dates, times
        return False
    return len(parts) >= 3 or (
        len(parts[0]) >= 5 and "." not in run
    )  # versions, addresses, numbers in groups


def _mixed(run: str, parts: Sequence[str]) -> bool:
    first = re.split(r"[-/_:]", run.lower(), maxsplit=1)[0]
    groups = _GROUPS.findall(first)
    if groups[0].isdigit() and groups[-1] in _UNITS and len(groups) <= 3:
        return False  # 20mm, 4.5kg, 1990s, 40mg/day, 3rd-and-goal
    worded = all(part.isdigit() or (part.isalpha() and not part.isupper()) for part in parts)
    return not (worded and parts[0].isdigit() and "." not in run)  # 24-hour, 5-year-old


def _lettered(run: str, parts: Sequence[str]) -> bool:
    if len(parts) < 2:
        return False
    if "." in run and parts[-1].lower() in _FILE_ENDS and len(parts[-2]) > 1:
        return True
    return "_" in run or ("/" not in run and all(part.isupper() and len(part) > 1 for part in parts))


def _code(run: str) -> Code:
    parts = tuple(part for part in re.split(rf"[{_JOINTS}]+", run) if part)
    groups = tuple(_GROUPS.findall(run))
    spellings: list[tuple[str, ...]] = [(run,)]
    if not all(map(str.isdigit, parts)):  # 3.11.7 is not 3117
        spellings.append(("".join(parts),))
    # Apart, parts are words like others; together they are as written.
    spellings += [tuple(map(word_token, several)) for several in (parts, groups) if len(several) > 1]
    return Code(run, tuple(dict.fromkeys(spellings)))


@lru_cache(maxsize=256)
def _pattern(code: str) -> re.Pattern[str]:
    groups = _GROUPS.findall(code)
    spelled = groups[0]
    for before, group in pairwise(groups):
        needed = "" if before.isalpha() != group.isalpha() or before.isalpha() else "{1}"
        spelled += rf"[{_JOINTS}\s]{needed or '?'}{group}"
    return re.compile(rf"(?<![a-z0-9])(?<!\d[.,]){spelled}(?![a-z0-9])(?![.,]\d)")


def holds(text: str, code: str) -> bool:
    """Whether a text has the code as a whole.

    Args:
        text: folded by `search_fold`.
        code: `Code.text`.
    """
    return _pattern(code).search(text) is not None


def rarity(passages: int) -> float:
    """How far a code in so many passages decides, in [0, 1]: 1 for one, less with the square root."""
    return 0.0 if passages < 1 or passages > COMMON else 1.0 / math.sqrt(passages)


def code_scores(matches: Mapping[str, Sequence[int]]) -> list[tuple[int, float]]:
    """(passage id, sum of the rarity of its codes), for passages per code; best first, ties by id."""
    scores: dict[int, float] = {}
    for passage_ids in matches.values():
        for passage_id in passage_ids:
            scores[passage_id] = scores.get(passage_id, 0.0) + rarity(len(passage_ids))
    return sorted(((i, s) for i, s in scores.items() if s > 0), key=lambda item: (-item[1], item[0]))
