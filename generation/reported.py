"""What somebody says, and who is meant by a pronoun, told as they stand in the source. Pure; zh and en.

`Some references suggest that it was copyrighted in 1865` does not say that it was.
"""

from __future__ import annotations

import re
from itertools import pairwise

from generation.wording import content_terms

_HALF = 0.5  # of a claim's words behind the words that report them
_VERBS = """
suggest claim argue believe allege speculate hypothesise hypothesize theorise theorize contend assert maintain
report say state think estimate predict hope fear suspect doubt deny guess propose insist assume feel
"""
_IRREGULAR = ["said", "thought", "felt", "denie[sd]", "told [a-z' ]{1,30}?"]
_FORMS = "|".join([*(f"{v.removesuffix('e')}(?:e|s|es|ed|d|ing)?" for v in _VERBS.split()), *_IRREGULAR])
_REPORTED = re.compile(
    rf"(?<!who )(?<!which )(?P<word>\b(?:{_FORMS})) that\b|(?P<source>\baccording to [^,.;]{{2,60}}),"
    r"|(?P<zh>认为|声称|宣称|自称|主张|怀疑|猜测|相信|报道称|据说|传说|有人说|表示)[，：,:]?",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    rf"\b(?:{_FORMS})\b|\baccording to\b|认为|称|主张|怀疑|猜测|相信|据说|传说|有人说|表示", re.IGNORECASE
)
_GENDERS = (
    re.compile(r"\b(?:he|him|his|himself)\b|他", re.IGNORECASE),
    re.compile(r"\b(?:she|her|hers|herself)\b|她", re.IGNORECASE),
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_OBJECTS = frozenset(["them", "him", "it", "us", "me", "you", "himself", "herself", "itself", "themselves"])


def report_dropped(claim: str, sentence: str) -> str:
    """The words by which a sentence only reports what the claim states; else the empty string."""
    told = _REPORTED.search(sentence)
    if told is None or _REPORTS.search(claim):
        return ""
    ours = content_terms(claim)
    behind = content_terms(sentence[told.end() :]) - content_terms(sentence[: told.start()])
    return told[0] if len(ours & behind) >= _HALF * len(ours) else ""


def person_changed(claim: str, sentences: str) -> str:
    """A pronoun of the claim whose gender the sentences have only the other of."""
    for own, other in (_GENDERS, _GENDERS[::-1]):
        said = own.search(claim)
        if said and not own.search(sentences) and other.search(sentences):
            return said[0].lower()
    return ""


def object_dropped(claim: str, sentence: str) -> str:
    """A pronoun between two words that the claim has side by side: `break up` for `break them up`."""
    theirs, ours = (list(map(str.lower, _WORD.findall(text))) for text in (sentence, claim))
    beside = set(pairwise(ours)) - set(pairwise(theirs))
    threes = zip(theirs, theirs[1:], theirs[2:], strict=False)
    return next((word for one, word, two in threes if word in _OBJECTS and (one, two) in beside), "")
