"""The doors: HTTP, console and command line."""
