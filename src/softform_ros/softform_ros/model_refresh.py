"""Newly trained models, taken into use while a node runs."""

from softform_core.forward.robot_models import RobotModels
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.timers import create_steady_timer

PERIOD = 1.0
"""Time between two looks at the model's files, s."""


class ModelRefresh:
    """Lets models look once a second whether they were trained anew, and logs what came into use or was rejected."""

    def __init__(self, node: SoftformLifecycleNode, models: RobotModels) -> None:
        self._node, self._models = node, models
        self._timer = create_steady_timer(node, PERIOD, self._look)

    def close(self) -> None:
        """Look no more."""
        self._node.destroy_timer(self._timer)

    def _look(self) -> None:
        line = self._models.refresh()
        if line is None:
            return
        # rclpy rejects another severity from the same line of code.
        if self._models.fault:
            self._node.get_logger().warning(line)
        else:
            self._node.get_logger().info(line)
        self._node.diagnostics.publish()
