"""Backup, restore and the checks of `geo doctor`."""
