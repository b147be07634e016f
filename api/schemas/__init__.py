"""Bodies of requests and responses, one file per resource; service values are responses as they are."""
