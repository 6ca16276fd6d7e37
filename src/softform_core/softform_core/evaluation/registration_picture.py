"""The picture of a registered scanner: the scan on the robot, and where the scanner stands in each placement."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from softform_core.arrays import Array
from softform_core.evaluation.drawing import MEASURED_COLOUR, REST_COLOUR
from softform_core.files import made_folder, write_figure
from softform_core.geometry.rigid import RigidTransform
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.units import MM_PER_M

_MOST, _POINTS = 8, 1500
_AXES = ("#D55E00", "#009E73", "#0072B2")
_FARTHEST = 3.0


def draw_registration(path: Path, robot: Robot, points: Array, motions: Sequence[RigidTransform]) -> None:
    """Draw a scan, (N, 3) m in its own frame, over the resting robot, once for each of the motions into its frame.

    Chambers of a sheet and base markers are named; the frame of the scan is drawn where it comes to lie, and where
    that is further away than three sizes of the robot, towards there.

    Raises:
        SoftformError: If the file cannot be written.
    """
    shown = motions[:_MOST]
    rows, columns = (1, len(shown)) if len(shown) < 4 else (2, (len(shown) + 1) // 2)
    figure = Figure(figsize=(1.0 + 5.0 * columns, 5.0 * rows), dpi=100, layout="constrained")
    surface = MM_PER_M * rest_surface(robot).points
    size = float(np.ptp(surface, axis=0).max())
    scan = MM_PER_M * points[:: max(1, len(points) // _POINTS)]
    for number, motion in enumerate(shown, 1):
        axes = figure.add_subplot(rows, columns, number, projection="3d")
        assert isinstance(axes, Axes3D)
        axes.scatter(*surface[::3].T, s=1.0, c=REST_COLOUR, alpha=0.3)
        placed = motion.scaled(MM_PER_M)
        axes.scatter(*placed.apply(scan).T, s=1.5, c=MEASURED_COLOUR)
        _name(axes, robot)
        origin, middle = placed.translation, surface.mean(axis=0)
        away = float(np.linalg.norm(origin - middle))
        origin = middle + (origin - middle) * min(1.0, _FARTHEST * size / max(away, 1e-9))
        for colour, axis, letter in zip(_AXES, placed.rotation.T, "xyz", strict=True):
            axes.plot(*np.stack([origin, origin + 0.3 * size * axis]).T, color=colour, linewidth=2.0)
            axes.text(*(origin + 0.35 * size * axis), letter, color=colour)
        axes.set(
            xlabel="x (mm)", ylabel="y (mm)", zlabel="z (mm)", title=f"placement {number}" if len(motions) > 1 else ""
        )
        axes.set_aspect("equal")
    figure.suptitle(f"Scan on '{robot.name}' at rest, and the frame of the scan")
    made_folder(path.parent)
    write_figure(path, figure)


def _name(axes: Axes3D, robot: Robot) -> None:
    outlines = robot.body.outlines()
    if not robot.body.goes_around and not robot.body.is_unrolled and len({one.panel for one in outlines}) == 1:
        for name, one in zip(robot.body.inputs, outlines, strict=True):
            axes.text(MM_PER_M * one.x, MM_PER_M * one.y, 0.0, name, ha="center", zorder=10)
    for name, place in robot.base_markers.items():
        axes.text(*(MM_PER_M * np.array(place)), name, size=8)
