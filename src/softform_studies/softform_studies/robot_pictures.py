"""Pictures of robots: of a surface its shapes at rest, at corners of its range and in section; of a tip its path."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import trimesh
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle
from mpl_toolkits.mplot3d.axes3d import Axes3D
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.files import write_figure
from softform_core.forward.tip_model import load_tip_model
from softform_core.inverse.follow_path import follow_path, start_near
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.simulation.newton import NoEquilibriumError
from softform_core.simulation.sampling import grid_actuations
from softform_core.simulation.simulated_body import (
    BodyOfSurfaces,
    SimulatedBody,
    Surface,
    equilibrium_unknowns,
    rest_points,
)
from softform_core.units import MM_PER_M, PA_PER_KPA
from softform_rig.live_body import LiveBody
from softform_rig.reality import load_reality
from softform_studies.ik.ik_prediction import SHIPPED
from softform_studies.waypoints.bench_waypoints import EIGHTS
from softform_studies.waypoints.capture_tips import real_tips

_COLOUR = "#d8a15c"
_OF_LAYERS = ("#555555", "#3b7dba", "#4aa564", _COLOUR)  # from within outwards
_SIDE = 3.2  # inches of a panel


def corners(robot: Robot) -> list[tuple[str, Array]]:
    """Return shapes of a robot's range: at rest, all degrees of freedom lowest, all highest, every third lowest.

    What is the same is there once: where the lowest is ambient, the robot is at rest.
    """
    low, high = robot.actuation_min, robot.actuation_max
    mixed = np.where(np.arange(len(low)) % 3 == 0, low, high)
    found: list[tuple[str, Array]] = []
    for title, actuation in (
        ("at rest", robot.rest_actuation),
        ("all lowest", low),
        ("all highest", high),
        ("every third lowest, the others highest", mixed),
    ):
        if not any(np.allclose(actuation, other) for _, other in found):
            found.append((title, actuation))
    return found


def draw_robot(robot: Robot, output: Path, say: Callable[[str], None]) -> None:
    """Draw a robot as its body wants to be drawn, or else at `corners`, to one scale, and in section.

    Args:
        robot: A robot with a surface and a simulator.
        output: Picture; its suffix chooses the format.
        say: Takes which shape is simulated, and which one has no equilibrium and is left out.

    Raises:
        NoEquilibriumError: If a shape has no equilibrium that the body's own drawing needs.
        SoftformError: If the picture cannot be written, or is of no format that matplotlib knows.
    """
    say(f"simulating and drawing '{robot.name}'")
    write_figure(output, robot.body.picture(robot) or _figure(robot, say))


def _figure(robot: Robot, say: Callable[[str], None]) -> Figure:
    body = robot.body.simulator()
    drawn, asked = [], corners(robot)
    for number, (title, actuation) in enumerate(asked, 1):
        say(f"  shape {number} of {len(asked)}: {title}")
        try:
            drawn.append((title, equilibrium_unknowns(body, robot.actuators_of(actuation)[None])[0]))
        except NoEquilibriumError as error:
            say(f"  it is left out: {error}")
    drawn = drawn or [("undeformed", body.rest)]
    points = [body.points(unknowns[None])[0] for _, unknowns in drawn]
    bounds = np.array([[one.min(axis=0), one.max(axis=0)] for one in points])
    middle, half = 0.5 * (bounds.max(axis=(0, 1)) + bounds.min(axis=(0, 1))), 0.5 * np.ptp(bounds, axis=(0, 1)).max()
    sections = _sections(robot, body, drawn[-2 if len(drawn) > 1 else -1][1])
    rows = 2 if len(sections) > 1 else 1
    columns = max(len(drawn), len(sections)) if rows == 2 else len(drawn) + len(sections)
    figure = Figure(figsize=(_SIDE * columns, 1.15 * _SIDE * rows), dpi=110, layout="constrained")
    for number, ((title, _), one) in enumerate(zip(drawn, points, strict=True), start=1):
        axes = figure.add_subplot(rows, columns, number, projection="3d")
        assert isinstance(axes, Axes3D)
        axes.plot_trisurf(*MM_PER_M * one.T, triangles=body.faces, color=_COLOUR, edgecolor="none", shade=True)
        axes.set_title(f"{title} (mm)", fontsize=8, y=1.08)
        for set_limits, at in zip((axes.set_xlim, axes.set_ylim, axes.set_zlim), MM_PER_M * middle, strict=True):
            set_limits(at - MM_PER_M * half, at + MM_PER_M * half)
        axes.set_box_aspect((1.0, 1.0, 1.0), zoom=1.1)
        axes.tick_params(labelsize=5)
    for number, draw_section in enumerate(sections, start=(columns if rows == 2 else len(drawn)) + 1):
        draw_section(figure.add_subplot(rows, columns, number))
    return figure


def _sections(robot: Robot, body: SimulatedBody, unknowns: Array) -> list[Callable[[Axes], None]]:
    """Return what draws each section: chambers known as surfaces are cut, others drawn as described.

    Args:
        robot: Robot.
        body: Its simulator.
        unknowns: (m,) of the shape in which layers are cut.
    """
    outlines, rest = robot.body.outlines(), rest_points(body)
    panels = list(dict.fromkeys(one.panel for one in outlines))
    if not robot.body.is_unrolled and isinstance(body, BodyOfSurfaces):
        cut = body.surfaces(body.rest)
        middles = [np.mean(_bounds(one), axis=0) for one in cut[1:]]
        heights = dict.fromkeys(round(float(middle[2]), 3) for middle in middles)
        return [partial(_draw_cuts, surfaces=cut, axis=axis, at=at) for axis, at in
                [*((2, height) for height in heights), (1, float(middles[0][1]))]]  # fmt: skip
    if not robot.body.is_unrolled:
        across = np.ptp(rest[:, 2]) > np.ptp(rest[:, :2], axis=0).max()
        middle = 0.5 * (rest[:, 2].min() + rest[:, 2].max())
        surfaces = [Surface("", rest, body.faces)] if across else []
        return [partial(_draw_inputs, robot=robot, panel=one, surfaces=surfaces, height=middle) for one in panels]
    cut = body.surfaces(unknowns) if isinstance(body, BodyOfSurfaces) else [Surface("", rest, body.faces)]
    return [
        *(partial(_draw_inputs, robot=robot, panel=panel, surfaces=[], height=0.0) for panel in panels),
        partial(_draw_cuts, surfaces=cut, axis=2, at=outlines[0].y),
        partial(_draw_cuts, surfaces=cut, axis=1, at=0.0),
    ]


def _bounds(surface: Surface) -> tuple[Array, Array]:
    """Return lower and upper corner, (3,) m each, of what its triangles span."""
    points = surface.points[np.unique(surface.faces)]
    return points.min(axis=0), points.max(axis=0)


def _draw_inputs(axes: Axes, robot: Robot, panel: str, surfaces: Sequence[Surface], height: float) -> None:
    """Draw the inputs of a panel, and surfaces cut across at a height, m."""
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
    """Draw surfaces cut where the coordinate of an axis is `at`, m, each in its colour."""
    for surface, colour in zip(surfaces, cycle(_OF_LAYERS), strict=False):
        _draw_cut(axes, surface, axis, at, colour)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=6)
    _finish(axes, f"cut at {'xyz'[axis]} = {round(MM_PER_M * at)} mm")


def _draw_cut(axes: Axes, surface: Surface, axis: int, at: float, colour: str) -> None:
    """Draw a surface's section, where it has one, as a line that is named in the legend."""
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


