"""Workspace of a robot: selects the points of a cloud that can belong to it."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.robots import Robot

Workspace = Literal["box", "hemisphere"]
WORKSPACES: tuple[Workspace, ...] = ("box", "hemisphere")


def inside_workspace(points: Array, robot: Robot, workspace: Workspace, margin: float) -> NDArray[np.bool_]:
    """Return which points (N, 3) m, in the robot's frame, lie where the robot can be, (N,).

    Args:
        points: See above.
        robot: The scanned robot.
        workspace: `box` is around every shape that the body takes, close around a membrane's. `hemisphere` is that of
            paper 004, Sec. V-A: about the base, of the robot's reach, on the side of the base to which the box reaches
            further. The reach is half the diagonal of a sheet, and that of the box if that is longer.
        margin: Added on every side, m; the paper's epsilon.
    """
    low, high = robot.body.box
    if workspace == "hemisphere":
        reach = max(float(np.linalg.norm(robot.extent)) / 2.0, float(np.abs([low, high]).max())) + margin
        side = np.sign(high[2] + low[2])  # 1 of a body above its base, -1 of one that hangs, 0 of one to both sides
        return np.asarray((np.square(points).sum(axis=1) <= reach**2) & (side * points[:, 2] >= -margin))
    return np.all((points >= low - margin) & (points <= high + margin), axis=1)
