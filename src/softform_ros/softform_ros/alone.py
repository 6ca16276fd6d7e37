"""Find whether nodes of some names exist already: on this machine, by the kernel, or elsewhere in the graph.

What a killed process leaves in the graph goes only after the middleware's lease, so who is seen there is asked or
waited for. On this machine, names that are held leave no such doubt.
"""

import os
import socket
import sys
import time
from collections.abc import Sequence

from rclpy.node import Node

from softform_core.claims import claim
from softform_core.errors import SoftformError
from softform_core.network_reach import network_reach
from softform_ros.background_node import BackgroundNode
from softform_ros.service_calls import wait_until_answered

SEEN_SECONDS = 2.0
"""Time after which nodes of other machines are discovered, s."""

_GONE_SECONDS = 22.0  # Fast DDS forgets a participant that says nothing after 20
_LOOK_PERIOD = 0.05
_ANSWER_SECONDS = 1.0


def require_alone(node: Node, topic: str) -> socket.socket:
    """Hold a node's name, and see that no other node publishes what a node of its kind alone does.

    Args:
        node: The node, which has one publisher of the topic itself; nothing needs to spin it.
        topic: Such as `driver_state`, relative to its namespace.

    Returns:
        What holds the name; close it when the node may have a successor.

    Raises:
        SoftformError: If another one is there, with what to do.
    """
    name = node.get_fully_qualified_name()
    held = claim(name, node.context.get_domain_id())
    began, seen_for = time.monotonic(), SEEN_SECONDS if network_reach(os.environ) == "network" else 0.0
    try:
        while time.monotonic() < began + seen_for:
            others = node.count_publishers(topic) - 1
            if others > 0:
                seen_for = _GONE_SECONDS
                if time.monotonic() + _LOOK_PERIOD > began + seen_for:
                    raise SoftformError(
                        f"{others} other node(s) publish {node.resolve_topic_name(topic)}.",
                        "End them, or use another namespace or ROS_DOMAIN_ID.",
                    )
            elif time.monotonic() > began + SEEN_SECONDS:
                break
            time.sleep(_LOOK_PERIOD)
    except BaseException:
        held.close()
        raise
    return held


def seen_elsewhere(names: Sequence[str]) -> str:
    """Return the nodes, of some full names, that exist or did until a moment ago; empty if none does.

    One that answers counts at once; one that only stands in the graph does so if it does not go.
    """
    with BackgroundNode(f"looks_for_others_{os.getpid()}", "") as node:
        began = time.monotonic()
        while True:
            graph = {f"{space.rstrip('/')}/{name}" for name, space in node.get_node_names_and_namespaces()}
            seen = [name for name in names if name in graph]
            if any(wait_until_answered(node, name, _ANSWER_SECONDS) for name in seen[:1]):
                return seen[0]
            if time.monotonic() > began + (_GONE_SECONDS if seen else SEEN_SECONDS):
                return seen[0] if seen else ""
            time.sleep(_LOOK_PERIOD)


if __name__ == "__main__":  # for programs that have nothing else to do with ROS
    sys.stdout.write(seen_elsewhere(sys.argv[1:]))
