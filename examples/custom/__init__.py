"""Policies, pickers and allocators of your own: each a file to copy, with its test beside it."""
