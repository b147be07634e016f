"""A question that leans on the turns before it, made whole by rules. Pure.

`When was it last serviced?` finds nothing by itself. What it leans on is what the turns before were about:
their names and codes, else what stands around the question word. A pronoun is replaced by a name; a
bare noun by the name that ends in it (`bare_nouns.py`); whatever else is missing is put before the question,
where routes by words and by meaning both see it. A question that stands by itself is left as it is: adding
an old topic to a new question would find the old answers again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import regex

from core.types import Lang
from retrieval.bare_nouns import bare_noun
from retrieval.identifiers import code_texts
from retrieval.language import question_language

Turns = Sequence[Mapping[str, str]]
NamesIn = Callable[[str], Sequence[str]]
"""Names that the installation knows in a text, in the order of the text."""

MAX_TURNS = 6  # before the question; a topic older than three exchanges is rarely meant
_TOPIC_CHARS = 60
_SHORT_WORDS, _SHORT_HAN = 5, 8  # of a question that may be a fragment of the one before

# A person or thing said before. "It is", "this is" and "there is" open a statement of their own.
_PRONOUN_EN = regex.compile(
    r"\b(?:it|its|they|them|theirs?|he|him|his|she|hers?|this|these|those|the (?:same|former|latter))\b"
    r"|(?<=\b(?:of|about|for|after|before|with|like|does|did|was|is) )that\b|\bthat(?=\s*[?.!,])",
    regex.IGNORECASE,
)
_POSSESSIVE_EN = regex.compile(r"\b(?:its|their|his|her)\b", regex.IGNORECASE)
_PLAIN_EN = regex.compile(r"\b(?:it|they|them|he|him|she)\b", regex.IGNORECASE)
_POINTED_EN = regex.compile(r"\b(?:this|that|these|those)\s+(?=\p{L})", regex.IGNORECASE)
_NO_PRONOUN_EN = regex.compile(
    r"\bis it (?:true|possible|allowed|safe|ok|okay|necessary)\b|\b(?:it|that) (?:is|was) (?:that|to)\b"
    r"|\b(?:so|such|all|those who|the one|ones?) that\b|\b(?:one of|at one|this (?:year|month|week))\b",
    regex.IGNORECASE,
)
_OPENING_EN = regex.compile(
    r"^(?:and|but|so|or|also|what about|how about|then)\b[\s,]*(?:what about|how about)?\s*", regex.IGNORECASE
)
_BARE_EN = regex.compile(
    r"^(?:why|when|where|how|who|which one|since when|by whom|how (?:much|many|long|often|come)|why not|"
    r"where exactly|anything else|what else|who else)\s*\??$",
    regex.IGNORECASE,
)
_QUESTION_EN = regex.compile(
    r"^(?:(?:so|and|but|please|tell me(?: about)?|can you tell me|do you know)\b[\s,]*)*"
    r"(?:(?:what|which|who|whom|whose|when|where|why|how)\b"
    r"(?:\s+(?:often|many|much|long|old|far|tall|high|big|large|kind of|year|date|time))?)?\s*"
    r"(?:(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may)\b)?\s*"
    r"(?:there\b)?\s*",
    regex.IGNORECASE,
)
_ASKS_WHO = regex.compile(r"\b(?:who|whom|whose|which)\b|谁|哪(?:位|个|家|所|座|款|种|一)", regex.IGNORECASE)
_NAME_EN = regex.compile(
    r"(?:\p{Lu}[\p{L}\p{M}\p{N}'’.-]*|\p{Lu}\.)(?:\s+(?:(?:of|the|de|von|van|and)\s+)?(?:\p{Lu}[\p{L}\p{M}\p{N}'’-]*|\p{N}+))*"
)
_QUOTED = regex.compile(r"《[^》]{1,40}》|“[^”]{1,40}”|「[^」]{1,40}」|\"[^\"]{2,40}\"")

_PRONOUN_ZH = regex.compile(
    r"它们|他们|她们|它|(?<!其)他(?!人)|她|其(?![他余实中])|该(?=\p{Han})|前者|后者|上述"
    r"|(?:这|那|此)(?=[个些位种款项台家所座条件本部份次年])"
)
_POINTED_ZH = regex.compile(r"(?:该|这|那|此)[个些位种款项台家所座条件本部份]?")
_THIS_TIME_ZH = regex.compile(r"(?:这|那|此)(?:年|次|些年)")
_OPENING_ZH = regex.compile(r"^(?:那么|那|还有|另外|以及|然后|而|再说|换成|如果是|要是)[，,\s]*")
_ENDING_ZH = regex.compile(r"呢\s*[？?]?$")
_BARE_ZH = regex.compile(
    r"^(?:为什么|为何|什么时候|何时|在哪里?|哪里|谁|怎么(?:办|做)?|如何|多少|多久|几个|哪一?个|还有(?:吗|什么|哪些|别的吗)?"
    r"|具体(?:呢|是什么)?|原因(?:是什么)?|然后)\s*[呢吗]?\s*[？?]?$"
)
_ASKED_ZH = regex.compile(
    r"是(?:什么|谁|哪|多少|否|不是|在|由)|有(?:什么|哪些|多少|几)|叫什么|(?:在|于)?(?:什么|哪)(?:时候|里|儿|些|个|一)?"
    r"|多(?:少|久|大|长|高|远|重|快)|几(?=[个年月天次人台种])|谁|怎么样?|如何|为什么|为何|何时|是不是|有没有|能不能|可不可以|吗|呢|[？?]"
)
_LEADING_ZH = regex.compile(
    r"^(?:请问|请|告诉我|我想知道|想问|介绍一下|介绍|关于|说说|那么?|谁是?|什么是|哪[个家些位]|为什么|为何|怎么|如何|何时)"
    r"[，,\s]*"
)
_TRAILING_ZH = regex.compile(r"(?:[的是在于由有用被把将能会要应该可以]|一共|总共|大概|通常|一般|需要)+$")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A question as it is searched for.

    Attributes:
        text: the question, whole.
        topic: what was carried over; empty when nothing was.
        why: `noun`, `pronoun`, `fragment` or empty.
    """

    text: str
    topic: str = ""
    why: str = ""


