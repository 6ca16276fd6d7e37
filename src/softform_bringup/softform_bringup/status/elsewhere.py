"""Finds stacks of this machine in other ROS domains: `collect` and `demo` launch theirs in one of their own."""

import psutil

_SIGN = "bringup_manager_node"
"""Part of the command line of a process that every launched stack has."""


def domains_of_stacks() -> list[int]:
    """ROS domains in which this user's stacks run on this machine."""
    found = set()
    for process in psutil.process_iter():
        try:
            if any(_SIGN in word for word in process.cmdline()):
                found.add(int(process.environ().get("ROS_DOMAIN_ID") or 0))
        except (psutil.Error, ValueError):  # it has ended, or is somebody else's
            continue
    return sorted(found)
