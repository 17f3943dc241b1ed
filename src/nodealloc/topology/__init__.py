"""Which NUMA nodes should it go to: hints, their merge, policies, admission."""

from nodealloc.topology._admission import Verdict, admit, release
from nodealloc.topology._claims import Claim, ClaimKind, Owner, Workload, peak
from nodealloc.topology._comparison import (
    Closest,
    Comparison,
    LeastAllocated,
    MostAllocated,
    Narrowest,
    Rank,
    Scene,
)
from nodealloc.topology._errors import (
    DistanceError,
    HintError,
    MaskOutsideError,
    ProviderError,
    TooManyNodesError,
    UnknownOptionError,
    UnknownPolicyError,
)
from nodealloc.topology._explanation import Explanation, Outlook, ResourceView, Veto, WeakerFit
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._merge import Merged, merge
from nodealloc.topology._pods import workload_of
from nodealloc.topology._policy import KUBELET_MAX_NODES, Policy, PolicyName, Scope
from nodealloc.topology._ports import Allocator, Availability, NotReady, Reports, Shortfall
from nodealloc.topology._refusal import TOPOLOGY_AFFINITY_ERROR, Refusal
from nodealloc.topology._snapshot import Affinities, Snapshot
from nodealloc.topology._verdicts import Admitted, NotYet

__all__ = [
    "KUBELET_MAX_NODES",
    "TOPOLOGY_AFFINITY_ERROR",
    "Admitted",
    "Affinities",
    "Allocator",
    "Availability",
    "Claim",
    "ClaimKind",
    "Closest",
    "Comparison",
    "DistanceError",
    "Explanation",
    "HintError",
    "Hints",
    "LeastAllocated",
    "MaskOutsideError",
    "Merged",
    "MostAllocated",
    "Narrowest",
    "NotReady",
    "NotYet",
    "NumaMask",
    "NumaTopology",
    "Outlook",
    "Owner",
    "Policy",
    "PolicyName",
    "ProviderError",
    "Rank",
    "Refusal",
    "Reports",
    "ResourceView",
    "Scene",
    "Scope",
    "Shortfall",
    "Snapshot",
    "TooManyNodesError",
    "TopologyHint",
    "UnknownOptionError",
    "UnknownPolicyError",
    "Verdict",
    "Veto",
    "WeakerFit",
    "Workload",
    "admit",
    "merge",
    "peak",
    "release",
    "workload_of",
]
