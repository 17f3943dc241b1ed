"""Which NUMA nodes should it go to: hints, their merge, policies, admission.

- A *hint* is one way to place a request: a set of NUMA nodes (a mask), and
  whether it is *preferred*. A *provider* gives hints; the *merge* picks the
  best combination of one hint of each.
- A *policy* says which merged hints are let in; a *scope*, whether containers
  are aligned one by one or together.
- A *claim* is what one member of a *workload* asks for. An *allocator* gives
  hints for claims and grants them; it is one immutable value.
- A *snapshot* is a node: policy, allocators, who is in. `admit` answers for a
  workload, `release` lets it go; both give a new snapshot and change nothing.

```text
                      ┌─▶ Placed(snapshot')   an Admitted; commit it, and the workload is in
 Snapshot ──▶ admit ──┼─▶ Refusal             a Refused; explain(it) says what would help
 Workload ──▶  pure   └─▶ NotYet              an allocator waits; ask again

 in admit, for each claim (or once for all):
   allocators ──hints──▶ merge ──affinity──▶ allocators ──allocate──▶ allocators'
```
"""

from nodealloc.topology._abilities import Accounts, Adopts, Confines, Recalled, Remembers, Restored
from nodealloc.topology._admission import admit, release
from nodealloc.topology._claims import Claim, ClaimKind, Owner, Workload, lent, peak
from nodealloc.topology._comparison import (
    Closest,
    Comparison,
    ComparisonContext,
    LeastAllocated,
    MostAllocated,
    Narrowest,
    Rank,
)
from nodealloc.topology._counted import LISTED_NODES, CountedHints, Need, node_masks
from nodealloc.topology._errors import (
    DistanceError,
    HintError,
    MaskOutsideError,
    NoEvidenceError,
    ProviderError,
    TooManyNodesError,
    UnknownAllocatorError,
    UnknownOptionError,
    UnknownPolicyError,
    WorkLimitError,
)
from nodealloc.topology._explain import explain
from nodealloc.topology._explanation import Explanation, Feasibility
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._holdings import Confinement, Holding, ResourceUse
from nodealloc.topology._merge import Merged, merge
from nodealloc.topology._node_sets import NodeSets
from nodealloc.topology._pods import workload_of
from nodealloc.topology._policy import Policy, PolicyName, Scope
from nodealloc.topology._ports import Allocator, Availability, Reports, Serves, Shortfall
from nodealloc.topology._restoring import Eviction, Move, RestorePlan
from nodealloc.topology._snapshot import Affinities, NumaMachine, Snapshot
from nodealloc.topology._verdicts import TOPOLOGY_AFFINITY_ERROR, Placed, Refusal
from nodealloc.verdicts import Admitted, NotYet

__all__ = [
    "LISTED_NODES",
    "TOPOLOGY_AFFINITY_ERROR",
    "Accounts",
    "Admitted",
    "Adopts",
    "Affinities",
    "Allocator",
    "Availability",
    "Claim",
    "ClaimKind",
    "Closest",
    "Comparison",
    "ComparisonContext",
    "Confinement",
    "Confines",
    "CountedHints",
    "DistanceError",
    "Eviction",
    "Explanation",
    "Feasibility",
    "HintError",
    "Hints",
    "Holding",
    "LeastAllocated",
    "MaskOutsideError",
    "Merged",
    "MostAllocated",
    "Move",
    "Narrowest",
    "Need",
    "NoEvidenceError",
    "NodeSets",
    "NotYet",
    "NumaMachine",
    "NumaMask",
    "NumaTopology",
    "Owner",
    "Placed",
    "Policy",
    "PolicyName",
    "ProviderError",
    "Rank",
    "Recalled",
    "Refusal",
    "Remembers",
    "Reports",
    "ResourceUse",
    "RestorePlan",
    "Restored",
    "Scope",
    "Serves",
    "Shortfall",
    "Snapshot",
    "TooManyNodesError",
    "TopologyHint",
    "UnknownAllocatorError",
    "UnknownOptionError",
    "UnknownPolicyError",
    "WorkLimitError",
    "Workload",
    "admit",
    "explain",
    "lent",
    "merge",
    "node_masks",
    "peak",
    "release",
    "workload_of",
]
