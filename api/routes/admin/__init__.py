"""Doors of administrators (own tenant) and operators (the whole installation)."""
