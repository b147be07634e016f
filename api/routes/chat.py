"""`/v1/chat/completions` and `/v1/models`, as OpenAI's clients expect them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request

from api import asking, chat, structured
from api.deps import AppSettings, Db, Reader, Redis, in_write
from api.schemas.chat import MODEL_PREFIX, ChatBody, ChatCompletion, ModelCard, ModelList
from api.sse import KEEP_ALIVE, EventStream, encode
from core.errors import GeoError, NotFound
from core.streams import StreamEvent
from generation import service as answers
from ingest import service as ingest

router = APIRouter(prefix="/v1", tags=["chat"])

_STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
_MIN_ANSWER_TOKENS = 8  # the smallest cap that a policy takes


@router.get("/models")
def list_models(scope: Reader, db: Db) -> ModelList:
    """Collections that the key may ask, as models."""
    cards: list[ModelCard] = []
    cursor: str | None = None
    with db.read() as session:
        while True:
            page = ingest.list_collections(session, scope, cursor=cursor, limit=200)
            cards += [
                ModelCard(id=MODEL_PREFIX + c.name, created=int(c.created_at.timestamp())) for c in page.items
            ]
            if (cursor := page.next_cursor) is None:
                return ModelList(data=cards)


@router.post("/chat/completions", response_model=ChatCompletion, responses=_STREAM)
async def complete(
    body: ChatBody, request: Request, scope: Reader, db: Db, client: Redis, settings: AppSettings
) -> object:
    """Answer the last user message from the collection that the model names.

    A stream carries whole verified claims, because this shape cannot take text back.
    """
    if not body.model.startswith(MODEL_PREFIX):
        raise NotFound(
            f"Models are named {MODEL_PREFIX}<collection>; /v1/models lists them.", model=body.model
        )
    question, history = chat.split_turns(body)
    as_object = structured.wanted(body.response_format, stream=body.stream)
    query_id = await in_write(
        db,
        lambda session: asking.submit(
            session,
            scope,
            collections=[body.model.removeprefix(MODEL_PREFIX)],
            question=question,
            history=history,
            policy=_policy(body),
            filters=body.filters,
        ),
    )
    created = int(time.time())
    if body.stream:
        followed = answers.events(client, scope, query_id, just_asked=True)
        await anext(followed)
        return EventStream(_chunks(followed, query_id, body, created), source=followed)
    view = await answers.wait_answer(
        client,
        scope,
        query_id,
        deadline_s=settings.api.question_deadline_s,
        left=request.is_disconnected,
        just_asked=True,
    )
    asking.raise_if_unanswered(query_id, view.status, asdict(view.error) if view.error else None)
    told = chat.completion(view, body.model, created)
    if as_object:
        told.choices[0].message.content = structured.content(view)
    return told


def _policy(body: ChatBody) -> dict[str, Any] | None:
    cap = body.max_completion_tokens or body.max_tokens
    capped = {} if cap is None else {"max_answer_tokens": max(_MIN_ANSWER_TOKENS, cap)}
    return {**capped, **(body.policy or {})} or None


async def _chunks(
    followed: AsyncGenerator[StreamEvent | None], query_id: str, body: ChatBody, created: int
) -> AsyncIterator[bytes]:
    head = {"id": query_id, "object": "chat.completion.chunk", "created": created, "model": body.model}

    def chunk(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return encode(None, {**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    teller = chat.Teller()
    try:
        async with aclosing(followed):
            async for entry in followed:
                if entry is None:
                    yield KEEP_ALIVE
                elif entry.event == "restart":
                    teller.restart()
                elif entry.event == "claim":
                    text, annotations = teller.tell(entry.payload)
                    if teller.diverged:
                        yield _failure("restarted", "The answer was begun anew; ask again.", query_id)
                        return
                    if text:
                        yield chunk({"content": text, "annotations": annotations})
                elif entry.event == "done":
                    for piece in _ending(entry.payload, teller, chunk, head, body, query_id):
                        yield piece
    except GeoError as error:
        yield _failure(error.code, error.detail, query_id)


def _ending(
    done: dict[str, Any], teller: chat.Teller, chunk: Any, head: dict[str, Any], body: ChatBody, query_id: str
) -> list[bytes]:
    if done["status"] in ("failed", "cancelled"):
        reason = done.get("error") or {}
        return [
            _failure(done["status"], reason.get("detail") or "The query ended without an answer.", query_id)
        ]
    pieces: list[bytes] = []
    if rest := teller.finish(done.get("text", "")):
        pieces.append(chunk({"content": rest}))
    pieces.append(
        chunk({}, chat.finish_reason(done["status"]), geo={"query_id": query_id, "status": done["status"]})
    )
    if body.stream_options and body.stream_options.include_usage:
        usage = chat.usage_of(done.get("usage") or {}).model_dump()
        pieces.append(encode(None, {**head, "choices": [], "usage": usage}))
    return [*pieces, b"data: [DONE]\n\n"]


def _failure(code: str, message: str, query_id: str) -> bytes:
    return encode(
        None, {"error": {"message": message, "type": "server_error", "code": code, "param": query_id}}
    )
