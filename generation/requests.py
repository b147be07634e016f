"""What is asked of an engine and what it says back, the same for the one here and for servers elsewhere."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.errors import TransientError
from core.types import Usage
from generation.plan import Planned
from generation.prompt import Message

_CHUNK_TOKENS = 16  # at most, that a chunk's text waits for


class EngineDead(TransientError):
    """The engine process died; the worker ends and the job is done by the next one."""

    code = "engine_dead"
    title = "The generation engine died"


class Cancelled(Exception):
    """The request was aborted on demand."""


class HandBack(Exception):
    """This process gives the work to the next one: it is being stopped, or has no engine yet."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One completion.

    Attributes:
        id: unique in this process; names the request for `cancel`.
        messages: chat turns; the engine lays the model's template over them.
        max_tokens: tokens the model may write.
        deadline: `time.monotonic()` value after which the request is aborted.
        grammar: EBNF that the text must follow, or None.
        priority: lower goes first (`generation/turns.py`).
        cache_salt: keeps one tenant's cached prefixes from being observed by another.
        chunk_s: text may be handed over so seldom, the first at once; 0: each token by itself.
        min_tokens: end of text is forbidden before it (measurements only).
    """

    id: str
    messages: tuple[Message, ...]
    max_tokens: int
    deadline: float
    grammar: str | None = None
    priority: int = 0
    cache_salt: str = ""
    temperature: float = 0.0
    chunk_s: float = 0.0
    min_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """New text and the usage so far (where known); the last one has `finish_reason`: `stop` or `length`."""

    text: str
    finish_reason: str | None = None
    usage: Usage | None = None


def chunk_tokens(chunk_s: float, step_s: float) -> int:
    """Tokens of a chunk, from 1 to 16, so that one comes about every `chunk_s`.

    Args:
        chunk_s: see `GenerationRequest`.
        step_s: seconds per token of one answer; 0: not known yet.
    """
    return max(1, min(_CHUNK_TOKENS, round(chunk_s / step_s))) if step_s > 0 else 1


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What the engine is doing now.

    Attributes:
        kv_used_share: in [0, 1].
        preemptions: requests that lost their blocks since the engine started.
        kv_tokens: of all blocks, where the engine tells (a server); 0: as planned.
    """

    kv_used_share: float
    running: int
    waiting: int
    preemptions: int = 0
    kv_tokens: int = 0


class Engine(Protocol):
    """What the answer task needs; `LocalEngine` and `RemoteEngine` have it."""

    planned: Planned

    def generate(self, request: GenerationRequest) -> Generator[Chunk]:
        """Yield text as it is decoded; closing the generator aborts the request.

        Raises:
            DeadlineExceeded: the deadline passed; the request was aborted.
            Cancelled: `cancel` was called.
            InvalidInput: the engine refused the request (grammar, length); it stays alive.
            EngineDead: the engine is gone.
        """
        ...

    def cancel(self, request_id: str) -> None:
        """Abort a request from any thread; unknown ids are ignored."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` alone."""
        ...

    @property
    def special_tokens(self) -> Sequence[str]:
        """The tokenizer's control tokens, to be kept out of prompts' content."""
        ...

    def load(self) -> EngineLoad:
        """A snapshot."""
        ...

    @property
    def dead(self) -> bool:
        """Whether the engine is gone for good."""
        ...

    def silent_s(self) -> float:
        """Seconds for which there was work and nothing came of it; 0 while there is none."""
        ...

    def prove(self, within_s: float) -> None:
        """Show that it works, by one token or by asking the servers.

        Raises:
            DeadlineExceeded: it does not answer in time.
            TransientError: it is gone.
        """
        ...

    def complaint(self) -> str:
        """What of it does not work now, for people; empty when all does."""
        ...

    def kill(self) -> None:
        """End an engine that hangs, at once; what runs gets `EngineDead`."""
        ...

    def close(self) -> None:
        """Abort everything and stop, in order."""
        ...
