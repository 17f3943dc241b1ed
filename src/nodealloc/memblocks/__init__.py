"""Which memory exactly: blocks per NUMA node and page size."""
