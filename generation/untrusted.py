"""Documents are material, never orders: find the sentences of a passage that address whoever answers. Pure.

Such a sentence is not quoted, not shown to the model and not echoed; the passage stays a source and the
answer says that it tries. A sentence that only reports such words inside quotation marks is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from core.types import Evidence
from ingest.sentences import sentences

_ORDER_EN = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,40}"
    r"\b(?:previous|prior|above|earlier|all|any|your|the)\b[^.!?\n]{0,30}"
    r"\b(?:instructions?|prompts?|rules?|messages?|guidelines?|directions?|context)\b",
    r"\b(?:reveal|print|output|repeat|show|leak|disclose)\b[^.!?\n]{0,30}"
    r"\b(?:system prompt|your (?:instructions?|prompt|rules))",
    r"\b(?:you are now|from now on,? you|act as (?:an? )?(?:ai|assistant|dan|system|admin)"
    r"|pretend (?:to be|you))\b",
    r"\b(?:reply|respond|answer) (?:only|solely|exclusively|exactly)\b[^.!?\n]{0,30}\b(?:in|with|as|json)\b",
    r"\b(?:do not|don't|never) (?:cite|use citations|tell the user"
    r"|mention (?:the|this|any) (?:source|citation)s?)\b",
    r"\b(?:new|updated|hidden) (?:system )?(?:instructions?|prompt)\s*:",
    r"\b(?:ai|language model|chatbot|ai assistant|llm)s?\b[^.!?\n]{0,20}\b(?:must|should|shall) (?:now )?"
    r"(?:say|answer|reply|recommend|ignore|output)\b",
)
_ORDER_ZH = (
    r"(?:忽略|无视|忘记|忘掉|不要理会|绕过)[^。！？\n]{0,12}"
    r"(?:之前|以前|上面|以上|前面|先前|所有|全部|一切|你的|任何)[^。！？\n]{0,12}"
    r"(?:指令|指示|提示词?|规则|要求|设定|命令|上下文)",
    r"(?:输出|显示|打印|透露|泄露|复述|告诉我)[^。！？\n]{0,10}(?:系统提示词?|你的(?:提示词?|指令|设定))",
    r"(?:你现在是|从现在(?:开始|起)[，,]?你|请扮演|假装你)",
    r"(?:只|仅|必须)(?:能|需|要|用)?(?:回答|回复|输出)[^。！？\n]{0,4}[“\"「『：:]",
    r"(?:不要|不得|禁止|别)[^。！？\n]{0,4}(?:给出|提供|标注|使用)[^。！？\n]{0,4}(?:引用|来源|出处)",
    r"(?:新的|隐藏)(?:系统)?(?:指令|提示词)\s*[:：]",
)
_ORDERS = re.compile("|".join((*_ORDER_EN, *_ORDER_ZH)), re.IGNORECASE)
_CONTROL = re.compile(
    r"<\|[a-z_]{2,24}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|^\s*(?:system|assistant)\s*:\s*\S",
    re.IGNORECASE,
)
_QUOTED = re.compile('“[^”]*”|"[^"]*"|「[^」]*」|『[^』]*』|‘[^’]*’')


@lru_cache(maxsize=8192)
def instructs(sentence: str) -> bool:
    """Whether a sentence gives orders to whoever answers, or opens a turn of its own."""
    if _CONTROL.search(sentence):
        return True
    found = _ORDERS.search(sentence)
    if found is None:
        return False
    quoted = [match.span() for match in _QUOTED.finditer(sentence)]
    return not any(start <= found.start() and found.end() <= end for start, end in quoted)


def tempting(evidence: Sequence[Evidence]) -> tuple[int, ...]:
    """Markers of the passages that hold such a sentence."""
    return tuple(e.marker for e in evidence if any(instructs(s) for s in _sentences(e.passage.text)))


def without_instructions(text: str) -> str:
    """A passage as the model sees it: each sentence that gives orders is replaced by an ellipsis."""
    out, end = "", 0
    for span in sentences(text):
        if instructs(text[span.start : span.end]):
            out += text[end : span.start] + "…"
            end = span.end
    return out + text[end:]


def _sentences(text: str) -> list[str]:
    return [text[s.start : s.end] for s in sentences(text)]
