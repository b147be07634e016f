"""Write the installed versions of everything that `.[cpu,ocr,dev]` needs over a lock file, keeping its head.

One lock serves every supported Python: what a package needs on any of them is locked for all. Packages that
must not be installed are left out, and so is whatever would name a registry or a folder.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement

EXTRAS = ("cpu", "ocr", "dev")
# Markers in use part the versions at 3.11.3 (redis) and at minor releases.
PYTHONS = ("3.11.0", "3.11.9", "3.12.0", "3.13.0", "3.14.0")
BUILD = ("setuptools",)  # builds the one dependency without a wheel, and this project
# The vision libraries: see the lock's head. fastapi-cloud-cli: a client of somebody's hosting service.
# openvino-telemetry: reports usage to its maker; the runtime works without it.
LEFT_OUT = {"torchvision", "torchaudio", "torchcodec", "fastapi-cloud-cli", "openvino-telemetry"}


def locked(project: Path) -> list[str]:
    """One `name==version` per package that is needed, by name; local version labels are dropped."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    wanted = [*table["dependencies"], *BUILD]
    for extra in EXTRAS:
        wanted += table["optional-dependencies"][extra]
    pins: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [Requirement(line) for line in wanted]
    while todo:
        needed = todo.pop()
        name, extras = re.sub(r"[-_.]+", "-", needed.name).lower(), frozenset(needed.extras)
        if name in LEFT_OUT or (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            found = distribution(name)
        except PackageNotFoundError:
            sys.exit(f"{name} is needed on a supported Python but not installed; run: pip install {name}")
        pins[name] = f"{name}=={found.version.split('+')[0]}"
        for line in found.requires or ():
            following = Requirement(line)
            if _applies(following.marker, extras):
                todo.append(following)
    return [pins[name] for name in sorted(pins)]


def _applies(marker: Marker | None, extras: frozenset[str]) -> bool:
    """Whether a requirement holds on one of `PYTHONS`, under one of the extras or none."""
    return marker is None or any(
        marker.evaluate(
            {
                "extra": extra,
                "python_full_version": version,
                "python_version": ".".join(version.split(".")[:2]),
            }
        )
        for extra in (*extras, "")
        for version in PYTHONS
    )


def main(path: Path) -> None:
    """Rewrite the file in place."""
    head = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    pins = locked(path.with_name("pyproject.toml"))
    path.write_text("\n".join([*head, *pins]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
