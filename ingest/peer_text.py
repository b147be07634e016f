"""Runs inside the peers' environment: text of the files named on each input line, one JSON answer a line.

Reads `{"peer": "pypdf" | "trafilatura", "files": [paths], "texts": bool}`; writes `{"cpu_s": s, "wall_s": s,
"pages": n}` and, where asked for, `"texts"`. A file that the peer fails on counts as empty text.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any


def _pypdf(path: Path) -> tuple[str, int]:
    from pypdf import PdfReader  # pyright: ignore[reportMissingImports] - only the peers have it

    pages = [page.extract_text() for page in PdfReader(path).pages]
    return "\n".join(pages), len(pages)


def _trafilatura(path: Path) -> tuple[str, int]:
    import trafilatura

    return trafilatura.extract(path.read_bytes()) or "", 1


_PEERS: dict[str, Any] = {"pypdf": _pypdf, "trafilatura": _trafilatura}


def _text(peer: str, path: Path) -> tuple[str, int]:
    try:
        return _PEERS[peer](path)
    except Exception:  # noqa: BLE001 - whatever a peer raises on a file: it gave no text
        return "", 0


def _main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        wanted = json.loads(line)
        paths = [Path(name) for name in wanted["files"]]
        cpu, wall = time.process_time(), time.perf_counter()
        read = [_text(wanted["peer"], path) for path in paths]
        answer: dict[str, Any] = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
        answer["pages"] = sum(pages for _, pages in read)
        if wanted.get("texts"):
            answer["texts"] = [text for text, _ in read]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
