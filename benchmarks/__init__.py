"""Measurements: each file runs by `python -m benchmarks.NAME --json` and prints one JSON object."""
