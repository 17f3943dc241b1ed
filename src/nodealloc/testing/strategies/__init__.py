"""Hypothesis strategies, one module a package; importing one needs Hypothesis."""
