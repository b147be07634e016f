"""`python -m api.cli` is the same as `geo`."""

from api.cli import main

main()
