"""Hypothesis strategies, one module a package; importing one needs Hypothesis."""

__all__: list[str] = []
