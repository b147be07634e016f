"""An answer told in OpenAI's shape: whole verified claims with markers, citations as annotations. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from api.schemas.chat import ChatBody, ChatChoice, ChatCompletion, ChatMessage, ChatUsage
from core.errors import InvalidInput
from core.types import AnswerStatus
from generation.values import AnswerView, separator


def split_turns(body: ChatBody) -> tuple[str, list[dict[str, str]]]:
    """The question (the last user turn) and the turns before it.

    System turns are left out: the rules of an answer are the collection's policy.

    Raises:
        InvalidInput: the last message is not a user's.
    """
    turns = [(m.role, m.text) for m in body.messages if m.role in ("user", "assistant") and m.text.strip()]
    last = body.messages[-1]
    if last.role != "user" or not last.text.strip():
        raise InvalidInput("messages: the last one must be a user's and hold text.")
    return turns[-1][1], [{"role": role, "content": text} for role, text in turns[:-1]]


class Teller:
    """Tells claims one after another and knows where each stands in the text told so far.

    A restart (a new attempt after a crash) cannot take text back here. Claims that come again unchanged
    are passed over; `diverged` is true once one differs from what was told.
    """

    def __init__(self) -> None:
        self.text = ""
        self.diverged = False
        self._told: list[str] = []
        self._position = 0

    def restart(self) -> None:
        """A new attempt begins; it will tell its claims from the first one."""
        self._position = 0

    def tell(self, claim: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """The text that a claim adds and its annotations; empty for a removed or known claim."""
        if not claim["text"]:
            return "", []
        if self._position < len(self._told):
            self.diverged = self.diverged or self._told[self._position] != claim["text"]
            self._position += 1
            return "", []
        gap = separator(self._told[-1]) if self._told else ""
        self._told.append(claim["text"])
        self._position += 1
        return self._append(claim, gap)

    def finish(self, final: str) -> str:
        """What is left to tell at the end: the words of a refusal, or nothing."""
        return "" if self._told else final

    def _append(self, claim: Mapping[str, Any], gap: str) -> tuple[str, list[dict[str, Any]]]:
        added, start = gap + claim["text"], len(self.text) + len(gap)
        for marker in dict.fromkeys(c["marker"] for c in claim["citations"]):
            added += f"[{marker}]"
        self.text += added
        return added, [_annotation(c, claim, start, len(self.text)) for c in claim["citations"]]


def _annotation(
    citation: Mapping[str, Any], claim: Mapping[str, Any], start: int, end: int
) -> dict[str, Any]:
    return {
        "type": "url_citation",
        "url_citation": {
            "start_index": start,
            "end_index": end,
            "title": citation["document_name"],
            "url": f"/v1/documents/{citation['document_id']}/source?version={citation['version']}",
        },
        "marker": citation["marker"],
        "passage_id": citation["passage_id"],
        "document_id": citation["document_id"],
        "version": citation["version"],
        "page": citation["page"],
        "quote": citation["quote"],
        "verdict": claim["verdict"],
    }


def finish_reason(status: str) -> str:
    """OpenAI's word for how an answer ended; a refusal is a complete answer."""
    return "length" if status == AnswerStatus.INCOMPLETE.value else "stop"


def usage_of(usage: Mapping[str, Any]) -> ChatUsage:
    """Token counts in OpenAI's names."""
    prompt, completion = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
    return ChatUsage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def completion(view: AnswerView, model: str, created: int) -> ChatCompletion:
    """A stored answer as one completion."""
    teller, annotations = Teller(), list[dict[str, Any]]()
    claims: Sequence[dict[str, Any]] = [asdict(claim) for claim in view.claims]
    for claim in claims:
        annotations += teller.tell(claim)[1]
    rest = teller.finish(view.text)
    refused = view.status is AnswerStatus.REFUSED
    message = ChatMessage(
        content=teller.text + rest, refusal=rest if refused else None, annotations=annotations
    )
    reason = "length" if view.status is AnswerStatus.INCOMPLETE else "stop"
    return ChatCompletion(
        id=view.id,
        created=created,
        model=model,
        choices=[ChatChoice(message=message, finish_reason=reason)],
        usage=usage_of(view.usage),
        geo={
            "query_id": view.id,
            "status": view.status.value,
            "claims": claims,
            "sources": [asdict(source) for source in view.sources],
            "mode_used": view.mode_used,
            "notices": [asdict(notice) for notice in view.notices],
        },
    )
