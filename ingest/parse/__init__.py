"""One parser per format."""