def draw_waypoints(robot: Robot, reality_name: str, path: Path) -> None:
    """Draw the '8', the real tips with and without N_s2r, and actuations of two starts and of direct IK.

    These are Figs. 7, 8 and 11 of paper 001.

    Raises:
        SoftformError: If a model or the reality cannot be read, or the picture cannot be written.
    """
    reality, points = load_reality(reality_name, robot), EIGHTS[robot.name].points()
    model = load_tip_model(robot, sim_to_real=models_of(robot.name) / SHIPPED)
    start = start_near(model, points[0])
    grid = grid_actuations(robot.actuation_min, robot.actuation_max, robot.tip.segments)
    nearest = grid[cKDTree(model.tip(grid)).query(points)[1]]
    ours = follow_path(model, points, start).actuations
    simulated = follow_path(model.without_sim_to_real, points, start).actuations
    mirrored = follow_path(
        model, points, -start if (robot.actuation_min < 0.0).all() else robot.actuation_max
    ).actuations

    figure = Figure(figsize=(11, 5.5), dpi=100, layout="constrained")
    columns = figure.subplot_mosaic([["tip", "ours"], ["tip", "mirrored"], ["tip", "nearest"]], width_ratios=[1.2, 1])
    tip_axes = columns["tip"]
    tip_axes.plot(*points[:, :2].T, color="black", label="waypoints")
    for actuations, label in ((simulated, "real tip, without N_s2r"), (ours, "real tip, with N_s2r")):
        tips = MM_PER_M * real_tips(robot, LiveBody(robot, reality), actuations)
        tip_axes.plot(*tips[:, :2].T, ".", markersize=3, label=label)
    tip_axes.set(xlabel="x, mm", ylabel="y, mm", aspect="equal", title=f"{robot.title}, reality '{reality.name}'")
    tip_axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), fontsize="small", ncols=3)
    titles = {"ours": "actuations, kPa", "mirrored": "from another start", "nearest": "direct IK, nearest sample"}
    for name, actuations in (("ours", ours), ("mirrored", mirrored), ("nearest", nearest)):
        columns[name].plot(actuations / PA_PER_KPA, label=robot.actuation_names)
        columns[name].set_title(titles[name], fontsize="medium")
    figure.legend(*columns["ours"].get_legend_handles_labels(), loc="outside right center", fontsize="small")
    columns["nearest"].set_xlabel("waypoint")
    write_figure(path, figure)
