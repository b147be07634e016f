"""The embedded stack: Redis, five workers and the API as children of one supervisor."""
