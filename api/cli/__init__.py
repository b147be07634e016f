"""The geo command."""