def rewritten(question: str, history: Turns, names_in: NamesIn | None = None) -> Rewritten:
    """The question, with what it leaves to the turns before it.

    Args:
        question: as asked.
        history: `{role, content}`, oldest first; the last `MAX_TURNS` count, but for names that a bare noun
            of the question ends: these are looked for in all.
        names_in: names that are known beside those that spelling shows.
    """
    said = [turn.get("content", "") for turn in history if turn.get("role") == "user"]
    if (noun := bare_noun(question, said)) is not None:
        return Rewritten(question[: noun.start] + noun.name + question[noun.end :], noun.name, "noun")
    turns = list(history)[-MAX_TURNS:]
    if not any(turn.get("role") == "user" for turn in turns):
        return Rewritten(question)
    why = _leans(question)
    if not why:
        return Rewritten(question)
    topic = _topic(turns, asks_of_person=_asks_of_person(question), names_in=names_in)
    if not topic or topic.casefold() in question.casefold():
        return Rewritten(question)
    return Rewritten(_joined(question, topic), topic, why)


def _leans(question: str) -> str:
    """Why a question does not stand by itself, or nothing."""
    if question_language(question) is Lang.ZH:
        stripped = _THIS_TIME_ZH.sub("", question)
        if _PRONOUN_ZH.search(stripped) and not _names(question):
            return "pronoun"
        size = sum(1 for c in question if c.isalnum())
        fragment = _OPENING_ZH.match(question) or _ENDING_ZH.search(question)
        return "fragment" if _BARE_ZH.match(question) or (fragment and size <= 2 * _SHORT_HAN) else ""
    plain = _NO_PRONOUN_EN.sub(" ", question)
    if _PRONOUN_EN.search(plain) and not _names(question):
        return "pronoun"
    words = len(regex.findall(r"\w+", question))
    opened = _OPENING_EN.match(question) is not None
    return "fragment" if _BARE_EN.match(question.strip()) or (opened and words <= 2 * _SHORT_WORDS) else ""


def _asks_of_person(question: str) -> bool:
    return regex.search(r"\b(?:he|him|his|she|her|hers)\b|[他她]", question, regex.IGNORECASE) is not None


