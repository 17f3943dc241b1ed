"""nodealloc: the reconcilers that run a machine, for programs that embed them."""
