"""Names the files through which processes share their counters, so that containers do not collide."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def name_metric_files(process: str) -> None:
    """Prepare `PROMETHEUS_MULTIPROC_DIR`, where it is set. Call it before any metric is made.

    Files are told apart by process id alone, and in containers that is 1 for all of them.
    """
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    from prometheus_client import values

    host = socket.gethostname().replace("_", "-")  # an underscore separates the parts of a file's name
    values.ValueClass = values.MultiProcessValue(lambda: f"{process}-{host}-{os.getpid()}")
