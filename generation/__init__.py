"""Stage 5: citation-constrained answers on a vLLM engine."""
