"""Bugs that were planted when each life's time without faults, and reports of devices, were looked at."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["EIGHTH_LOOK"]

EIGHTH_LOOK = {
    "hurry-not-heard-after-faults": Change(
        "a change is read with the next period, in a life whose disk had failed before",
        "podsources/_sources.py",
        "            hurried = view.want > have.number\n",
        "            hurried = False\n",
        "disks",
    ),
    "devices-well-without-plugin": Change(
        "devices are reported to be well once their plugin is gone",
        "devices/_inventory.py",
        "dark = attrs.evolve(self.devices, healthy=0)",
        "dark = self.devices",
        "calm",
    ),
    "devices-gone-at-registration": Change(
        "no device is reported from when a plugin registers again until it has listed its own",
        "devices/_inventory.py",
        "return attrs.evolve(moved, generation=generation, settled=False,",
        "return attrs.evolve(moved, devices=DeviceList(), generation=generation, settled=False,",
        "calm",
    ),
    "allocated-again-after-restart": Change(
        "what plugins answered is forgotten with the agent, and they are asked again for what runs",
        "devices/_state.py",
        '    response = row["response"]\n',
        "    response = None\n",
        "kills",
    ),
}
