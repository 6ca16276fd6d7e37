"""Robots of other stacks in the graph, as far as their descriptions are here."""

import threading
from collections.abc import Callable
from contextlib import suppress

from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_ros.guarded_node import GuardedNode
from softform_ros.service_calls import asked_parameters

_STATE, _TYPE = "/driver_state", "softform_interfaces/msg/DriverState"
_ANSWER_SECONDS = 5.0


class Neighbours:
    """Finds the drivers of other namespaces, and asks each once which robot it drives.

    Args:
        node: Node of the console; another thread spins it.
        found: Takes namespace and robot; called in a thread of its own.
    """

    def __init__(self, node: GuardedNode, found: Callable[[str, Robot], None]) -> None:
        self._node, self._found = node, found
        self._known, self._thread = {node.get_namespace()}, threading.Thread()

    def look(self) -> None:
        """Look for drivers that are new; returns at once."""
        if self._thread.is_alive():
            return
        topics = self._node.get_topic_names_and_types()
        spaces = {topic.removesuffix(_STATE) for topic, types in topics if topic.endswith(_STATE) and _TYPE in types}
        if new := spaces - self._known:
            self._thread = threading.Thread(target=self._ask, args=(sorted(new),), name="neighbours", daemon=True)
            self._thread.start()

    def _ask(self, spaces: list[str]) -> None:
        for space in spaces:
            with suppress(RuntimeError):  # the node ends
                values = asked_parameters(self._node, f"{space}/actuation", ["robot"], _ANSWER_SECONDS)
                if values is None or not values["robot"]:
                    continue  # it starts, or has ended: it is asked again
                self._known.add(space)
                try:
                    robot = load_robot(str(values["robot"])).in_namespace(space)
                except SoftformError as error:
                    self._node.get_logger().warning(f"the robot of {space} is not shown: {error}")
                    continue
                self._found(space, robot)
