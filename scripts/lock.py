"""Write the installed versions over a lock file, keeping the comment at its top.

Packages that must not be installed are left out, and so is whatever would name a registry or a folder.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions
from pathlib import Path

LEFT_OUT = {"geo-engine", "pip", "torchvision", "torchaudio", "torchcodec"}


def locked() -> list[str]:
    """One `name==version` per installed distribution, by name; local version labels are dropped."""
    pins = {}
    for found in distributions():
        name = re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()
        if name not in LEFT_OUT:
            pins[name] = f"{name}=={found.version.split('+')[0]}"
    return [pins[name] for name in sorted(pins)]


def main(path: Path) -> None:
    """Rewrite the file in place."""
    head = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    path.write_text("\n".join([*head, *locked()]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
