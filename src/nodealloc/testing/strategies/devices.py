"""Hypothesis strategies: devices, lists of them, lives of plugins, allocators."""

from __future__ import annotations

from hypothesis import strategies as st

from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, Phase, PluginOptions

__all__ = ["device_allocators", "device_lists", "devices", "inventories"]

_IDS = st.text("abc019-", min_size=0, max_size=4)
_HEALTH = st.sampled_from(["Healthy", "Healthy", "Unhealthy", "Odd", ""])


@st.composite
def devices(draw: st.DrawFn, nodes: int = 6) -> Device:
    """A device as a plugin might describe it, sensible or not; ids may repeat."""
    place = draw(st.none() | st.integers(1, (1 << nodes) - 1))
    return Device(draw(_IDS), draw(_HEALTH), place)


def device_lists(nodes: int = 4) -> st.SearchStrategy[DeviceList]:
    """A list as it was checked against a machine of so many nodes."""
    return st.lists(devices(nodes), max_size=10).map(lambda listed: DeviceList.of(listed, nodes=range(nodes)))


def inventories(resource: str, nodes: int = 4) -> st.SearchStrategy[Inventory]:
    """A resource at any point of its plugin's life."""
    return st.builds(
        Inventory,
        resource=st.just(resource),
        phase=st.sampled_from(Phase),
        generation=st.integers(0, 5),
        devices=device_lists(nodes),
        options=st.builds(PluginOptions, preferred_allocation=st.booleans()),
        settled=st.booleans(),
    )


@st.composite
def device_allocators(draw: st.DrawFn, resource: str, nodes: int = 4) -> DeviceAllocator:
    """An allocator whose plugin serves; some devices are ill, some have no place, some have several."""
    listed = draw(
        st.lists(
            st.builds(
                Device,
                st.integers(0, 99).map("dev-{}".format),
                _HEALTH,
                st.none() | st.integers(1, (1 << nodes) - 1),
            ),
            min_size=1,
            max_size=12,
            unique_by=lambda device: device.id,
        )
    )
    options = PluginOptions(preferred_allocation=draw(st.booleans()))
    blank = Inventory(resource=resource).registered(1, now_s=0.0)
    serving = blank.listed(1, DeviceList.of(listed, nodes=range(nodes)), options, now_s=0.0)
    return DeviceAllocator(nodes=tuple(range(nodes))).with_inventory(serving)
