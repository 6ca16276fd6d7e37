"""Pictures of robots: shapes, and sections of what they are made of; the command draws a body's own picture, if any."""

import struct
from pathlib import Path

import numpy as np
import pytest
import trimesh
import yaml
from click.testing import CliRunner
from matplotlib.figure import Figure

from softform_core.arrays import Array
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.simulation.newton import NoEquilibriumError
from softform_core.simulation.simulated_body import SimulatedBody
from softform_studies import robot_pictures
from softform_studies.cli_picture import picture
from softform_studies.robot_pictures import _OF_LAYERS, corners, draw_robot


def size_of(output: Path) -> tuple[int, int]:
    """Width and height of a picture, pixels."""
    return struct.unpack(">II", output.read_bytes()[16:24])


def coarse(name: str, **changes: object) -> Robot:
    robot = load_robot(name, "surface")
    return robot.model_copy(update={"body": robot.body.model_copy(update=changes)})


@pytest.mark.long
@pytest.mark.parametrize(
    ("robot", "rows", "columns"),
    [(coarse("mannequin", cell=0.03), 2, 4), (coarse("membrane", cells=12), 1, 4)],
    ids=["mannequin", "membrane"],
)
def test_a_robot_is_drawn_in_one_row_or_unrolled_in_two(robot: Robot, rows: int, columns: int, tmp_path: Path) -> None:
    path = tmp_path / "robot.png"
    said = []
    draw_robot(robot, path, said.append)
    assert [line for line in said if "shape 2 of 3: all highest" in line]
    assert size_of(path) == pytest.approx((352 * columns, 405 * rows), abs=3)


def test_a_shape_without_equilibrium_is_told_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solve = robot_pictures.equilibrium_unknowns

    def solved(body: SimulatedBody, actuators: Array) -> Array:
        if actuators.min() == robot.actuator_max.max():
            raise NoEquilibriumError("the body runs away beyond 40 % of the load.", "Lower the maximum.")
        return solve(body, actuators)

    robot, said = coarse("membrane", cells=12), []
    monkeypatch.setattr(robot_pictures, "equilibrium_unknowns", solved)
    draw_robot(robot, tmp_path / "robot.png", said.append)
    assert any("left out: the body runs away beyond 40 %" in line for line in said)
    assert size_of(tmp_path / "robot.png") == pytest.approx((352 * 3, 405), abs=3)


def test_the_lowest_is_left_out_where_it_is_ambient() -> None:
    assert [title for title, _ in corners(load_robot("membrane"))][:2] == ["at rest", "all highest"]
    assert [title for title, _ in corners(load_robot("compressible"))][:2] == ["at rest", "all lowest"]


def test_chambers_that_are_known_as_surfaces_are_cut_where_they_are() -> None:
    """Not their boxes: of a chamber in a ring, the section lies between its radii. Each height is drawn."""
    robot = load_robot("manipulator")
    cells = robot.body.cells.model_copy(update={"chamber": 4, "rib": 2, "layers": 2})
    robot = robot.model_copy(update={"body": robot.body.model_copy(update={"cells": cells})})
    body = robot.body.simulator()
    walls = body.surfaces(body.rest)[1:]
    meshes = [trimesh.Trimesh(*wall[1:]) for wall in walls]
    assert all(mesh.is_watertight for mesh in meshes) and [wall.name for wall in walls] == robot.body.inputs
    assert [abs(mesh.volume) for mesh in meshes] == pytest.approx(body.pressure.volumes(body.solid.nodes), rel=0.05)
    panels = robot_pictures._sections(robot, body, body.rest)
    drawn = Figure().subplots(1, len(panels))
    for draw, axes in zip(panels, drawn, strict=True):
        draw(axes)
    names = [axes.get_legend_handles_labels()[1] for axes in drawn]
    assert names[:2] == [["outside", "c1", "c2", "c3"], ["outside", "c4", "c5", "c6"]] and "c1" in names[2]
    of_first = np.concatenate([line.get_xydata() for line in drawn[0].lines if line.get_color() == _OF_LAYERS[1]])
    section, radii = robot.body.cross_section, np.linalg.norm(of_first, axis=1) / 1000.0
    assert section.inner - 1e-3 < radii.min() < radii.max() < section.outer + 1e-3


@pytest.mark.long
def test_the_common_command_draws_solids(tmp_path: Path) -> None:
    described = yaml.safe_load(robot_file("manipulator").read_text())
    described["body"]["cells"] = {"chamber": 2, "rib": 1, "layers": 2}
    described["actuators"]["maximum"] = 5000.0
    described.pop("tolerances", None)  # of the whole range
    description, output = tmp_path / "manipulator.yaml", tmp_path / "solid.png"
    description.write_text(yaml.safe_dump(described))
    CliRunner().invoke(picture, [str(description), "--output", str(output)], catch_exceptions=False)
    assert size_of(output) == (1125, 675), "its own picture: surfaces and cuts"
