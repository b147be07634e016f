"""What an answer says beside its claims, in the question's language. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from core.types import Evidence, Lang
from generation.untrusted import tempting
from generation.values import Notice

_NAMED = 3  # nearest sources that a refusal points to


def instructions_notice(evidence: Sequence[Evidence], lang: Lang) -> Notice | None:
    """Says that a source gives orders, which were not followed; None when none does."""
    markers = tempting(evidence)
    if not markers:
        return None
    listed = " ".join(f"[{m}]" for m in markers)
    text = (
        f"来源{listed}中含有写给回答者的指令，未予执行，也未引用。"
        if lang is Lang.ZH
        else f"{listed}: a source holds instructions to whoever answers; they were not followed or quoted."
    )
    return Notice("instructions_in_source", text, list(markers))


def searched_notice(
    evidence: Sequence[Evidence], lang: Lang, *, threshold: float, collections: int, left_out: int = 0
) -> Notice:
    """What was searched for a question that is refused, and what came nearest."""
    best = max((e.score for e in evidence), default=0.0)
    ranked = sorted(evidence, key=lambda e: (-e.score, e.marker))
    nearest = " ".join(f"[{e.marker}]" for e in ranked[:_NAMED])
    if lang is Lang.ZH:
        text = f"已检索{collections}个文档库。"
        if nearest:
            text += f"最接近的来源是{nearest}，相关度{best:.2f}，低于要求的{threshold:.2f}。"
        else:
            text += "没有找到任何相关内容。"
    else:
        text = f"Searched {collections} collection{'s' if collections != 1 else ''}. "
        if nearest:
            text += (
                f"What came nearest is {nearest}, with a relevance of {best:.2f}; "
                f"{threshold:.2f} is asked for."
            )
        else:
            text += "Nothing came near."
    return Notice(
        "searched",
        text,
        [e.marker for e in ranked[:_NAMED]],
        {
            "collections": collections,
            "passages": len(evidence),
            "best_relevance": round(best, 4),
            "threshold": threshold,
            "left_out": left_out,
        },
    )


def several_notice(readings: Sequence[Sequence[int]], lang: Lang) -> Notice | None:
    """Says that a name of the question means several entities; None when it means one."""
    if not readings:
        return None
    text = (
        f"问题中的名称可能指{len(readings)}个不同的对象，以下分别列出；请说明指哪一个。"
        if lang is Lang.ZH
        else f"A name in the question may mean {len(readings)} things, each listed; say which is meant."
    )
    markers = sorted(marker for group in readings for marker in group)
    return Notice("namesakes", text, markers, {"readings": len(readings)})


def left_out_notice(left_out: int, lang: Lang) -> Notice | None:
    """Says that the policy keeps sources from being cited; None when it kept none."""
    if not left_out:
        return None
    text = (
        f"引用策略排除了{left_out}个来源段落。"
        if lang is Lang.ZH
        else f"The citation policy kept {left_out} passage{'s' if left_out != 1 else ''} from being cited."
    )
    return Notice("sources_left_out", text, [], {"passages": left_out})


def shortened_notice(left_out: Sequence[int], used: int, lang: Lang) -> Notice | None:
    """Says that the answer was written from fewer sources because many answers run; None when it was not."""
    if not left_out:
        return None
    text = (
        f"当前请求较多，回答只依据{used}个来源，另有{len(left_out)}个未使用。"
        if lang is Lang.ZH
        else f"Many answers are running; this one was written from {used} of {used + len(left_out)} sources."
    )
    return Notice("context_shortened", text, list(left_out), {"used": used, "left_out": len(left_out)})


def unread_notice(read: int, unread: int, lang: Lang) -> Notice | None:
    """Says that a summary was made from the beginning of a long document; None when it was read whole."""
    if unread <= 0:
        return None
    passages = read + unread
    text = (
        f"文档较长，本摘要只依据前{read}个段落，全文共{passages}个段落。"
        if lang is Lang.ZH
        else f"The document is long; its first {read:,} of {passages:,} passages were read."
    )
    return Notice("document_not_read_whole", text, [], {"read": read, "passages": passages})
