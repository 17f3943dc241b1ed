"""Benchmarks: one module a package, one table over all of them (`nox -s bench`)."""
