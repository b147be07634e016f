"""What an answer was made with, and whether a second run made the same. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from core.types import EnginePlan
from generation.prompt import Message
from generation.values import AnswerView
from retrieval.profile import BUILT_IN

_SAME_PLAN = ("model", "tokenizer", "max_model_len", "block_size", "tp", "pp")


def record_of(
    messages: Sequence[Message],
    grammar: str,
    plan: EnginePlan,
    *,
    temperature: float,
    max_tokens: int,
    frame: Mapping[str, object],
) -> dict[str, Any]:
    """Model, plan, sampling, order and budget of the prompt, and digests: no text of any document."""
    planned = asdict(plan)
    return {
        "plan": {name: planned[name] for name in _SAME_PLAN},
        "seed": 0,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "prompt_sha256": _digest([asdict(m) for m in messages]),
        "grammar_sha256": _digest(grammar),
        **frame,
    }


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def compare(old: AnswerView, new: AnswerView) -> dict[str, Any]:
    """What is the same in two answers to one question, and what is not.

    Returns:
        `same` per part (question, policy, profile, variants, evidence, record, status, text, claims), and
        `differences` in words.
    """
    parts: Mapping[str, tuple[Any, Any]] = {
        "question": (old.question, new.question),
        "policy": (old.policy, new.policy),
        "profile": (_profile(old), _profile(new)),
        "variants": (old.trace.get("variants", []), new.trace.get("variants", [])),
        "evidence": (_evidence(old), _evidence(new)),
        "record": (_record(old), _record(new)),
        "status": (old.status, new.status),
        "text": (old.text, new.text),
        "claims": (_claims(old), _claims(new)),
    }
    same = {name: before == after for name, (before, after) in parts.items()}
    return {
        "old": old.id,
        "new": new.id,
        "reproduced": all(same.values()),
        "same": same,
        "index_generation": [old.index_generation, new.index_generation],
        "differences": [
            f"{name}: {_short(before)} → {_short(after)}"
            for name, (before, after) in parts.items()
            if before != after
        ],
    }


def _evidence(answer: AnswerView) -> list[tuple[int, int, int]]:
    return [(s.marker, s.passage_id, s.version) for s in answer.sources]


def _profile(answer: AnswerView) -> str:
    """Of an answer from before there were profiles: the built-in one ranked it."""
    return answer.trace.get("profile", {}).get("id", BUILT_IN)


def _record(answer: AnswerView) -> Any:
    return answer.trace.get("generation", {}).get("record", {})


def _claims(answer: AnswerView) -> list[tuple[Any, ...]]:
    return [
        (
            c.ordinal,
            c.text,
            c.verdict,
            c.reason,
            tuple((t.marker, t.passage_id, t.quote) for t in c.citations),
        )
        for c in answer.claims
    ]


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 160 else text[:157] + "…"
