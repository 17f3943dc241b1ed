"""Programs built on nodealloc; each is meant to be read and copied."""
