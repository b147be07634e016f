"""The command line: `geo COMMAND`. Commands import what they need when they run, so `--help` is quick.

Exit codes: 0 done · 1 the work or the check failed · 2 wrong usage or configuration · 3 the service is
not reachable or temporarily unavailable · 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import typer

from core.errors import ConfigError, GeoError, TransientError

# One file per group of commands; each offers `register(app)`.
_GROUPS = (
    "stack", "worker", "storage", "models", "keys", "client", "demo",
    "documents", "entities", "tiers", "tune", "parse", "eval", "bench", "plan", "replay",
)  # fmt: skip

EXIT_FAILED, EXIT_USAGE, EXIT_UNAVAILABLE, EXIT_INTERRUPTED = 1, 2, 3, 130


def make_cli() -> typer.Typer:
    """Build the command line with every group that is installed."""
    app = typer.Typer(
        name="geo",
        help="Documents in, answers with checked citations out.",
        epilog="Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 unavailable, 130 interrupted.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for group in _GROUPS:
        if find_spec(f"api.cli.{group}") is not None:
            import_module(f"api.cli.{group}").register(app)
    return app


def exit_code(error: GeoError) -> int:
    """The exit code that stands for an error of ours."""
    if isinstance(error, ConfigError):
        return EXIT_USAGE
    return EXIT_UNAVAILABLE if isinstance(error, TransientError) else EXIT_FAILED


def main() -> None:
    """Entry point of `geo`."""
    try:
        make_cli()()
    except GeoError as error:
        print(f"geo: {error.detail}", file=sys.stderr)
        sys.exit(exit_code(error))
    except OSError as error:  # a folder that is not there or may not be written, a full disk
        print(f"geo: {error.strerror or error}: {error.filename or ''}".rstrip(": "), file=sys.stderr)
        sys.exit(EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
