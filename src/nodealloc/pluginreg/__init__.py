"""Which plugins are alive: sockets that appear, registrations that follow them.

```text
 a directory ──▶ Watcher: "look!" ──▶ scan ──▶ Sightings ──▶ desired World
                                      path, inode, birth      one generation a sighting
                                                                     │ plan, a step at a time
 plugin's socket ◀── GetInfo, NotifyRegistrationStatus ──┐           ▼
 PluginHandler   ◀── validate, register, deregister ─────┴──── Registrations ──▶ actual World
```

| noun              | what it is                                                             |
|-------------------|------------------------------------------------------------------------|
| `Watcher`         | says when to look: `PollingWatcher`, `InotifyWatcher`, or yours        |
| `Sighting`        | one socket from its first look to its last, with a fresh generation    |
| `PluginHandler`   | takes plugins of one type; you write it                                |
| `PluginRegistrar` | the shell over `nodealloc.dsw_asw`: order per name, back-off, deadlines |
| `RegistrationStatus` | what is seen, what is registered, since when, what went wrong       |
"""

from nodealloc.pluginreg._errors import RegistrationBrokenError, RegistrationUnavailableError
from nodealloc.pluginreg._grpc import GrpcRegistration
from nodealloc.pluginreg._life import REGISTRATION_LIFE, RegistrationState
from nodealloc.pluginreg._polling import PollingWatcher
from nodealloc.pluginreg._ports import AsyncRegistration, PluginHandler, PluginInfo, Registration
from nodealloc.pluginreg._reconciler import PluginRegistrar
from nodealloc.pluginreg._sightings import SocketIdentity

__all__ = [
    "REGISTRATION_LIFE",
    "AsyncRegistration",
    "GrpcRegistration",
    "PluginHandler",
    "PluginInfo",
    "PluginRegistrar",
    "PollingWatcher",
    "Registration",
    "RegistrationBrokenError",
    "RegistrationState",
    "RegistrationUnavailableError",
    "SocketIdentity",
]
