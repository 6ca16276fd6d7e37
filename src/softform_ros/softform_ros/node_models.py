"""The models that the parameters of a node ask for; newly trained ones are taken into use while it runs."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from softform_core.forward.robot_models import ModelRequest, RobotModels
from softform_core.robots import Robot
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.timers import create_steady_timer

PERIOD = 1.0
"""Time between two looks at the model's files, s."""


Models = TypeVar("Models", bound=RobotModels)


def open_node_models(
    node: SoftformLifecycleNode, robot: Robot, open_kind: Callable[[str, ModelRequest], Models]
) -> Models:
    """Open the models that the parameters `MODEL_PARAMETERS` and `surface_points` of a node name, until its cleanup.

    Once a second it is looked whether they were trained anew; what came into use, or was rejected, is logged.

    Args:
        node: The node, which configures.
        robot: The robot.
        open_kind: Opens models of a kind: `open_models` or `open_surface_models`, whose errors are raised.
    """
    values = node.parameters
    folder = Path(values["model_folder"]) if values["model_folder"] else None
    request = ModelRequest(robot, values["surface_points"], folder, values["sim_to_real"])
    models = open_kind(values["model"], request)

    def look() -> None:
        line = models.refresh()
        if line is None:
            return
        # rclpy rejects another severity from the same line of code.
        if models.fault:
            node.get_logger().warning(line)
        else:
            node.get_logger().info(line)
        node.diagnostics.publish()

    node.opened.callback(node.destroy_timer, create_steady_timer(node, PERIOD, look))
    return models
