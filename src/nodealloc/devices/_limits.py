"""Values only: how long a plugin may take, and how much of the agent it may have."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._arguments import within
from nodealloc._typed import typed_fields

__all__ = ["Deadlines", "PluginLimits"]

_AT_LEAST_1 = within(1)
_LASTS = within(1e-3, 1e9)


@typed_fields
@attrs.frozen(kw_only=True)
class Deadlines:
    """How long a plugin may take, in seconds.

    Attributes:
        connect_s: From its registration until it listens and has answered
            `GetDevicePluginOptions`; its `Register` waits for that.
        preferred_s: For `GetPreferredAllocation`.
        allocate_s: For `Allocate`; the kubelet sets no limit.
        pre_start_s: For `PreStartContainer`; the kubelet's limit is 30 s too.

    Raises:
        ConfigurationError: No time at all, or without an end.
    """

    connect_s: float = attrs.field(default=10.0, validator=_LASTS)
    preferred_s: float = attrs.field(default=10.0, validator=_LASTS)
    allocate_s: float = attrs.field(default=60.0, validator=_LASTS)
    pre_start_s: float = attrs.field(default=30.0, validator=_LASTS)


@typed_fields
@attrs.frozen(kw_only=True)
class PluginLimits:
    """How much of the agent plugins may have.

    Attributes:
        resources: Resources that are known, at most. A plugin serves one with
            up to four threads and two descriptors.
        introductions: Plugins that are called back at once after they registered.
            Where there are more, newcomers come first, and whoever does not answer gives way.
        list_bytes: Of a list of devices; 100,000 devices take 2 to 6 MB. What is larger is
            refused unread and ends the stream, as by a kubelet: its plugin is away then.
        answer_bytes: Of any other answer; it is remembered with its grant.

    Source: kubelet v1.32 ``cm/devicemanager/plugin/v1beta1/client.go``, which dials with
    gRPC's own limit of 4 MiB a message; the others are ours.
    """

    resources: int = attrs.field(default=256, validator=_AT_LEAST_1)
    introductions: int = attrs.field(default=96, validator=_AT_LEAST_1)
    list_bytes: int = attrs.field(default=4 << 20, validator=_AT_LEAST_1)
    answer_bytes: int = attrs.field(default=4 << 20, validator=_AT_LEAST_1)
