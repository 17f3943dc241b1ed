"""Replay of recorded decisions: does a policy or a port still decide the same?

`python -m nodealloc.testing.conformance PATH...` reads files of recorded rows
and compares each with what this library answers. The kind of a file is its
name before `.jsonl`. To check a policy of your own, call `replay` with your
own function in place of the library's.
"""
