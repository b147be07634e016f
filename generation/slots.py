"""What a claim puts in the place of something else, or in its mouth. Pure; Chinese and English.

Each function compares a claim with the sentence that should carry it and returns what was put in, or the
empty string.
"""

from __future__ import annotations

import re

from generation.exchange import SEPARATORS, steps, tokens_of
from generation.subject import subject_of
from generation.wording import HAN_CHAR, content_terms, names_of

_PREPOSITION_WORDS = (
    "in at on of from to by with for against under over near during after before into through"
)
PREPOSITIONS = frozenset([*_PREPOSITION_WORDS.split(), *"在于从向对被由给至"])
_ARTICLES = frozenset(["the", "a", "an", "its", "his", "her", "their", "my", "our"])
_HAN = re.compile(f"[{HAN_CHAR}]")
_LEAST_HAN = 2  # two-character terms of a heading that are a name
_MOSTLY = 0.75  # of a claim's words in the sentence, from which it is that sentence with something changed
_LEAST_REST = 2  # such words beside what was put in
_CLAUSE = frozenset(["which", "who", "making", "因此", "从而", "是", "这"])
_RUN = 2  # tokens that a claim shares with its sentence on either side of what it puts in
_POINTING = re.compile(r"(?:This|That|These|Those)\b|[这那该此]")
_BESIDE = re.compile(
    r"\b(?:than|with|to|against|from|unlike|like|for)\s+(?:(?:the|a|an|its|his|her|their)\s+)?$|[比向对给跟]$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』')
_LEAST_QUOTED, _LEAST_QUOTED_HAN = 3, 6  # words, characters from which quotation marks are more than a name's


def slot_replaced(claim: str, sentence: str, context: str) -> str:
    """The name that stands behind a preposition in the place of the sentence's thing, from the context.

    `in the divisional round` told as `in the Super Bowl`, where the passage or its heading has `Super Bowl`.
    A synonym is no such thing: the context does not have it, or the claim keeps a word of the original. The
    rest of the claim has to be the sentence's. Chinese has no capitals: there any word of the context counts.

    Args:
        claim: one sentence.
        sentence: the source's sentence nearest to it.
        context: the passage and what stands above it.
    """
    ours, theirs = tokens_of(claim), tokens_of(sentence)
    said, has, around = content_terms(claim), content_terms(sentence), content_terms(context)
    names = content_terms(" ".join(names_of(claim)))
    for kind, a, b, c, d in steps(ours, theirs):
        before = _before(ours, c)
        if before not in PREPOSITIONS or before != _before(theirs, a):
            continue
        after = content_terms(_joined(ours[c : c + 2]))
        telling = after & names or any(_HAN.search(t) for t in after)
        if (
            telling
            and kind == "delete"
            and (left_out := _passed_over(theirs[a:b], before))
            and not left_out & said
        ):
            return _joined(ours[c : c + 2])
        if kind != "replace":
            continue
        put, out = content_terms(_joined(ours[c:d])), content_terms(_joined(theirs[a:b]))
        rest = said - put
        mostly = len(rest) >= _LEAST_REST and len(rest & has) >= _MOSTLY * len(rest)
        named = put & names or any(_HAN.search(t) for t in put)
        if mostly and named and out and put <= around and not put & has and not out & said:
            return _joined(ours[c:d])
    return ""


def added(claim: str, sentence: str, context: str) -> str:
    """What a claim that is otherwise its sentence puts in between, and the context has nowhere.

    `a private university` told as `a private dental university`. Words in the place of others may be
    synonyms; a word that takes nobody's place adds to what is said.
    """
    ours = tokens_of(claim)
    codes = steps(ours, tokens_of(sentence))
    said, around = content_terms(claim), content_terms(context)
    same = sum(c[4] - c[3] for c in codes if c[0] == "equal")
    last = codes[-1] if codes else None
    if last and last[0] == "insert" and _CLAUSE & set(ours[last[3] : last[4]][:2]) and same >= _RUN:
        more = content_terms(_joined(ours[last[3] : last[4]])) & said - around
        if more and same >= _MOSTLY * last[3]:
            return min(more)
    if same < _MOSTLY * len(ours):
        return ""
    for before, put, after in zip(codes, codes[1:], codes[2:], strict=False):
        runs = [c[4] - c[3] for c in (before, after) if c[0] == "equal"]
        if put[0] == "insert" and len(runs) == 2 and min(runs) >= _RUN:
            more = content_terms(_joined(ours[put[3] : put[4]])) & said - around
            if more:
                return min(more)
    return ""


def subject_replaced(claim: str, sentence: str) -> str:
    """The claim's subject, where the sentence only compares with it and has another subject.

    `A called B the hero, who changes more than C` told as `C is the hero`.
    """
    subject, theirs = subject_of(claim), subject_of(sentence)
    terms, said, has = content_terms(subject), content_terms(claim), content_terms(sentence)
    rest = said - terms
    if not terms or not rest or not terms <= has or terms & content_terms(theirs):
        return ""
    if content_terms(theirs) & said or len(rest & has) < _MOSTLY * len(rest):
        return ""
    core = re.sub(r"^(?:the|a|an)\s+", "", subject, flags=re.IGNORECASE)
    places = [m.start() for m in re.finditer(re.escape(core), sentence, re.IGNORECASE)]
    return core if places and all(_BESIDE.search(sentence[:at]) for at in places) else ""


def subject_unnamed(claim: str, sentence: str, context: str) -> str:
    """The claim's subject, where nothing has its words and the sentence speaks of something else.

    `The Westminster system enables a government to be defeated` told as `The song is about how a government
    can be defeated`. `This company` means what was named before.
    """
    subject, said = subject_of(claim), content_terms(claim)
    terms, theirs = content_terms(subject) & said, content_terms(subject_of(sentence))
    if not terms or not theirs or theirs & said or _POINTING.match(claim):
        return ""
    return "" if terms & content_terms(context) else subject.strip()


def _passed_over(left_out: tuple[str, ...], preposition: str) -> frozenset[str]:
    """Terms of what a preposition belongs to, where a claim leaves it out together with the next verb.

    `born in Smiljan and moved to Berlin` told as `born in Berlin`. Members of a list, and what stands behind
    the same preposition again, may be left out.
    """
    marks = [i for i, token in enumerate(left_out) if token in SEPARATORS]
    if not marks or marks[-1] == len(left_out) - 1 or left_out[-1] == preposition:
        return frozenset()
    return content_terms(_joined(left_out[: marks[0]]))


def above_used(claim: str, passage: str, above: str) -> str:
    """A name that only stands above the passage and that the claim has elsewhere than in its subject.

    A heading tells what the sentences below speak of; where it happened and to whom, they tell themselves.
    Chinese has no capital letters: there three characters of a heading in a row are a name.
    """
    subject = subject_of(claim)
    heading, own = content_terms(above) - content_terms(passage), content_terms(subject)
    for name in names_of(claim):
        if name not in subject and content_terms(name) and content_terms(name) <= heading:
            return name
    han = [t for t in content_terms(claim) & heading - own if _HAN.search(t)]
    return han[0] if len(han) >= _LEAST_HAN else ""


def misquoted(claim: str, context: str) -> str:
    """Words in quotation marks of which the passage or its headings have most, but not so."""
    known, terms = _plain(context), content_terms(context)
    if claim.count('"') % 2:
        return ""
    for match in _QUOTED.finditer(claim):
        words = next(group for group in match.groups() if group)
        han = len(_HAN.findall(words))
        enough = han >= _LEAST_QUOTED_HAN if han else len(words.split()) >= _LEAST_QUOTED
        own = content_terms(words)
        altered = len(own & terms) >= _MOSTLY * len(own) and _plain(words) not in known
        if enough and altered:
            return words
    return ""


def _plain(text: str) -> str:
    """A text in lower case without marks and white space."""
    return re.sub(r"[\W_]+", "", text.casefold())


def before_name(name: str, text: str) -> str:
    """The word before the run of capitalised words that a name belongs to, articles passed over."""
    words = re.findall(r"[\w’'-]+", text)
    place = next((i for i, word in enumerate(words) if word.startswith(name)), 0)
    while place and words[place - 1][:1].isupper() and words[place - 1].lower() not in PREPOSITIONS:
        place -= 1
    return _before(tuple(word.lower() for word in words), place)


def _before(tokens: tuple[str, ...], place: int) -> str:
    """The token before a place, articles passed over; empty at the beginning."""
    while place and tokens[place - 1] in _ARTICLES:
        place -= 1
    return tokens[place - 1] if place else ""


def _joined(tokens: tuple[str, ...]) -> str:
    gap = "" if any(_HAN.match(t) for t in tokens) else " "
    return gap.join(tokens)
