"""What a model is asked to write for a search, and what of it is searched for. Pure.

Question and history are data: control tokens in them are broken, and whatever the model writes is one line
of bounded length. It is searched for as plain words and by its vector; it is no part of any prompt or answer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from core.types import Lang
from generation.prompt import Message, harmless
from retrieval.variants import MAX_CHARS, Kind, Variant

MAX_TURNS = 6
_TURN_CHARS, _QUESTION_CHARS = 400, 1000
_SMALLEST_CHARS = 3

MAX_TOKENS: Mapping[Kind, int] = {"llm": 64, "hyde": 96}
# One line, and for a question one question mark, which ends it.
GRAMMARS: Mapping[Kind, str] = {
    "llm": "root ::= [^\\n\\r\\t<>?？]+ [?？]",
    "hyde": "root ::= [^\\n\\r\\t<>]+",
}

_RULES = {
    ("llm", Lang.EN): (
        "Rewrite the last question as one search question that is understood without the turns before it. "
        "Keep names and numbers. Do not answer it. Write the question only."
    ),
    ("llm", Lang.ZH): "把最后的问题改写成一个不看上文也能懂的检索问题，保留名称和数字。不要回答，只写问题。",
    ("hyde", Lang.EN): (
        "Write two or three sentences as they might stand in a document that answers the last question. "
        "Write the sentences only."
    ),
    ("hyde", Lang.ZH): "写两三句话，就像一份回答最后那个问题的文档里会有的句子。只写这些句子。",
}
_LABELS = {Lang.EN: ("Before", "Question"), Lang.ZH: ("上文", "问题")}


def rewrite_messages(
    kind: Kind,
    question: str,
    history: Sequence[Mapping[str, str]],
    *,
    lang: Lang,
    specials: Sequence[str] = (),
) -> tuple[Message, ...]:
    """The prompt: rules, the last turns, the question.

    Args:
        kind: what is to be written.
        question: as asked; its first 1,000 characters count.
        history: `{role, content}`, oldest first; the first 400 characters of the last `MAX_TURNS` count.
        lang: of the rules (Chinese, else English).
        specials: the tokenizer's special tokens.
    """
    tongue = Lang.ZH if lang is Lang.ZH else Lang.EN
    before, asked = _LABELS[tongue]
    turns = [
        "- " + " ".join(harmless(str(turn.get("content", ""))[:_TURN_CHARS], specials).split())
        for turn in list(history)[-MAX_TURNS:]
        if turn.get("role") in ("user", "assistant")
    ]
    body = before + ":\n" + "\n".join(turns) + "\n\n" if turns else ""
    body += asked + ": " + harmless(question[:_QUESTION_CHARS], specials)
    return (Message("system", _RULES[kind, tongue]), Message("user", body))


def variant_of(kind: Kind, written: str, question: str) -> Variant | None:
    """What the model wrote as a search string, or None where it adds nothing.

    Control, format and private characters become spaces, and so do runs of blanks; the rest is cut to
    `MAX_CHARS`.
    """
    text = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in written)
    text = " ".join(text.split())[:MAX_CHARS].strip()
    letters = sum(1 for c in text if c.isalnum())
    if letters < _SMALLEST_CHARS or _folded(text) == _folded(question):
        return None
    return Variant(kind, text)


def _folded(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
