"""Pictures of any robot with a surface: its simulated shapes at rest and at corners of its range, and a section."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import trimesh
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle
from mpl_toolkits.mplot3d.axes3d import Axes3D

from softform_core.arrays import Array
from softform_core.files import write_figure
from softform_core.robots import Robot
from softform_core.simulation.simulated_body import BodyOfSurfaces, SimulatedBody, Surface, equilibrium_unknowns
from softform_core.units import MM_PER_M

_COLOUR = "#d8a15c"
_OF_LAYERS = ("#555555", "#3b7dba", "#4aa564", _COLOUR)  # from within outwards
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
    write_figure(output, robot.body.picture(robot) or _figure(robot))


def _figure(robot: Robot) -> Figure:
    body = robot.body.simulator()
    drawn = [("at rest", body.rest)]
    for title, actuation in corners(robot):
        drawn.append((title, equilibrium_unknowns(body, robot.actuators_of(actuation)[None])[0]))
    points = [body.points(unknowns[None])[0] for _, unknowns in drawn]
    bounds = np.array([[one.min(axis=0), one.max(axis=0)] for one in points])
    middle, half = 0.5 * (bounds.max(axis=(0, 1)) + bounds.min(axis=(0, 1))), 0.5 * np.ptp(bounds, axis=(0, 1)).max()
    sections = _sections(robot, body, drawn[-2 if len(drawn) > 2 else -1][1], points[0])
    rows = 2 if len(sections) > 1 else 1
    columns = -(-(len(drawn) + len(sections)) // rows)
    figure = Figure(figsize=(_SIDE * columns, 1.15 * _SIDE * rows), dpi=110, layout="constrained")
    for number, ((title, _), one) in enumerate(zip(drawn, points, strict=True), start=1):
        axes = figure.add_subplot(rows, columns, number, projection="3d")
        assert isinstance(axes, Axes3D)
        axes.plot_trisurf(*MM_PER_M * one.T, triangles=body.faces, color=_COLOUR, edgecolor="none", shade=True)
        axes.set_title(title, fontsize=8)
        for set_limits, at in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), MM_PER_M * middle, strict=True):
            set_limits(at - MM_PER_M * half, at + MM_PER_M * half)
        axes.set_box_aspect((1.0, 1.0, 1.0), zoom=1.25)
        axes.tick_params(labelsize=5)
    for number, draw_section in enumerate(sections, start=len(drawn) + 1):
        draw_section(figure.add_subplot(rows, columns, number))
    return figure


def _sections(robot: Robot, body: SimulatedBody, unknowns: Array, rest: Array) -> list[Callable[[Axes], None]]:
    """What draws each section: the inputs with the resting surface cut across, or, unrolled, each by itself.

    Args:
        robot: Robot.
        body: Its simulator.
        unknowns: (m,) of the shape in which a body of several surfaces is cut.
        rest: (P, 3) m of the resting surface.
    """
    outlines = robot.body.outlines()
    panels = list(dict.fromkeys(one.panel for one in outlines))
    if not robot.body.is_unrolled:
        across = np.ptp(rest[:, 2]) > np.ptp(rest[:, :2], axis=0).max()
        middle = 0.5 * (rest[:, 2].min() + rest[:, 2].max())
        surfaces = [Surface("", rest, body.faces)] if across else []
        return [partial(_draw_inputs, robot=robot, panel=panels[0], surfaces=surfaces, height=middle)]
    cut = body.surfaces(unknowns) if isinstance(body, BodyOfSurfaces) else [Surface("", rest, body.faces)]
    return [
        *(partial(_draw_inputs, robot=robot, panel=panel, surfaces=[], height=0.0) for panel in panels),
        partial(_draw_cuts, surfaces=cut, axis=2, at=outlines[0].y),
        partial(_draw_cuts, surfaces=cut, axis=1, at=0.0),
    ]


def _draw_inputs(axes: Axes, robot: Robot, panel: str, surfaces: Sequence[Surface], height: float) -> None:
    """The inputs of a panel, and surfaces cut across at a height, m."""
    for name, one in zip(robot.body.inputs, robot.body.outlines(), strict=True):
        if one.panel != panel:
            continue
        x, y, width, height_of = (MM_PER_M * value for value in (one.x, one.y, one.width, one.height))
        if one.shape == "ellipse":
            axes.add_patch(Ellipse((x, y), width, height_of, facecolor="#dde7f0", edgecolor="#456"))
        else:
            corner = x - width / 2.0, y - height_of / 2.0
            axes.add_patch(Rectangle(corner, width, height_of, facecolor="#dde7f0", edgecolor="#456"))
        axes.text(x, y, name, ha="center", va="center", fontsize=8)
    for surface in surfaces:
        _draw_cut(axes, surface, 2, height, _COLOUR)
    axes.autoscale_view()
    _finish(axes, panel)


def _draw_cuts(axes: Axes, surfaces: Sequence[Surface], axis: int, at: float) -> None:
    """Surfaces cut where the coordinate of an axis is `at`, m, each in its colour."""
    for surface, colour in zip(surfaces, _OF_LAYERS, strict=False):
        _draw_cut(axes, surface, axis, at, colour)
    axes.legend(fontsize=6)
    _finish(axes, f"cut at {'xyz'[axis]} = {MM_PER_M * at:.0f} mm")


def _draw_cut(axes: Axes, surface: Surface, axis: int, at: float, colour: str) -> None:
    normal = np.eye(3)[axis]
    mesh = trimesh.Trimesh(surface.points, surface.faces, process=False)
    pieces = MM_PER_M * np.delete(trimesh.intersections.mesh_plane(mesh, normal, at * normal), axis, axis=2)
    lines = axes.plot(*pieces.transpose(2, 1, 0), color=colour, linewidth=1.5)
    if lines and surface.name:
        lines[0].set_label(surface.name)


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=8)
    axes.set_aspect("equal")
    axes.tick_params(labelsize=6)
    axes.set_xlabel("mm", fontsize=6)
