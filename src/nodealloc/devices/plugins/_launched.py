"""What a container gets, from what its plugins answered."""

from __future__ import annotations

from nodealloc._typed import typed
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._launch import Launch, Response, merge
from nodealloc.devices.plugins._codec import decode_response
from nodealloc.topology import NotYet, Owner

__all__ = ["launch_of"]


@typed
def launch_of(allocator: DeviceAllocator, owner: Owner, /) -> Launch | NotYet:
    """What a container gets with the devices that it holds; empty when it holds none.

    Needs no plugin: the answers are remembered. *Not yet* while one is still
    to come.

    Raises:
        ConfigurationError: An argument is of another kind.
        DecodeError: What was remembered is no `ContainerAllocateResponse`.
    """
    responses: dict[str, Response] = {}
    for (member, resource), grant in allocator.grants.get(owner.workload, {}).items():
        if member != owner.member:
            continue
        if grant.response is None:
            reason = f"plugin {resource} has not prepared the devices of {owner.member} yet"
            return NotYet(blocker=resource, message=reason, after_s=allocator.retry_s)
        responses[resource] = decode_response(grant.response)
    return merge(responses)
