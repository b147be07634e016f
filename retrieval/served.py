"""Which encoder the index is served with: that of its manifest, whatever the settings say."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from core.db import Database
from core.errors import ConfigError
from core.settings import get_settings
from core.types import Tier
from retrieval.tier_repository import tier_state

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """Which vectors an index holds: the encoder's id and width."""

    model: str
    dimension: int


def served_space(db: Database) -> VectorSpace:
    """What the index holds; what the configured encoder gives while nothing was indexed yet.

    Only an empty index has to load an encoder for this.
    """
    with db.read() as session:
        state = tier_state(session, Tier.HOT.value)
    if state.dimension:
        return VectorSpace(state.model, state.dimension)
    return space_of(get_settings().packs.encoder)


def space_of(model: str) -> VectorSpace:
    """The width of an encoder, by loading it. Raises `ConfigError` when its pack is not there."""
    from ingest.encode import get_encoder

    return VectorSpace(model, get_encoder(model).dimension)


def check_encoder(db: Database) -> None:
    """Load the encoder that the index needs.

    Raises:
        ConfigError: its pack is missing, or gives another width than the index holds; names both.
    """
    served = served_space(db)
    found = space_of(served.model)
    if found != served:
        raise ConfigError(
            f"the index holds {served.dimension}-wide vectors of {served.model}, "
            f"but that pack gives {found.dimension}; restore the pack, or change to another encoder: "
            "geo tiers rebuild all --model …"
        )
    configured = get_settings().packs.encoder
    if configured != served.model:
        log.warning("encoder_setting_unused", extra={"setting": configured, "served": served.model})