def _topic(turns: Turns, *, asks_of_person: bool, names_in: NamesIn | None) -> str:
    """What the last turn was about; one that leans on those before it hands their topic on.

    The answer to a question for a name is what is spoken of next: `Who wrote it?` `Emerson.` `And his age?`
    """
    topic = ""
    asked = ""
    for turn in turns:
        text = " ".join(turn.get("content", "").split())
        if turn.get("role") == "user":
            own = _owned(text, _named(text, names_in)) or _around_the_question(text)
            leans = _leans(text)
            if not leans or (leans == "fragment" and _named(text, names_in)):
                topic = own or topic
            asked = text
        elif asked and (asks_of_person or not topic) and _ASKS_WHO.search(asked):
            topic = _named(_first_sentence(text), names_in, besides=asked) or topic
    return topic[:_TOPIC_CHARS].strip()


def _owned(text: str, name: str) -> str:
    """A name with whose it is, where that is said right before it: `青石水库的大坝`, not `大坝` alone."""
    phrase = _around_the_question(text)
    at = phrase.find(name)
    return phrase[: at + len(name)] if name and at > 0 and phrase[at - 1] == "的" else name


def _named(text: str, names_in: NamesIn | None, *, besides: str = "") -> str:
    """The names of a text, the first two; `besides`: what they may not stand in."""
    known = list(names_in(text)) if names_in is not None else []
    found = [name for name in dict.fromkeys([*known, *_names(text)]) if name not in besides]
    longest = [name for name in found if not any(name != other and name in other for other in found)]
    between = "" if question_language(text) is Lang.ZH else " "
    return between.join(longest[:1] if besides else longest[:2])


def _names(text: str) -> list[str]:
    """Names by their spelling: quoted titles, codes, capitals that do not open the sentence."""
    found = [(m.start(), m.group()) for m in _QUOTED.finditer(text)]
    found += [(text.find(code), code) for code in code_texts(text) if code in text]
    opening = _QUESTION_EN.match(text)
    skip = opening.end() if opening else 0
    for match in _NAME_EN.finditer(text):
        first = match.group().split()[0]
        opens = match.start() < skip and (match.group() == first or _QUESTION_EN.fullmatch(first))
        if not opens and match.group() not in ("I", "A"):
            found.append((match.start(), match.group().rstrip(".")))
    return [name for _, name in sorted(found)]


def _around_the_question(text: str) -> str:
    """A question without its question word: what stands before it in Chinese, after it in English."""
    if question_language(text) is Lang.ZH:
        rest = _LEADING_ZH.sub("", text).strip("？?。！! ")
        cut = _ASKED_ZH.search(rest)
        before = rest[: cut.start()] if cut else rest
        before = _TRAILING_ZH.sub("", before)
        return before if len(before) >= 2 else _ASKED_ZH.sub("", rest)
    rest = _QUESTION_EN.sub("", text, count=1).strip("?.! ")
    return regex.sub(r"^(?:a|an|the)\s+", "", rest, flags=regex.IGNORECASE)


def _first_sentence(text: str) -> str:
    return regex.split(r"(?<=[。！？!?])|(?<=[.])\s", text, maxsplit=1)[0]


def _joined(question: str, topic: str) -> str:
    """The topic in the pronoun's place where it is a name of its own, else before the question."""
    if question_language(question) is Lang.ZH:
        whole = _OPENING_ZH.sub("", question)
        pointed = _PRONOUN_ZH.search(whole)
        if pointed is None:
            return f"{topic} {whole}"
        if _POINTED_ZH.match(whole, pointed.start()):
            return f"{topic} {whole}"
        put = f"{topic}的" if pointed.group() == "其" else topic
        return whole[: pointed.start()] + put + whole[pointed.end() :]
    whole = _OPENING_EN.sub("", question)
    single = len(topic.split()) <= 5
    if single and (match := _POSSESSIVE_EN.search(whole)):
        return whole[: match.start()] + topic + "'s" + whole[match.end() :]
    if single and (match := _PLAIN_EN.search(whole)):
        return whole[: match.start()] + topic + whole[match.end() :]
    return f"{topic}: {whole}"
