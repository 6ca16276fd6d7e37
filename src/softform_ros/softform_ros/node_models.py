"""The models that the parameters of a node ask for: kept fresh, and of another kind when that is asked for."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from softform_core.errors import SoftformError
from softform_core.forward.model_choice import ChosenSurface
from softform_core.forward.robot_models import (
    GROUP,
    SIMULATED,
    ModelRequest,
    RobotModels,
    SurfaceModels,
    kind_of_models,
    open_surface_models,
)
from softform_core.plugins import plugin_kinds
from softform_core.robots import Robot
from softform_interfaces.srv import UseModel
from softform_ros.lifecycle import SoftformLifecycleNode
from softform_ros.timers import create_steady_timer

PERIOD = 1.0
"""Time between two looks at the model's files, s."""


Models = TypeVar("Models", bound=RobotModels)


def open_node_models(
    node: SoftformLifecycleNode,
    robot: Robot,
    open_kind: Callable[[str, ModelRequest], Models],
    warm_up: Callable[[SurfaceModels], object] = lambda models: None,
) -> Models:
    """Open the models that the parameters `MODEL_PARAMETERS` and `surface_points` of a node name, until its cleanup.

    Once a second it is looked whether they were trained anew; what came into use, or was rejected, is logged. Models of
    a surface can be of another kind at any time: in a goal, or by the service `NODE/use_model`.

    Args:
        node: The node, which configures.
        robot: The robot.
        open_kind: Opens models of a kind: `open_models` or `open_surface_models`, whose errors are raised.
        warm_up: Pays what the first use of models of another kind would pay; called in another thread.
    """
    values = node.parameters
    folder = Path(values["model_folder"]) if values["model_folder"] else None
    request = ModelRequest(robot, values["surface_points"], folder, values["sim_to_real"])
    kind = kind_of_models(values["model"], request)
    if kind != values["model"] and kind == SIMULATED:
        said = f"'{robot.name}' has no learned model: its simulator predicts and solves (model '{kind}')."
        node.get_logger().info(said)
    models = open_kind(kind, request)
    if isinstance(models, SurfaceModels):

        def opened(kind: str) -> SurfaceModels:
            other = open_surface_models(kind, ModelRequest(robot, values["surface_points"]))
            warm_up(other)
            return other

        chosen = ChosenSurface(kind, models, opened)
        _ModelService(node, chosen)
        models = cast(Models, chosen)

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


class _ModelService:
    """Serves `NODE/use_model`: models are opened in another thread, and the executor goes on feeding the driver.

    Who asks for the kind that is in use gives up the one that is being opened.
    """

    def __init__(self, node: SoftformLifecycleNode, models: ChosenSurface) -> None:
        self._node, self._models = node, models
        self._opening = self._failure = ""
        service = node.create_service(UseModel, f"{node.get_name()}/use_model", self._on_request)
        node.opened.callback(node.destroy_service, service)

    def _on_request(self, request: UseModel.Request, response: UseModel.Response) -> UseModel.Response:
        models = self._models
        if request.model == models.kind:
            self._opening = self._failure = ""
        elif self._opening and request.model not in ("", self._opening):
            response.message = f"The model '{self._opening}' is being opened. Wait until that has ended."
        elif request.model and not self._opening:
            self._failure, self._opening = "", request.model
            wanted = request.model, self._node.executor
            threading.Thread(target=self._open, args=wanted, name="model", daemon=True).start()
        response.success = not (response.message or self._failure)
        opening = f"The model '{self._opening}' is being opened." if self._opening else ""
        response.message = response.message or self._failure or opening
        response.model, response.models = models.kind, plugin_kinds(GROUP)
        return response

    def _open(self, kind: str, executor: Any) -> None:
        try:
            self._models.of(kind)
            failure = ""
        except SoftformError as error:
            failure = str(error)
        except Exception as error:  # a model of another package may raise anything
            failure = f"The model '{kind}' failed: {type(error).__name__}: {error}."
        executor.create_task(self._opened, kind, failure)

    def _opened(self, kind: str, failure: str) -> None:
        if kind != self._opening:
            return  # it was given up meanwhile
        self._opening, self._failure = "", failure
        if failure:
            self._node.get_logger().warning(f"model '{kind}' is not used: {failure}")
        else:
            self._models.choose(kind)
            self._node.get_logger().info(f"model '{kind}' is in use")
        self._node.diagnostics.publish()
