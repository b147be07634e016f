"""What an operator asks of a plan, and what a plan answers. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.errors import ConfigError
from core.types import EnginePlan
from generation.plan_bounds import Bounds
from generation.plan_memory import RankMemory
from generation.plan_parallel import Layout


class Profile(StrEnum):
    """What the engine is for; `AUTO` is decided from the machine."""

    AUTO = "auto"
    EDGE = "edge"
    REALTIME = "realtime"
    BATCH = "batch"
    CLOUD = "cloud"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the settings ask for (`GenerationSettings`); 0, `auto` and None leave it to the plan.

    Attributes:
        kv_cache_bytes: of all ranks together.
        target_ttft_ms: time to the first token that the profile realtime plans for.
        memory_share: of an accelerator's memory that the engine may take.
    """

    kv_cache_bytes: int = 0
    max_model_len: int = 0
    max_num_seqs: int = 0
    block_size: int = 0
    answer_reserve: int = 256
    enforce_eager: bool | None = None
    tensor_parallel: int = 0
    pipeline_parallel: int = 0
    profile: Profile = Profile.AUTO
    target_ttft_ms: int = 500
    max_num_batched_tokens: int = 0
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    memory_share: float = 0.9


@dataclass(frozen=True, slots=True)
class Branch:
    """One fork of the decision tree: what was asked, what the answer is, and what follows from it."""

    question: str
    answer: str
    follows: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """Settings that would be accepted instead of what was refused.

    Attributes:
        change: setting (as in `Wish`) to value.
        text: for people.
    """

    change: Mapping[str, Any]
    text: str


class PlanRefused(ConfigError):
    """It cannot run as asked.

    Attributes:
        reasons: each rule that is broken.
        alternatives: changes that were tried and are accepted.
    """

    code = "plan_refused"
    title = "The engine cannot run as asked"

    def __init__(
        self, reasons: tuple[str, ...], alternatives: tuple[Alternative, ...] = (), hint: str = ""
    ) -> None:
        self.reasons, self.alternatives, self.hint = reasons, alternatives, hint
        choices = "; ".join(a.text for a in alternatives)
        parts = [". ".join(reasons) + ".", hint, f"What runs here: {choices}." if choices else ""]
        super().__init__(" ".join(filter(None, parts)))


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan that is published, and what only the launcher and `geo plan` need.

    Attributes:
        kv_bytes_per_token: over all ranks.
        max_num_seqs: sequences that may run at once without running out of blocks.
        weight_bytes: over all ranks.
        notes: where the plan is smaller than the wish, and why.
        max_num_batched_tokens: tokens of one step; 0: the engine's own choice (remote servers).
        kv_rank_bytes: KV blocks of the fullest rank.
        kv_exact: the engine is given that size instead of measuring what is left (always on a CPU).
        dtype: to compute in, `auto`: as stored.
        layout: ranks and layers; None for a remote server.
        replicas: engines of this layout that the described machines hold.
        host_bytes: RAM of one node that the engine takes.
        engine_blocks: `kv_blocks` as the engine counts them, which groups layers of several kinds.
        cores: of each rank on a CPU, by number; empty: all that the process may use.
    """

    plan: EnginePlan
    kv_bytes_per_token: int
    max_num_seqs: int
    weight_bytes: int
    enforce_eager: bool
    notes: tuple[str, ...]
    max_num_batched_tokens: int = 0
    kv_rank_bytes: int = 0
    kv_exact: bool = True
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    memory_share: float = 0.9
    prefix_caching: bool = True
    layout: Layout | None = None
    replicas: int = 1
    host_bytes: int = 0
    engine_blocks: int = 0
    cores: tuple[tuple[int, ...], ...] = ()
    profile: Profile = Profile.AUTO
    branches: tuple[Branch, ...] = ()
    bounds: Bounds | None = None
    rank: RankMemory | None = None
    quantization: str = ""
