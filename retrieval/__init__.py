"""Stages 3 and 4: the tiered index, recall and rerank."""
