"""Pictures of any robot with a surface: its simulated shapes at rest and at corners of its range, and a section."""

import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle
from mpl_toolkits.mplot3d.axes3d import Axes3D
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.files import write_atomically
from softform_core.robots import Robot
from softform_core.simulation.simulated_body import equilibrium_points, rest_points
from softform_core.units import MM_PER_M

_COLOUR = "#d8a15c"
_SIDE = 3.2  # inches of a panel


def corners(robot: Robot) -> list[tuple[str, Array]]:
    """Shapes that show a robot's range: all degrees of freedom lowest, all highest, and every third one highest."""
    low, high = robot.actuation_min, robot.actuation_max
    mixed = np.where(np.arange(len(low)) % 3 == 0, low, high)
    return [("all lowest", low), ("all highest", high), ("every third lowest, the others highest", mixed)]


def draw_robot(robot: Robot, output: Path) -> None:
    """Draw a robot as its body wants to be drawn, or else at rest and at `corners`, to one scale, and in section.

    Args:
        robot: A robot with a surface and a simulator.
        output: Picture; its suffix chooses the format.

    Raises:
        NoEquilibriumError: If a shape has no equilibrium.
        OSError: If the picture cannot be written.
        ValueError: If matplotlib does not know the format.
    """
    figure = robot.body.picture(robot) or _figure(robot)
    picture = io.BytesIO()
    figure.savefig(picture, format=output.suffix.lstrip(".") or "png")
    write_atomically(output, picture.getvalue())


def _figure(robot: Robot) -> Figure:
    body = robot.body.simulator()
    drawn = [("at rest", rest_points(body))]
    for title, actuation in corners(robot):
        drawn.append((title, equilibrium_points(body, robot.actuators_of(actuation)[None])[0]))
    bounds = np.array([[points.min(axis=0), points.max(axis=0)] for _, points in drawn])
    middle, half = 0.5 * (bounds.max(axis=(0, 1)) + bounds.min(axis=(0, 1))), 0.5 * np.ptp(bounds, axis=(0, 1)).max()
    panels = len(drawn) + 1
    figure = Figure(figsize=(_SIDE * panels, 1.15 * _SIDE), dpi=110, layout="constrained")
    for number, (title, points) in enumerate(drawn, start=1):
        axes = figure.add_subplot(1, panels, number, projection="3d")
        assert isinstance(axes, Axes3D)
        _draw_surface(axes, MM_PER_M * points, body.faces)
        axes.set_title(title, fontsize=8)
        for set_limits, at in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), MM_PER_M * middle, strict=True):
            set_limits(at - MM_PER_M * half, at + MM_PER_M * half)
        axes.set_box_aspect((1.0, 1.0, 1.0), zoom=1.25)
        axes.tick_params(labelsize=5)
    _draw_section(figure.add_subplot(1, panels, panels), robot, drawn[0][1], body.faces)
    return figure


def _draw_surface(axes: Axes3D, points: Array, faces: NDArray[np.integer]) -> None:
    axes.plot_trisurf(*points.T, triangles=faces, color=_COLOUR, edgecolor="none", shade=True)


def _draw_section(axes: Axes, robot: Robot, points: Array, faces: NDArray[np.integer]) -> None:
    """The resting surface cut across its longest extent, or a sheet seen from above, and the first panel of inputs."""
    outlines = robot.body.outlines()
    first = [one for one in outlines if one.panel == outlines[0].panel]
    for name, one in zip(robot.body.inputs, first, strict=False):
        x, y, width, height = (MM_PER_M * value for value in (one.x, one.y, one.width, one.height))
        if one.shape == "ellipse":
            axes.add_patch(Ellipse((x, y), width, height, facecolor="#dde7f0", edgecolor="#456"))
        else:
            corner = x - width / 2.0, y - height / 2.0
            axes.add_patch(Rectangle(corner, width, height, facecolor="#dde7f0", edgecolor="#456"))
        axes.text(x, y, name, ha="center", va="center", fontsize=8)
    if np.ptp(points[:, 2]) > np.ptp(points[:, :2], axis=0).max():
        cut = MM_PER_M * _cut(points, faces, 0.5 * (points[:, 2].min() + points[:, 2].max()))
        axes.plot(*cut.transpose(2, 1, 0)[:2], color=_COLOUR, linewidth=2.0)
    axes.set_title(outlines[0].panel, fontsize=8)
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.tick_params(labelsize=6)
    axes.set_xlabel("mm", fontsize=6)


def _cut(points: Array, faces: NDArray[np.integer], height: float) -> Array:
    """Pieces (S, 2, 3) in which the faces meet the plane z = height."""
    above = points[faces, 2] > height
    crossed = faces[above.any(axis=1) & ~above.all(axis=1)]
    pieces = []
    for face in crossed:
        ends = []
        for a, b in ((0, 1), (1, 2), (2, 0)):
            first, second = points[face[a]], points[face[b]]
            if (first[2] > height) != (second[2] > height):
                ends.append(first + (height - first[2]) / (second[2] - first[2]) * (second - first))
        pieces.append(ends)
    return np.array(pieces)
