"""The only door to vLLM: one `AsyncLLM` on an event-loop thread of its own (decision 8).

Tasks run in threads and meet in the engine's continuous batch. Deadlines live here (timeout → abort), so
does cancel (abort at once). Nothing here touches the database.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections.abc import Coroutine, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from core.errors import ConfigError, DeadlineExceeded, InvalidInput, TransientError
from core.metrics import ENGINE_ABORTS
from core.types import Usage
from generation.engine_args import computes_in_core, engine_arguments, engine_environment
from generation.engine_process import engine_pids, kill_engines
from generation.plan import Planned
from generation.plan_check import EngineReport, drifts
from generation.plan_drift import tell_drifts
from generation.prompt import Message
from generation.requests import Cancelled as Cancelled
from generation.requests import Chunk as Chunk
from generation.requests import EngineDead as EngineDead
from generation.requests import EngineLoad as EngineLoad
from generation.requests import GenerationRequest as GenerationRequest
from generation.requests import chunk_tokens

_STEP_WEIGHT = 0.1  # of the newest step in the mean
_SHUTDOWN_S = 4.0  # then the core is killed; it holds nothing that must be saved


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
        self._heard = time.monotonic()  # of any output, or of work after idleness
        self._step_s = 0.0  # seconds per token of one answer, lately
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
        self.drifts = drifts(planned, self.report())
        tell_drifts(self.drifts)

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
            if not self._running:
                self._heard = time.monotonic()
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
            ENGINE_ABORTS.labels("deadline").inc()
            outputs.put(DeadlineExceeded("The engine was stopped at the answer's deadline."))
        except asyncio.CancelledError:
            ENGINE_ABORTS.labels("cancelled").inc()
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
            # Each output wakes a task here and a thread of the worker, beside the engine on the same cores.
            stream_interval=chunk_tokens(request.chunk_s, self._step_s),
            structured_outputs=StructuredOutputsParams(grammar=request.grammar) if request.grammar else None,
        )
        prompt: dict[str, Any] = {"prompt_token_ids": self._render(request)}
        if request.cache_salt:
            prompt["cache_salt"] = request.cache_salt
        completion_tokens, heard = 0, 0.0
        async for output in self._llm.generate(prompt, params, request.id, priority=request.priority):
            self._heard = now = time.monotonic()
            completion = output.outputs[0]
            if completion_tokens and completion.token_ids:
                step_s = (now - heard) / len(completion.token_ids)
                self._step_s += _STEP_WEIGHT * (step_s - self._step_s) if self._step_s else step_s
            heard = now
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
        from vllm.v1.metrics.reader import Counter, Gauge, get_metrics_snapshot

        values = {m.name: m.value for m in get_metrics_snapshot() if isinstance(m, Gauge | Counter)}
        return EngineLoad(
            kv_used_share=float(values.get("vllm:kv_cache_usage_perc", 0.0)),
            running=int(values.get("vllm:num_requests_running", 0)),
            waiting=int(values.get("vllm:num_requests_waiting", 0)),
            preemptions=int(values.get("vllm:num_preemptions", 0)),
        )

    def silent_s(self) -> float:
        """See `Engine.silent_s`."""
        with self._lock:
            return time.monotonic() - self._heard if self._running else 0.0

    def prove(self, within_s: float) -> None:
        """See `Engine.prove`."""
        until = time.monotonic() + within_s
        canary = GenerationRequest(f"canary-{time.monotonic_ns()}", (Message("user", "1"),), 1, until)
        for _ in self.generate(canary):
            pass

    def complaint(self) -> str:
        """See `Engine.complaint`."""
        return "; ".join(map(str, self.drifts))

    def report(self) -> EngineReport:
        """What the running engine says of itself."""
        config = self._llm.vllm_config
        resident = sum(psutil.Process(pid).memory_info().rss for pid in self.core_pids())
        return EngineReport(
            kv_blocks=config.cache_config.num_gpu_blocks,
            block_size=config.cache_config.block_size,
            max_model_len=config.model_config.max_model_len,
            dtype=str(config.model_config.dtype).removeprefix("torch."),
            resident_bytes=resident if self._device == "cpu" else None,
        )

    def kill(self) -> None:
        """See `Engine.kill`."""
        kill_engines()

    @property
    def dead(self) -> bool:
        """See `Engine.dead`; an engine that is being closed is not dead."""
        return not self._closing and bool(self._llm.errored)

    def core_pids(self) -> tuple[int, ...]:
        """Process ids of the engine's child processes, the core first."""
        return engine_pids()

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
