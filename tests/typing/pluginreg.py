"""Plugins come and go; sockets of the mind."""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.dirwatch import Watcher
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.pluginreg import PluginHandler, PluginInfo, PluginRegistrar, Registration, SocketIdentity
from nodealloc.testing.dirwatch import FakeWatcher
from nodealloc.testing.pluginreg import FakeRegistration


class Drivers:
    """A `PluginHandler`."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def validate(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Everybody is welcome."""

    def register(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Take it on."""
        self.held.add(name)

    def deregister(self, name: str, endpoint: str, /) -> None:
        """Let it go."""
        self.held.discard(name)


drivers = Drivers()
handlers: dict[str, PluginHandler] = {"CSIPlugin": drivers}
info = PluginInfo(type="CSIPlugin", name="csi.example.com", endpoint="/run/csi.sock", versions=("1.0.0",))
client: Registration = FakeRegistration({"/reg/a.sock": info})
watcher: Watcher = FakeWatcher()
sockets = {"/reg/a.sock": SocketIdentity(1, 7, b"")}
registrar = PluginRegistrar(
    "/reg",
    handlers,
    watcher=watcher,
    registration=client,
    executor=InlineExecutor(),
    look=lambda _directory: sockets,
)
registrar.observe()
registrar.reconciler.run_until_quiet()
assert drivers.held == {"csi.example.com"}
