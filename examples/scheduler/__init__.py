"""A scheduler that asks 10,000 nodes what they would answer, without asking them.

    python -m examples.scheduler --nodes 10000 --how pool --top 10

`fleet` makes node snapshots, `score` turns a snapshot and a pod into a score,
`spread` does that for many: in this process, in a process pool, or on a Dask
cluster. The function and the snapshots are the same everywhere.
"""
