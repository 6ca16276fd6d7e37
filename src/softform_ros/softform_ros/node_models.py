"""The models that the parameters of a node ask for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softform_core.forward.robot_models import ModelRequest
from softform_core.robots import Robot


def model_request(values: Mapping[str, Any], robot: Robot) -> ModelRequest:
    """Return the request for the models named by a node's parameters (`MODEL_PARAMETERS`, `surface_points`)."""
    folder = Path(values["model_folder"]) if values["model_folder"] else None
    return ModelRequest(robot, values["surface_points"], folder, values["sim_to_real"])
