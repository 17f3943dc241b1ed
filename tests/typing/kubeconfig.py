"""A configuration and what it comes to, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

from nodealloc.kubeconfig import (
    KubeletConfig,
    NodePlan,
    kubelet_config,
    life_policy,
    node_settings,
    pod_sources,
)
from nodealloc.machine import machine_from_text
from nodealloc.podlife import LifePolicy, NodeSettings
from nodealloc.podsources import PodSources
from nodealloc.podspec import resources
from nodealloc.topology import Snapshot

config = kubelet_config({"maxPods": 20, "runtimeRequestTimeout": "1m30s", "staticPodPath": "/etc/pods"})
assert_type(config, KubeletConfig)
assert_type(config.eviction_hard, Mapping[str, str])
assert_type(life_policy(config), LifePolicy)
assert life_policy(config).call_s == 90.0
machine = machine_from_text("1 socket x 2 cores, memory=4Gi")
capacity = resources({"cpu": 2, "memory": "4Gi", "ephemeral-storage": "10Gi", "pid": 1000})
plan = NodePlan.of(config, machine, name="n1", capacity=capacity, kernel="6.1.0")
assert_type(plan.empty, Snapshot)
assert plan.capacity["pods"].value == 20
assert_type(node_settings(config, plan, root=Path("/var/lib/n1")), NodeSettings)
assert_type(pod_sources(config, node_name="n1"), PodSources)
