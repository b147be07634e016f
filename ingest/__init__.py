"""Stages 1 and 2: normalize documents, disambiguate entities."""
