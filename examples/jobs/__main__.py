"""Run a command on CPUs that no other job has: `python -m examples.jobs --cpus 4 -- COMMAND`.

Everybody who names the same `--state` directory shares the node. The command
takes this process's place and is known by its pid and start time: when it is
gone, however it ended, its CPUs are free for the next one who looks.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from nodealloc import cpuset, topology
from nodealloc.checkpoint import FileStore, JsonCheckpoint, Since, this_machine
from nodealloc.errors import NodeallocError
from nodealloc.machine import discover, draw_text
from nodealloc.podspec import Quantity

KEY, WRITER = "jobs", cpuset.AffinityWriter()


def living(policy: cpuset.StaticPolicy, store: FileStore) -> cpuset.CpuAllocator:
    """What is remembered, without jobs that have ended; what the machine moved is confined anew."""
    contents = store.read()
    if contents.damaged:
        remedy = "nothing is granted over that: end all jobs and remove it"
        sys.exit(f"jobs: {contents.damaged[0].kept_as}: {contents.damaged[0].reason}; {remedy}")
    record = contents.get(KEY, JsonCheckpoint)
    if record is None or contents.since in {Since.REBOOT, Since.OTHER_MACHINE}:
        return cpuset.CpuAllocator(policy=policy)
    plan = cpuset.CpuAllocator(policy=policy).plan_restore(record)
    node, moved = plan.allocator, {move.owner.workload: move.after for move in plan.move}
    for job in tuple(node.state.assignments):
        try:
            WRITER.write(job, moved[job], None) if job in moved else WRITER.read(job)
        except cpuset.TargetGoneError:
            node = node.release(job)
    return node


def whole_cpus(text: str) -> Quantity:
    """An amount that is given out for oneself; anything else would share in silence."""
    amount = Quantity.parse(text)
    if not amount.is_whole or amount < Quantity.of(1):
        raise argparse.ArgumentTypeError(f"{text}: whole CPUs are given out, 1 or more")
    return amount


def main() -> None:
    """Decide, remember, confine, and only then become the command; status 1 and a line where it cannot."""
    try:
        run()
    except (NodeallocError, OSError, ValueError) as error:
        sys.exit(f"jobs: {error}")


def run() -> None:
    """The same; raises what stands against it."""
    parser = argparse.ArgumentParser(prog="python -m examples.jobs")
    parser.add_argument("--state", default="/run/nodealloc-jobs", help="directory that all shells share")
    parser.add_argument("--cpus", type=whole_cpus, default=Quantity.of(1), help="whole CPUs")
    parser.add_argument("--policy", type=topology.PolicyName, default=topology.PolicyName.BEST_EFFORT)
    parser.add_argument("--reserved", type=int, default=0, help="CPUs that no job gets")
    parser.add_argument("--show", action="store_true", help="draw the node")
    parser.add_argument("command", nargs="*", help="after --")
    asked = parser.parse_args()
    if not asked.command and not asked.show:
        parser.error("give a command after --, or --show")
    machine, formats = discover("/sys").machine, {KEY: JsonCheckpoint.unmarshal}
    policy = cpuset.StaticPolicy.of(machine, reserved=asked.reserved)
    job = topology.Owner(cpuset.process_target(os.getpid()), " ".join(asked.command))
    with FileStore(asked.state, formats, identity=this_machine(), wait=True) as store:
        node = living(policy, store)
        if asked.command:
            claim = topology.Claim(owner=job, amounts={"cpu": asked.cpus})
            snapshot = topology.Snapshot(
                numa=topology.NumaTopology(nodes=tuple(machine.nodes), distances=machine.distances or {}),
                policy=topology.Policy(name=asked.policy),
                allocators=(node,),
                admitted={key: {} for key in node.state.assignments},
            )
            verdict = topology.admit(snapshot, topology.Workload(key=job.workload, claims=(claim,)))
            if not isinstance(verdict, topology.Admitted):
                told = (
                    topology.explain(verdict).text if isinstance(verdict, topology.Refusal) else str(verdict)
                )
                sys.exit(told)
            node = verdict.snapshot[cpuset.CpuAllocator]
        store.commit({KEY: node.to_record()})
    if asked.show:
        holders = {f"{one.workload} {one.member}": held.cpus for one, held in node.state.items()}
        print(draw_text(machine, holders, shared=node.shared, reserved=policy.reserved), flush=True)
    if asked.command:
        program = shutil.which(str(asked.command[0]))
        if program is None:
            sys.exit(f"jobs: {asked.command[0]}: no such command")
        WRITER.write(job.workload, node.cpus_of(job), None)
        os.execv(program, asked.command)  # noqa: S606  # it takes this process's place


if __name__ == "__main__":
    main()
