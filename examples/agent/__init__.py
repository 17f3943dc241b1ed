"""A node agent in a few files: the packages wired together, with a process runtime."""
