"""Refuse to launch a second stack of the same nodes: a robot has one driver, and a driver one manager."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence

from softform_core.claims import ClaimedError, claim
from softform_core.errors import SoftformError
from softform_core.network_reach import network_reach
from softform_launch.launch_file import ProcessDescription


def hold_nodes(processes: Sequence[ProcessDescription]) -> list[socket.socket]:
    """Hold the names of a launch's nodes until this process and its children end.

    On this machine the kernel decides, so that of two launches at the same moment one goes on. Where the network takes
    part the graph is looked at too, by a process of its own: threads of the middleware would not survive a fork.

    Raises:
        SoftformError: If another launch holds one of them, or a node of one of these names is on the network.
    """
    held: list[socket.socket] = []
    for process in processes:
        if not process.node:
            continue
        domain = _environment(process).get("ROS_DOMAIN_ID") or "0"
        try:
            held.append(claim(f"launch of {process.node}", int(domain)))
        except ClaimedError as error:
            raise _runs_already(process.node, domain, error.holder) from error
        except ValueError as error:
            raise SoftformError(f"ROS_DOMAIN_ID is '{domain}'.", "Set it to a number from 0 to 101.") from error
    _look_at_network([one for one in processes if one.node and network_reach(_environment(one)) == "network"])
    return held


def _look_at_network(processes: Sequence[ProcessDescription]) -> None:
    if not processes:
        return
    command = [sys.executable, "-m", "softform_ros.alone", *(process.node for process in processes)]
    environment = _environment(processes[0])
    looked = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if looked.returncode:
        reason = (looked.stderr.strip().splitlines() or ["no reason"])[-1]
        raise SoftformError(f"Nobody knows whether the network has such a stack: {reason}.", "Run ./softform doctor.")
    said = looked.stdout.split()  # the middleware writes there, too
    for process in processes:
        if process.node in said:
            raise _runs_already(process.node, environment.get("ROS_DOMAIN_ID") or "0", "on the network")


def _environment(process: ProcessDescription) -> dict[str, str]:
    return {**os.environ, **process.environment}


def _runs_already(node: str, domain: str, holder: str) -> SoftformError:
    space, _, name = node.rpartition("/")
    return SoftformError(
        f"A stack runs in {space or '/'} already (domain {domain}, {holder}): it has the node {name}.",
        "See it with ./softform status and stop it there, or launch this one with another namespace:=NAME.",
    )
