"""Bodies of the OpenAI-shaped doors: their fields, and citations in the `annotations` of a message."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.common import JsonObject, Text

MODEL_PREFIX = "geo:"


class TextPart(BaseModel):
    """A part of a message; only text is understood."""

    type: Literal["text"]
    text: Text


class Message(BaseModel):
    """One turn. Names, tool calls and the like are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """Its text, parts joined."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(part.text for part in self.content)


class StreamOptions(BaseModel):
    """What the stream carries."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class ChatBody(BaseModel):
    """A chat request. Sampling fields are accepted and not used: citations constrain the decoding."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: Annotated[str, Field(max_length=220, description="`geo:<collection>`")]
    messages: Annotated[list[Message], Field(min_length=1, max_length=200)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    max_tokens: int | None = Field(None, ge=1, le=8192)
    max_completion_tokens: int | None = Field(None, ge=1, le=8192)
    response_format: JsonObject | None = Field(
        None, description="`json_object`: the answer, its claims and citations as one JSON object"
    )
    policy: JsonObject | None = Field(None, description="laid over the collection's citation policy")
    filters: JsonObject | None = None


class ModelCard(BaseModel):
    """A collection, seen as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "geo"


class ModelList(BaseModel):
    """What the key may ask."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class ChatMessage(BaseModel):
    """The answer. `annotations` hold one `url_citation` per citation, with the passage beside it."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None
    annotations: list[dict[str, Any]]


class ChatChoice(BaseModel):
    """The only choice."""

    index: int = 0
    message: ChatMessage
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class ChatUsage(BaseModel):
    """Tokens; zero where the engine was not called."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class ChatCompletion(BaseModel):
    """An answer in OpenAI's shape; `geo` holds our own view of it."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    geo: dict[str, Any]
