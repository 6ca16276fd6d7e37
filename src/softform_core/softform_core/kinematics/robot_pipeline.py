"""The forward pipeline of a robot from the models that ship with it."""

from pathlib import Path

from softform_core.kinematics.pipeline import ForwardPipeline, grid_uv
from softform_core.robots import Robot

SURFACE_POINTS = 1000
"""Points over which IK sums Eq. 15 (paper 000, Table II: as many as a frame's samples)."""


def load_pipeline(robot: Robot, points: int = SURFACE_POINTS, model: Path | None = None) -> ForwardPipeline:
    """Pipeline of `robot` over an even grid of about `points` surface parameters.

    Args:
        robot: Whose model to load.
        points: Wanted number of surface points.
        model: Folder of the trained N_fk; None for the robot's own in `models/`.

    Raises:
        SoftformError: If the model is missing, corrupt, of another format or made for another robot.
    """
    from softform_core.networks.layers import extract_mlp
    from softform_core.networks.store import load_forward_kinematics

    network, _ = load_forward_kinematics(robot, model)
    surface = robot.surface
    return ForwardPipeline(extract_mlp(network), grid_uv(points), None, surface.rows, surface.columns, surface.degree)
