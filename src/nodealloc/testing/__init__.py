"""Fakes, builders, checks and the conformance runner, for users as for us."""
