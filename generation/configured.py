"""The engine that the settings name: in this process, or existing servers."""

from __future__ import annotations

import logging
from pathlib import Path

from core.packs import pack_path
from core.settings import get_settings
from generation.engine import LocalEngine
from generation.engine_process import end_orphans
from generation.plan_pack import plan_for
from generation.plan_probe import this_machine
from generation.requests import Engine

log = logging.getLogger(__name__)


def configured_engine() -> Engine:
    """Start it, or connect to it.

    Raises:
        ConfigError: the pack is missing or cannot run here.
        TransientError: it did not start.
    """
    settings = get_settings()
    if settings.generation.engine_url:
        from generation.engine_remote import RemoteEngine

        return RemoteEngine(settings.generation, model=settings.packs.generator)
    if orphans := end_orphans():
        log.warning("engine_orphans_ended", extra={"processes": orphans})
    pack = generator_pack()
    machine = this_machine()
    planned = plan_for(pack, settings.generation, machine, name=settings.packs.generator)
    for note in planned.notes:
        log.warning("engine_plan_note", extra={"note": note})
    return LocalEngine(pack, planned, device=machine.device)


def generator_pack() -> Path:
    """Folder of the generator's model.

    Raises:
        ConfigError: it was not fetched.
    """
    return pack_path(get_settings().packs.generator)
