"""Pictures of a resting robot and what lies on it: a shape that it is to take, or a scan that registers a scanner."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from softform_core.arrays import Array
from softform_core.evaluation.drawing import HEIGHT_MAP, MEASURED_COLOUR, PALETTE, PREDICTED_COLOUR, REST_COLOUR
from softform_core.files import made_folder, write_figure
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.counterpart import lies_beside
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

_MOST_FACES = 30_000
"""Most faces of a drawn mesh; one with more is drawn as points, as a cloud is."""

_SAMPLES = 12_000
_AXES, _OF_AXES = "xyz", (MEASURED_COLOUR, PALETTE[2], PREDICTED_COLOUR)
_MOST_PLACEMENTS, _SCAN_POINTS = 8, 1500
_FARTHEST = 3.0
"""Sizes of the robot, beyond which the frame of a scan is drawn towards where it is."""


def draw_shape(path: Path, shape: Shape, resting: Shape | None, title: str) -> None:
    """Draw a shape in space and in plan, coloured by height, what lies beside the robot in another colour.

    A robot that stands or hangs is seen from the front in place of the plan.

    Args:
        path: A picture; an existing one is replaced.
        shape: The shape at its pose, m.
        resting: The robot's surface at rest as a mesh, m; None of a robot without a surface.
        title: Name of what was read.

    Raises:
        SoftformError: If the file cannot be written.
    """
    is_surface = shape.faces is not None and len(shape.faces) <= _MOST_FACES
    corners = (shape.points[shape.faces] if is_surface else shape.sample(_SAMPLES).points[:, None]) * MM_PER_M
    places = corners.mean(axis=1)
    figure = Figure(figsize=(13.0, 6.2), dpi=100, layout="constrained")
    figure.suptitle(title, fontsize=11)
    space = figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False)
    plan = figure.add_subplot(1, 2, 2)
    beside, across = np.zeros(len(places), dtype=bool), [0, 1]
    if resting is not None:
        beside, robot = lies_beside(places / MM_PER_M, resting), resting.points * MM_PER_M
        across = [0, 1] if resting.extent.argmin() == 2 else [1, 2]
        space.plot_trisurf(*robot.T, triangles=resting.faces, color=REST_COLOUR, alpha=0.25)
        plan.triplot(*robot[:, across].T, resting.faces, color=REST_COLOUR, linewidth=0.2, zorder=0.0)
        plan.plot([], [], color=REST_COLOUR, label="the robot at rest")
    heights = ScalarMappable(
        Normalize(*np.percentile(places[~beside, 2], [0, 100]) if not beside.all() else ()), HEIGHT_MAP
    )
    colours = heights.to_rgba(places[:, 2])
    colours[beside] = to_rgba(MEASURED_COLOUR)
    upwards = places[:, 3 - sum(across)].argsort()
    if is_surface:
        space.add_collection3d(Poly3DCollection(corners, facecolors=colours))
        plan.add_collection(PolyCollection(corners[upwards][:, :, across], facecolors=colours[upwards]))
        space.auto_scale_xyz(*corners.reshape(-1, 3).T, had_data=resting is not None)
        plan.autoscale_view()
    else:
        space.scatter(*places.T, s=4, c=colours, depthshade=False)
        flat = places[upwards][:, across]
        plan.scatter(flat[:, 0], flat[:, 1], s=4, c=colours[upwards])
    if beside.any():
        plan.plot([], [], "s", color=MEASURED_COLOUR, label="of the shape, beside the robot")
    figure.colorbar(heights, ax=plan, label="height z of the shape (mm)", shrink=0.8)
    plan.set(aspect="equal", xlabel=f"{_AXES[across[0]]} (mm)", ylabel=f"{_AXES[across[1]]} (mm)")
    if plan.get_legend_handles_labels()[0]:
        figure.legend(*plan.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    space.set(xlabel="x (mm)", ylabel="y (mm)", zlabel="z (mm)", aspect="equal")
    space.locator_params("z", nbins=3)
    write_figure(path, figure)


def draw_registration(path: Path, robot: Robot, points: Array, motions: Sequence[RigidTransform]) -> None:
    """Draw a scan, (N, 3) m in its own frame, over the resting robot, once for each of the motions into its frame.

    Chambers of a sheet and base markers are named; the frame of the scan is drawn where it comes to lie, and where
    that is further away than three sizes of the robot, towards there.

    Raises:
        SoftformError: If the file cannot be written.
    """
    shown = motions[:_MOST_PLACEMENTS]
    rows, columns = (1, len(shown)) if len(shown) < 4 else (2, (len(shown) + 1) // 2)
    figure = Figure(figsize=(1.0 + 5.0 * columns, 5.0 * rows), dpi=100, layout="constrained")
    surface = MM_PER_M * rest_surface(robot).points
    size = float(np.ptp(surface, axis=0).max())
    scan = MM_PER_M * points[:: max(1, len(points) // _SCAN_POINTS)]
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
        for colour, axis, letter in zip(_OF_AXES, placed.rotation.T, _AXES, strict=True):
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
    flat = not robot.body.goes_around and not robot.body.is_unrolled and len({one.panel for one in outlines}) == 1
    if flat and robot.body.is_simulated:  # of another nothing says where its chambers lie
        for name, one in zip(robot.body.inputs, outlines, strict=True):
            axes.text(MM_PER_M * one.x, MM_PER_M * one.y, 0.0, name, ha="center", zorder=10)
    for name, place in robot.base_markers.items():
        axes.text(*(MM_PER_M * np.array(place)), name, size=8)
