"""ROS domains of this machine: those in which stacks run, and one of its own for a stack that a command launches."""

import os
import random

import psutil

_SIGN = "bringup_manager_node"
"""Part of the command line that a process of every launched stack has."""

_HIGHEST_ROS_DOMAIN = 101
"""Highest usable domain: ports of higher ones are among those that Linux gives away."""


def domains_of_stacks() -> list[int]:
    """Return the ROS domains in which this user's stacks run on this machine."""
    return sorted(_domains_of_processes(_SIGN))


def enter_domain_of_its_own() -> None:
    """Let this process and all that it starts be in a domain in which no process of this user is.

    What a command launches for itself must not reach, or be reached by, another stack on this machine.
    """
    in_use = {0, *_domains_of_processes("")}
    free = [domain for domain in range(1, _HIGHEST_ROS_DOMAIN + 1) if domain not in in_use]
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().choice(free or range(1, _HIGHEST_ROS_DOMAIN + 1)))


def _domains_of_processes(sign: str) -> set[int]:
    found = set()
    for process in psutil.process_iter():
        try:
            if any(sign in word for word in process.cmdline()):
                found.add(int(process.environ().get("ROS_DOMAIN_ID") or 0))
        except (psutil.Error, ValueError):  # it has ended, or is somebody else's
            continue
    return found
