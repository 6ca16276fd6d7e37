"""The forward pipeline of a robot from the models that ship with it."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.networks.mlp_weights import MlpWeights, extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.robots import Robot

__all__ = ["SURFACE_POINTS", "load_pipeline", "pipeline_of", "simulated_shapes"]

SURFACE_POINTS = 1000
"""Points over which IK sums Eq. 15 (paper 000, Table II: as many as a frame's samples)."""


def pipeline_of(
    robot: Robot, forward_kinematics: MlpWeights, uv: NDArray[np.float64], sim_to_real: SimToReal | None = None
) -> ForwardPipeline:
    """Return the pipeline of `robot` at surface parameters uv (P, 2), with a sim-to-real transfer or not.

    Raises:
        SoftformError: If the networks are not of the robot's surface.
    """
    return ForwardPipeline(forward_kinematics, uv, sim_to_real, robot.patches, robot.actuation_names)


def load_pipeline(robot: Robot, points: int = SURFACE_POINTS, model: Path | None = None) -> ForwardPipeline:
    """Return the pipeline of the simulated `robot`; `LivePipeline` is the one of the real robot.

    Raises:
        SoftformError: If the model is missing, corrupt, of another format or made for another robot.
    """
    return simulated_shapes(robot, robot.patches.samples(points), model)


def simulated_shapes(robot: Robot, uv: NDArray[np.float64], model: Path | None = None) -> ForwardPipeline:
    """Load the pipeline of `robot` at points (P, 2), without sim-to-real; `model` as for `load_pipeline`.

    Raises:
        SoftformError: For the reasons of `load_pipeline`.
    """
    network, _ = load_forward_kinematics(robot, model)
    return pipeline_of(robot, extract_mlp(network), uv)
