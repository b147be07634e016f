"""The floor that all packages share; light imports only."""
