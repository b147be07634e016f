"""The only door to vLLM: one `AsyncLLM` on an event-loop thread of its own (decision 8).

Tasks run in threads and meet in the engine's continuous batch. Deadlines live here (timeout → abort), so
does cancel (abort at once). Nothing here touches the database.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Coroutine, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from core.errors import ConfigError, DeadlineExceeded, InvalidInput, TransientError
from core.types import Usage
from generation.engine_args import computes_in_core, engine_arguments, engine_environment
from generation.plan import Planned
from generation.prompt import Message

log = logging.getLogger(__name__)

_SHUTDOWN_S = 4.0  # then the core is killed; it holds nothing that must be saved


class EngineDead(TransientError):
    """The engine process died; the worker ends and the job is done by the next one."""

    code = "engine_dead"
    title = "The generation engine died"


class Cancelled(Exception):
    """The request was aborted on demand."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One completion.

    Attributes:
        id: unique in this process; names the request for `cancel`.
        messages: chat turns; the engine lays the model's template over them.
        max_tokens: tokens the model may write.
        deadline: `time.monotonic()` value after which the request is aborted.
        grammar: EBNF that the text must follow, or None.
        priority: lower goes first.
        cache_salt: keeps one tenant's cached prefixes from being observed by another.
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
    min_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """New text and the usage so far (where known); the last one has `finish_reason`: `stop` or `length`."""

    text: str
    finish_reason: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What the engine is doing now. `kv_used_share` is in [0, 1]."""

    kv_used_share: float
    running: int
    waiting: int


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

    def close(self) -> None:
        """Abort everything and stop, in order."""
        ...


class LocalEngine:
    """An `AsyncLLM` in this process's own loop thread; its core runs in a child process.

    Args:
        pack: folder of the model.
        planned: see `generation.plan_pack.plan_for`.
        device: `cpu` or `gpu`.

    Raises:
        TransientError: the engine did not start (its log has the reason).
    """

    def __init__(self, pack: Path, planned: Planned, *, device: str = "cpu") -> None:
        self.planned = planned
        self._pack, self._device = pack, device
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine-loop", daemon=True)
        self._thread.start()
        self._running: dict[str, Future[None]] = {}
        self._lock = threading.Lock()
        self._closing = False
        try:
            self._llm: Any = self._call(self._start())
        except ConfigError:
            self._stop_loop()
            raise
        except Exception as error:
            self._stop_loop()
            raise TransientError(f"The engine did not start: {error}") from error
        self._tokenizer: Any = self._llm.get_tokenizer()
        self._specials = tuple(dict.fromkeys(map(str, self._tokenizer.all_special_tokens)))

    async def _start(self) -> Any:
        for name, value in engine_environment(
            self.planned, sorted(os.sched_getaffinity(0)), device=self._device
        ).items():
            os.environ.setdefault(name, value)
        os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)  # whole GiB; the plan's bytes are given as an argument
        from vllm import AsyncEngineArgs
        from vllm.usage.usage_lib import UsageContext
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.executor.uniproc_executor import UniProcExecutor

        arguments = engine_arguments(self.planned, self._pack, device=self._device)
        if computes_in_core(self.planned, device=self._device):
            arguments["distributed_executor_backend"] = UniProcExecutor
        args = AsyncEngineArgs(**arguments)
        config = args.create_engine_config(UsageContext.ENGINE_CONTEXT)
        with _core_threads(config):
            return AsyncLLM.from_vllm_config(config)

    def generate(self, request: GenerationRequest) -> Generator[Chunk]:
        """See `Engine.generate`."""
        if self._closing or self.dead:
            raise EngineDead(request_id=request.id)
        outputs: queue.SimpleQueue[Chunk | BaseException] = queue.SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(self._pump(request, outputs), self._loop)
        with self._lock:
            self._running[request.id] = future
        try:
            while True:
                item = outputs.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
                if item.finish_reason is not None:
                    return
        finally:
            future.cancel()  # closed early by the consumer: the engine frees its blocks
            with self._lock:
                self._running.pop(request.id, None)

    async def _pump(
        self, request: GenerationRequest, outputs: queue.SimpleQueue[Chunk | BaseException]
    ) -> None:
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            async with asyncio.timeout(max(0.0, request.deadline - time.monotonic())):
                await self._stream(request, outputs)
        except TimeoutError:
            outputs.put(DeadlineExceeded("The engine was stopped at the answer's deadline."))
        except asyncio.CancelledError:
            outputs.put(Cancelled())
            raise
        except EngineDeadError as error:
            dead = EngineDead("The engine process died while answering.")
            dead.__cause__ = error
            outputs.put(dead)
        except (VLLMClientError, ValueError) as error:
            refused = InvalidInput(f"The engine refused the request: {error}")
            refused.__cause__ = error
            outputs.put(refused)
        except Exception as error:  # noqa: BLE001 - handed to the waiting thread, which would hang without it
            failed = EngineDead(str(error)) if self._llm.errored else TransientError(f"Engine error: {error}")
            failed.__cause__ = error
            outputs.put(failed)

    async def _stream(
        self, request: GenerationRequest, outputs: queue.SimpleQueue[Chunk | BaseException]
    ) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        params = SamplingParams(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            min_tokens=request.min_tokens,
            output_kind=RequestOutputKind.DELTA,
            structured_outputs=StructuredOutputsParams(grammar=request.grammar) if request.grammar else None,
        )
        prompt: dict[str, Any] = {"prompt_token_ids": self._render(request)}
        if request.cache_salt:
            prompt["cache_salt"] = request.cache_salt
        completion_tokens = 0
        async for output in self._llm.generate(prompt, params, request.id, priority=request.priority):
            completion = output.outputs[0]
            completion_tokens += len(completion.token_ids)
            usage = Usage(
                prompt_tokens=len(output.prompt_token_ids or ()),
                completion_tokens=completion_tokens,
                cached_tokens=output.num_cached_tokens or 0,
            )
            if output.finished:
                reason = "length" if completion.finish_reason == "length" else "stop"
                outputs.put(Chunk(completion.text, reason, usage))
            elif completion.text:
                outputs.put(Chunk(completion.text, None, usage))

    def _render(self, request: GenerationRequest) -> list[int]:
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        text: str = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def cancel(self, request_id: str) -> None:
        """See `Engine.cancel`."""
        with self._lock:
            future = self._running.get(request_id)
        if future is not None:
            future.cancel()

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    @property
    def special_tokens(self) -> Sequence[str]:
        """See `Engine.special_tokens`."""
        return self._specials

    def load(self) -> EngineLoad:
        """See `Engine.load`."""
        from vllm.v1.metrics.reader import Gauge, get_metrics_snapshot

        values = {m.name: m.value for m in get_metrics_snapshot() if isinstance(m, Gauge)}
        return EngineLoad(
            kv_used_share=float(values.get("vllm:kv_cache_usage_perc", 0.0)),
            running=int(values.get("vllm:num_requests_running", 0)),
            waiting=int(values.get("vllm:num_requests_waiting", 0)),
        )

    @property
    def dead(self) -> bool:
        """See `Engine.dead`; an engine that is being closed is not dead."""
        return not self._closing and bool(self._llm.errored)

    def core_pids(self) -> tuple[int, ...]:
        """Process ids of the engine's child processes, the core first."""
        children = psutil.Process().children(recursive=True)
        return tuple(p.pid for p in children if _is_engine(p))

    def close(self) -> None:
        """Abort what runs, stop the core, then the loop. Safe to call twice."""
        if self._closing:
            return
        self._closing = True
        with self._lock:
            running = list(self._running.values())
        for future in running:
            future.cancel()
        time.sleep(0.05 if running else 0)  # let the aborts reach the core before it stops
        self._llm.shutdown(timeout=_SHUTDOWN_S)
        self._llm = None  # its finalizer must run while the interpreter is whole
        self._stop_loop()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    def _call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


@contextmanager
def _core_threads(config: Any) -> Generator[None]:
    """Place the threads of a rank that computes inside the core.

    Given by its name, the in-core executor is replaced on a CPU by one with a process per rank (700 MB
    more), because OpenMP reads its placement at a process's start. Here the core starts with it.
    """
    from vllm.utils.ompmultiprocessing import OMPProcessManager
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    if config.parallel_config.distributed_executor_backend is not UniProcExecutor:
        yield
        return
    with OMPProcessManager(config).configure_omp_envs(rank=0, local_rank=0):
        yield


def _is_engine(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("VLLM::") or "VLLM::" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def end_orphans() -> int:
    """Kill engine processes of this data folder whose worker was killed and could not stop them.

    Returns:
        How many there were.
    """
    ours, ended = os.environ.get("GEO_DATA_DIR", ""), 0
    for process in psutil.process_iter():
        try:
            orphan = _is_engine(process) and process.ppid() == 1 and os.getpid() != 1
            if orphan and process.environ().get("GEO_DATA_DIR", "") == ours:
                process.kill()
                ended += 1
        except psutil.Error:
            continue
    return ended
