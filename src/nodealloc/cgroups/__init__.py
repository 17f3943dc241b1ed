"""Where a pod lives in the cgroup tree, and with which limits."""
