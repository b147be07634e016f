"""The generation worker of `geo bench generate`: the real one, but a question fixes its answer's length.

Lengths decide what a batch costs, so every arm of the comparison must write the same ones. The question says
how many tokens; everything else (queue, database, grammar, checks, events) is as in `geo worker generation`.
Run as a program with the environment of the stack that it belongs to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from core.worker import WORKER_NAME_VARIABLE, WORKERS, get_app
from generation.plan import Planned
from generation.requests import Chunk, Engine, EngineLoad, GenerationRequest

LENGTH = re.compile(r"in (\d+) tokens")
TEMPERATURE = 1.0  # a small model's greedy answer repeats itself, and repetitions are cut short


class FixedLength:
    """An engine whose answers have the length that their question names.

    Args:
        engine: that answers.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.planned: Planned = engine.planned

    def generate(self, request: GenerationRequest) -> Generator[Chunk]:
        """See `Engine.generate`."""
        found = LENGTH.findall(request.messages[-1].content)
        if found:
            length = int(found[-1])
            request = replace(request, max_tokens=length, min_tokens=length, temperature=TEMPERATURE)
        yield from self._engine.generate(request)

    def cancel(self, request_id: str) -> None:
        """See `Engine.cancel`."""
        self._engine.cancel(request_id)

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`."""
        return self._engine.count_tokens(text)

    @property
    def special_tokens(self) -> Sequence[str]:
        """See `Engine.special_tokens`."""
        return self._engine.special_tokens

    def load(self) -> EngineLoad:
        """See `Engine.load`."""
        return self._engine.load()

    @property
    def dead(self) -> bool:
        """See `Engine.dead`."""
        return self._engine.dead

    def silent_s(self) -> float:
        """See `Engine.silent_s`."""
        return self._engine.silent_s()

    def prove(self, within_s: float) -> None:
        """See `Engine.prove`."""
        self._engine.prove(within_s)

    def complaint(self) -> str:
        """See `Engine.complaint`."""
        return self._engine.complaint()

    def kill(self) -> None:
        """See `Engine.kill`."""
        self._engine.kill()

    def close(self) -> None:
        """See `Engine.close`."""
        self._engine.close()


def main() -> None:
    """Consume the answer queue until a signal ends it."""
    from generation.configured import configured_engine

    consume(lambda: FixedLength(configured_engine()))


def consume(engine: Callable[[], Engine]) -> None:
    """Be the generation worker with this engine, until a signal ends it."""
    os.environ[WORKER_NAME_VARIABLE] = "generation"
    from core.logs import configure_logs
    from core.settings import get_settings
    from generation import tasks

    configure_logs(get_settings().log, process="worker-generation")
    tasks.configured_engine = engine
    spec = WORKERS["generation"]
    get_app().worker_main(
        [
            "worker", "--queues", ",".join(spec.queues), "--pool", spec.pool,
            "--concurrency", str(get_settings().worker.generation_threads),
            "--hostname", "generation@%h", "--loglevel", "WARNING", "--without-gossip", "--without-mingle",
            "--without-heartbeat",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    main()
