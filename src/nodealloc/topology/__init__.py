"""Which NUMA nodes should it go to: hints, their merge, policies, admission."""

from nodealloc.topology._claims import Claim, ClaimKind, Owner, Workload, peak
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._pods import workload_of
from nodealloc.topology._ports import Allocator, Availability, NotReady, Reports, Shortfall

__all__ = [
    "Allocator",
    "Availability",
    "Claim",
    "ClaimKind",
    "Hints",
    "NotReady",
    "NumaMask",
    "NumaTopology",
    "Owner",
    "Reports",
    "Shortfall",
    "TopologyHint",
    "Workload",
    "peak",
    "workload_of",
]
