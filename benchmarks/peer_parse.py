"""Runs inside the peers' environment: text of the files named on each input line, one JSON answer a line.

Reads `{"peer": "pypdf" | "trafilatura", "files": [paths]}` and writes `{"seconds": s, "chars": n}`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def _pypdf(path: Path) -> str:
    from pypdf import PdfReader

    return "\n".join(page.extract_text() for page in PdfReader(path).pages)


def _trafilatura(path: Path) -> str:
    import trafilatura

    return trafilatura.extract(path.read_bytes(), include_tables=True) or ""


_PEERS: dict[str, Any] = {"pypdf": _pypdf, "trafilatura": _trafilatura}

for line in sys.stdin:
    wanted = json.loads(line)
    read = _PEERS[wanted["peer"]]
    read(Path(wanted["files"][0]))  # imports and caches are not the work
    start = time.perf_counter()
    chars = sum(len(read(Path(name))) for name in wanted["files"])
    print(json.dumps({"seconds": time.perf_counter() - start, "chars": chars}), flush=True)
