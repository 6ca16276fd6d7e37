"""The solid over the whole range of its pressures, and its images under its symmetries."""

import numpy as np
import pytest
from scipy.sparse.linalg import splu
from scipy.spatial.transform import Rotation

from softform_core.bodies.solid.description import Cells, SolidBody
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.bodies.solid.model import build_solid
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.simulated_body import equilibrium_points, rest_points

PRESSURES = np.array([[30e3, 0.0, 10e3, 0.0, 25e3, 25e3]])
BODY = load_robot("manipulator").body


def coarse(**fields) -> SolidProblem:
    cells = Cells(chamber=2, rib=2, layers=2)
    return SolidProblem(
        build_solid(SolidBody.model_validate(BODY.model_dump() | {"cells": cells.model_dump()} | fields))
    )


@pytest.fixture(scope="module")
def problem() -> SolidProblem:
    return coarse()


def test_the_order_of_the_unknowns_leaves_less_fill_in_than_minimum_degree():
    problem = BODY.simulator()
    hessian = problem.derivatives(problem.rest[None], np.zeros((1, 6)))[1].matrix
    ours, minimum_degree = (
        splu(hessian, permc_spec=order, diag_pivot_thresh=0.0, options={"SymmetricMode": True}).L.nnz
        for order in ("NATURAL", "MMD_AT_PLUS_A")
    )
    assert ours < 0.95 * minimum_degree


@pytest.mark.long
def test_the_whole_range_has_equilibria(problem):
    """Corners and the middle on a coarse mesh; an image of a shape under a turn by 120 degrees is its shape."""
    high = 60e3
    loads = np.array(
        [[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 1, 1], [1, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0]]
    )
    found = find_equilibria(problem, high * loads)
    assert found.failures == [""] * len(loads)
    points = problem.points(found.unknowns)
    end = points[:, -1]
    assert end[1, 2] > end[0, 2] + 0.02  # all chambers: it grows
    assert end[2, 0] < -0.01 and abs(end[2, 1]) < 1e-6  # it bends away from the first chamber, within its plane
    assert end[3, 0] < -0.05
    third = Rotation.from_euler("z", 120.0, degrees=True)
    turned = equilibrium_points(problem, high * np.roll(loads[3].reshape(2, 3), 1, axis=1).reshape(1, 6))[0]
    rings = points.shape[1] - 1
    around = rings // np.unique(np.round(rest_points(problem)[:, 2], 9)).size
    shifted = np.roll(points[3, :-1].reshape(-1, around, 3), around // 3, axis=1).reshape(-1, 3)
    assert np.abs(turned[:-1] - third.apply(shifted)).max() < 1e-6


@pytest.mark.long
def test_symmetric_images_are_equilibria(problem):
    """Each image of a surface is the surface under the image of its pressures."""
    robot = load_robot("manipulator")
    mesh = robot.parametrised(rest_points(problem), problem.faces)
    control = 1000.0 * mesh.fit(problem.points(find_equilibria(problem, PRESSURES).unknowns)).reshape(1, 30, 30, 3)
    images = BODY.symmetric_images(PRESSURES, control)
    assert len(images) == 6
    assert len({tuple(pressures[0]) for pressures, _ in images}) == 6
    for pressures, expected in images[1:]:
        found = mesh.fit(equilibrium_points(problem, pressures))
        assert 1000.0 * found.reshape(30, 30, 3) == pytest.approx(expected[0], abs=1e-3)  # mm


def test_a_pressure_without_equilibrium_is_told(monkeypatch):
    """Without stiffening and fibres the wall bursts: the load is named."""
    monkeypatch.setattr("softform_core.simulation.newton.SMALLEST_LOAD_STEP", 0.1)  # told roughly, and soon
    soft = {"law": "neo_hookean", "coefficients": [30e3]}
    short = {"material": soft, "fibre_modulus": 0.0, "segments": 1, "length": 0.1}
    found = find_equilibria(coarse(**short), np.array([[90e3, 90e3, 90e3]]))
    assert "no equilibrium at actuator values [90000.0, 90000.0, 90000.0]" in found.failures[0]
    assert "% of the load" in found.failures[0]


def test_a_cavity_that_turns_inside_out_is_no_equilibrium(monkeypatch):
    """Nothing keeps its walls apart: under vacuum there is a balance of forces in which they have passed each other."""
    monkeypatch.setattr("softform_core.simulation.newton.SMALLEST_LOAD_STEP", 0.3)  # told roughly, and soon
    problem = coarse(segments=1, length=0.06)
    pressures = np.array([[0.0, 0.0, 0.0], [0.0, -50e3, 0.0]])
    found = find_equilibria(problem, pressures)
    assert found.failures == [
        "",
        "There is no equilibrium at actuator values [0.0, -50000.0, 0.0]: "
        "chamber c2 turns inside out beyond 50 % of the load.",
    ]
    assert np.isfinite(found.unknowns[0]).all() and np.isnan(found.unknowns[1]).all()
    turned = problem.solid.nodes * [-1.0, 1.0, 1.0]
    assert problem.impossible(problem.unknowns(turned)) == ["chambers c1, c2, c3 turn inside out"]
