"""Waits until a program that has just come knows who else is there."""

import time
from collections.abc import Callable

from rclpy.node import Node

QUIET_SECONDS = 1.0
"""Time without news from the graph after which it counts as known, s."""

DISCOVERY_TIMEOUT = 5.0
"""Longest wait for the graph, s: some nodes may come and go without end."""

_LOOK_PERIOD = 0.1


def await_discovery(
    node: Node, timeout: float = DISCOVERY_TIMEOUT, is_complete: Callable[[], bool] = lambda: True
) -> bool:
    """Wait until nodes and topics of others are known; returns whether there are others. Something else spins the node.

    Args:
        node: This program's.
        timeout: Time limit, s.
        is_complete: Whether those are there who are looked for: on a busy machine one process may be seen seconds after
            another, and the graph be quiet in between.
    """
    deadline = time.monotonic() + timeout
    seen: object = None
    quiet_since = time.monotonic()
    while True:
        nodes = sorted(node.get_node_names_and_namespaces())
        graph = nodes, sorted((topic, node.count_publishers(topic)) for topic, _ in node.get_topic_names_and_types())
        now = time.monotonic()
        if graph != seen:
            seen, quiet_since = graph, now
        if len(nodes) > 1 and now - quiet_since >= QUIET_SECONDS and is_complete():
            return True
        if now >= deadline:
            return len(nodes) > 1
        time.sleep(_LOOK_PERIOD)
