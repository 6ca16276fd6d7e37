"""The picture of a solid robot, which `softform picture` draws: at rest, at corners of its range, and in section."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from softform_core.arrays import Array
from softform_core.bodies.solid.description import SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.mesh import SectionMesh, layers_of, mesh_section
from softform_core.robots import Robot
from softform_core.simulation.simulated_body import equilibrium_unknowns
from softform_core.units import MM_PER_M

_SOFT, _WALL, _RIGID = "#8fb8de", "#3b7dba", "#555555"


def corners_shown(robot: Robot, body: SolidBody) -> dict[str, Array]:
    """Actuations (m,) of the pictures, by their titles."""
    low, high = robot.actuation_min, robot.actuation_max
    count = body.cross_section.chambers
    chosen = {"at rest": (), "first chamber of each segment": range(0, len(high), count), "all": range(len(high))}
    chosen["opposite sides: an S"] = (0, *range(count + 1, 2 * count))
    return {title: np.where(np.isin(np.arange(len(high)), list(on)), high, low) for title, on in chosen.items()}


def draw(robot: Robot, body: SolidBody) -> Figure:
    """The figure; each shape is solved anew.

    Args:
        robot: The robot.
        body: Its body.

    Raises:
        NoEquilibriumError: If a shape has no equilibrium.
    """
    problem = body.simulator()
    section = mesh_section(body.cross_section, body.cells)
    figure = Figure(figsize=(15.0, 9.0), dpi=75, layout="constrained")
    for number, (title, actuation) in enumerate(corners_shown(robot, body).items()):
        unknowns = equilibrium_unknowns(problem, robot.actuators_of(actuation)[None])
        axes = figure.add_subplot(2, 4, number + 1, projection="3d")
        _draw_surface(axes, problem.points(unknowns)[0], problem, body, title)
        nodes = problem.nodes(unknowns[0])
        axes = figure.add_subplot(2, 4, number + 5)
        if number % 2 == 0:
            _draw_across(axes, nodes, section, body, f"{title}: across, segment 1")
        else:
            _draw_along(axes, nodes, section, body, f"{title}: along, y = 0")
    return figure


def _draw_surface(axes: Any, points: Array, problem: SolidProblem, body: SolidBody, title: str) -> None:
    x, y, z = MM_PER_M * points.T
    axes.plot_trisurf(x, y, z, triangles=problem.faces, color=_SOFT, linewidth=0.05, edgecolor="#33557766", shade=True)
    axes.set_title(title, fontsize=10)
    reach = 0.55 * MM_PER_M * body.length
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(2.6 * reach, 0.0), xlabel="x, mm", ylabel="y, mm")
    axes.set_box_aspect((2.0, 2.0, 2.6))
    axes.view_init(elev=12.0, azim=-70.0)
    axes.locator_params("y", nbins=3)
    axes.tick_params(labelsize=8)


def _draw_across(axes: Any, nodes: Array, section: SectionMesh, body: SolidBody, title: str) -> None:
    """The section in the middle of the first segment, in its own plane."""
    _, segment = layers_of(body, body.cells.layers)
    level = 2 * int(np.flatnonzero(segment == 0)[0]) + body.cells.layers
    here = nodes.reshape(-1, len(section.nodes), 3)[level]
    centre = here[section.rim].mean(axis=0)
    along_x = here[section.rim[body.cells.chamber]] - centre
    normal = np.linalg.svd(here[section.rim] - centre)[2][2]
    first = along_x - normal * (normal @ along_x)
    first /= np.linalg.norm(first)
    second = np.cross(normal * np.sign(normal[2]), first)
    flat = MM_PER_M * (here - centre) @ np.stack([first, second], axis=1)
    for triangle, chamber, is_wall in zip(section.triangles, section.chamber, section.is_wall, strict=True):
        if chamber < 0:
            outline = flat[triangle[[0, 3, 1, 4, 2, 5]]]
            axes.fill(*outline.T, facecolor=_WALL if is_wall else _SOFT, edgecolor="white", linewidth=0.4)
    for name, chamber in zip(body.inputs, range(body.cross_section.chambers), strict=False):
        axes.text(
            *flat[section.triangles[section.chamber == chamber]].mean(axis=(0, 1)), name, ha="center", va="center"
        )
    axes.set(aspect="equal", title=title, xlabel="mm")
    axes.title.set_fontsize(10)


def _draw_along(axes: Any, nodes: Array, section: SectionMesh, body: SolidBody, title: str) -> None:
    """The section through the axis and the middle of the first chamber."""
    _, segment = layers_of(body, body.cells.layers)
    line = np.flatnonzero(np.abs(section.nodes[:, 1]) < 1e-9)
    line = line[np.argsort(section.nodes[line, 0])]
    middle = 0.5 * (section.nodes[line, 0][1:] + section.nodes[line, 0][:-1])
    shape = MM_PER_M * nodes.reshape(-1, len(section.nodes), 3)[:, line][..., [0, 2]]
    for layer, of_segment in enumerate(segment):
        for place, radius in enumerate(middle):
            if of_segment >= 0 and body.cross_section.inner < radius < body.cross_section.outer:
                continue  # the first chamber
            left, right = (shape[2 * layer : 2 * layer + 3, place + side] for side in (0, 1))
            colour = _RIGID if of_segment < 0 else _WALL if abs(radius) > body.cross_section.outer else _SOFT
            axes.fill(*np.concatenate([left, right[::-1]]).T, facecolor=colour, edgecolor="white", linewidth=0.3)
    axes.set(aspect="equal", title=title, xlabel="x, mm", ylabel="z, mm")
    axes.title.set_fontsize(10)
    axes.invert_yaxis()
