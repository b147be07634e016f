"""Prints an answer: each claim with its verdict, then the quotes behind its markers."""

from __future__ import annotations

from typing import Any


def print_answer(answer: dict[str, Any]) -> None:
    """Print an answer for people."""
    if answer["status"] == "refused":
        print("refused: the documents hold no evidence for an answer")
    elif answer["status"] != "answered":
        error = answer.get("error") or {}
        print(f"{answer['status']}: {error.get('detail') or error.get('code') or 'no reason given'}")
    for notice in answer.get("notices", ()):
        print(f"  note: {notice['text']}")
    for claim in answer["claims"]:
        markers = "".join(f"[{c['marker']}]" for c in claim["citations"])
        text = claim["text"].strip()
        shown = text if markers and text.endswith(markers) else f"{text} {markers}".rstrip()
        print(f"  {shown}   ({claim['verdict']}: {_words(claim['reason'])})")
    for citation in _each_once(answer["claims"]):
        page = f", page {citation['page']}" if citation.get("page") else ""
        print(f"    [{citation['marker']}] {citation['document_name']}{page}")
        if quote := citation.get("quote"):
            print(f"        “{' '.join(quote['text'].split())}”")
    if answer.get("timings_ms"):
        print("    " + "  ".join(f"{name} {ms:.0f} ms" for name, ms in answer["timings_ms"].items()))


def _words(reason: str) -> str:
    return reason.replace("_", " ").replace(";", "; ")


def _each_once(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: dict[tuple[int, int], dict[str, Any]] = {}
    for claim in claims:
        for citation in claim["citations"]:
            start = (citation.get("quote") or {}).get("start", -1)
            seen.setdefault((citation["marker"], start), citation)
    return [seen[key] for key in sorted(seen)]
