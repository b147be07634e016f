"""The environment of the systems that the benchmarks compare with; it never mixes with the product's own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from core.errors import ConfigError

FOLDER = Path(".venv-peers")
REQUIREMENTS = "peers.txt"


def peer_python(
    requirements: Iterable[str] | None = None, folder: Path = FOLDER, *, beside_product: bool = False
) -> Path:
    """The interpreter of the peers' environment, made and filled where it is missing.

    Args:
        requirements: as pip takes them; those of `ingest/peers.txt` when omitted. Installed once each.
        folder: of the environment, by default in the working folder.
        beside_product: give them the product's packages where they bring none of their own, so that both
            sides run on the same torch; then `requirements` name everything else that they need.

    Raises:
        ConfigError: pip could not install a peer.
    """
    python = folder.absolute() / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        if beside_product:
            own = next((folder / "lib").glob("python*/site-packages"))
            (own / "product.pth").write_text(
                sysconfig.get_path("purelib") + "\n"
            )  # a .pth comes after all own
    wanted = list(requirements) if requirements is not None else _pinned()
    noted = folder / "installed.txt"
    present = set(noted.read_text().splitlines()) if noted.exists() else set[str]()
    missing = [requirement for requirement in wanted if requirement not in present]
    if missing:
        command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        command += [*(["--no-deps"] if beside_product else []), *missing]
        done = subprocess.run(command, stdout=sys.stderr, check=False)  # noqa: S603 - our own pins
        if done.returncode:
            raise ConfigError(f"The peers could not be installed in {folder}: {' '.join(missing)}.")
        noted.write_text("\n".join([*sorted(present), *missing]) + "\n")
    return python


def _pinned() -> list[str]:
    lines = files("ingest").joinpath(REQUIREMENTS).read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
