"""A node agent in a few files: the packages wired together, with a process runtime."""

from __future__ import annotations

import os

# gRPC's own lines tell of plugins that go, past `logging`. It reads this once, when it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# Else it starts threads in each child that is forked, as for a command that runs as another user, and
# these abort when its files are closed for that command.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
