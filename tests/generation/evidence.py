"""Evidence made by hand for the pure tests."""

from __future__ import annotations

from core.types import Evidence, Lang, Passage, SentenceScore, Span


def evidence(
    marker: int,
    text: str,
    *,
    score: float = 0.9,
    start: int = 0,
    lang: Lang = Lang.EN,
    sentences: tuple[tuple[str, float], ...] = (),
    document: str | None = None,
    heading: tuple[str, ...] = (),
) -> Evidence:
    passage = Passage(
        id=100 + marker,
        document_id=document or f"doc_{marker}",
        version=1,
        ordinal=0,
        span=Span(start, start + len(text)),
        page=marker,
        heading_path=heading,
        lang=lang,
        text=text,
    )
    scored = tuple(
        SentenceScore(Span(start + text.index(s), start + text.index(s) + len(s)), value)
        for s, value in sentences
    )
    return Evidence(marker, passage, score, sentences=scored, document_name=f"{marker}.txt")
