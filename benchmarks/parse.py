"""Reading PDF and HTML against pypdf and trafilatura: the same files, in turn, one process each.

Ours gives blocks with boxes or lines, headings, tables and the offset map; the peers give plain text. The
peers live in `.venv-peers` (`make peers`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PEER_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
KINDS = {"pdf": "pypdf", "html": "trafilatura"}


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, default=ROOT / "docs" / "samples", help="folder to read")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds")
    parser.add_argument("--json", action="store_true", help="print one JSON object (the only format)")
    args = parser.parse_args()
    if not PEER_PYTHON.exists():
        print("the peers are missing; run: make peers", file=sys.stderr)
        return 3
    result: dict[str, Any] = {"machine": {"cores": os.cpu_count(), "load_1m": os.getloadavg()[0]}}
    for suffix, peer in KINDS.items():
        files = sorted(args.files.rglob(f"*.{suffix}"))
        if files:
            result[suffix] = _compare(files, peer, args.rounds)
    print(json.dumps(result, indent=1))
    return 0


def _compare(files: list[Path], peer: str, rounds: int) -> dict[str, Any]:
    ours: list[float] = []
    theirs: list[float] = []
    command = [str(PEER_PYTHON), str(Path(__file__).with_name("peer_parse.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        if child.stdin is None or child.stdout is None:
            raise RuntimeError("the peer process has no pipes")
        for number in range(rounds + 1):  # the first round warms both
            mine = _ours(files)
            child.stdin.write(json.dumps({"peer": peer, "files": [str(f) for f in files]}) + "\n")
            child.stdin.flush()
            other = json.loads(child.stdout.readline())["seconds"]
            if number:
                ours.append(mine)
                theirs.append(other)
            print(f"{peer}: round {number} of {rounds}", file=sys.stderr)
        child.stdin.close()
    ratios = [other / mine for mine, other in zip(ours, theirs, strict=True)]
    return {
        "files": len(files),
        "bytes": sum(f.stat().st_size for f in files),
        f"ratio_{peer}": round(statistics.median(ratios), 2),
        "spread": [round(min(ratios), 2), round(max(ratios), 2)],
        "rounds": rounds,
        "peer": f"{peer}, plain text, its defaults",
    }


def _ours(files: list[Path]) -> float:
    from core.settings import get_settings
    from ingest.normalize import build
    from ingest.parse import parse_bytes
    from ingest.sandbox import options_of

    options = options_of(get_settings().ingest)
    start = time.perf_counter()
    for file in files:
        build(parse_bytes(file.read_bytes(), file.name, "", options))
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
