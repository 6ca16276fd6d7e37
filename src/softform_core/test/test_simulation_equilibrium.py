"""The membrane's equilibria against theory, symmetry, finer meshes and bad input."""

from dataclasses import replace

import numpy as np
import pytest
from equilibria import solve_equilibrium
from skfem import Mesh, MeshQuad, MeshTri

from softform_core.bodies.membrane.equilibrium import total_potential, volumes_and_gradients
from softform_core.bodies.membrane.model import membrane_on_mesh
from softform_core.bodies.membrane.simulator import RealMembrane, build_membrane
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.robots.description import Material
from softform_core.simulation.newton import NoEquilibriumError

DESCRIPTION = load_robot("membrane").body
FULL = np.full(9, 5000.0)


def _disc(kind: str, radius: float) -> Mesh:
    if kind == "triangle":
        return MeshTri.init_circle(5).scaled(radius)
    square = MeshQuad.init_tensor(np.linspace(-1, 1, 41), np.linspace(-1, 1, 41))
    x, y = square.p
    return MeshQuad(np.array([x * np.sqrt(1 - y**2 / 2), y * np.sqrt(1 - x**2 / 2)]), square.t).scaled(radius)


@pytest.mark.parametrize("kind", ["triangle", "quadrilateral"])
def test_hencky_clamped_circular_membrane(kind):
    """Hencky (1915), Poisson's ratio 1/2: w0 = 0.59495 a (p a / (E t))^(1/3); small strain, so a small pressure."""
    radius, thickness, modulus, pressure = 0.1, 0.001, 3.0e5, 0.02
    mesh = _disc(kind, radius)
    material = Material(law="neo_hookean", coefficients=[modulus / 3.0])
    membrane = membrane_on_mesh(mesh, np.zeros(mesh.t.shape[1], dtype=int), thickness, material)
    found = solve_equilibrium(membrane, [pressure])
    expected = 0.59495 * radius * (pressure * radius / (modulus * thickness)) ** (1.0 / 3.0)
    assert found.vertices[:, 2].max() == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("kind", ["triangle", "quadrilateral"])
def test_patch_of_distorted_elements_takes_a_uniform_stretch(kind):
    mesh: Mesh = MeshQuad.init_tensor(np.linspace(0, 1, 6), np.linspace(0, 1, 6))
    inner = np.setdiff1d(np.arange(mesh.p.shape[1]), mesh.boundary_nodes())
    points = mesh.p.copy()
    points[:, inner] += np.random.default_rng(1).uniform(-0.05, 0.05, (2, inner.size))
    mesh = MeshQuad(points, mesh.t)
    if kind == "triangle":
        mesh = mesh.to_meshtri()
    material = Material(law="yeoh", coefficients=[6.0e4, 1.0e3, 4.0e3])
    membrane = membrane_on_mesh(mesh, np.zeros(mesh.t.shape[1], dtype=int), 0.002, material)
    uniform = np.array([[1.3, 0.1], [0.05, 1.2], [0.2, -0.1]])
    exact = membrane.rest_vertices[:, :2] @ uniform.T
    start = exact.copy()
    start[inner] += np.random.default_rng(2).normal(scale=0.02, size=(inner.size, 3))
    found = solve_equilibrium(membrane, [0.0], start=start)
    assert found.iterations > 0
    assert np.abs(found.vertices - exact).max() <= 1e-9
    tensor = uniform.T @ uniform
    j = np.trace(tensor) + 1.0 / np.linalg.det(tensor) - 3.0
    assert found.energy == pytest.approx(0.002 * (6.0e4 * j + 1.0e3 * j**2 + 4.0e3 * j**3), rel=1e-12)


def test_finer_meshes_converge():
    pressures = np.array([5000.0, 2000.0, 0.0, 4000.0, 5000.0, 1000.0, 3000.0, 2500.0, 4500.0])
    shapes = {}
    for cells in (12, 24, 48):
        membrane = build_membrane(DESCRIPTION, RealMembrane(cells=cells))
        found = solve_equilibrium(membrane, pressures).vertices.reshape(cells + 1, cells + 1, 3)
        shapes[cells] = found[:: cells // 12, :: cells // 12]
    coarse, fine = (np.linalg.norm(shapes[cells] - shapes[48], axis=-1).mean() for cells in (12, 24))
    assert fine < coarse / 2.5
    assert fine < 0.3e-3


@pytest.mark.parametrize("cells", [12, 14])
def test_triangles_and_quadrilaterals_agree(cells):
    pressures = np.linspace(500.0, 5000.0, 9)
    found = [
        solve_equilibrium(
            build_membrane(DESCRIPTION, RealMembrane(cells=3 * cells, element=element)), pressures
        ).vertices
        for element in ("quadrilateral", "triangle")
    ]
    assert np.linalg.norm(found[0] - found[1], axis=1).mean() < 0.2e-3


@pytest.mark.parametrize("on", [[1, 0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 1, 1, 1, 1, 1, 0], [1, 0, 1, 1, 0, 0, 0, 0, 1]])
def test_mirrored_pressures_give_the_mirrored_shape(on):
    cells = 18
    membrane = build_membrane(DESCRIPTION, RealMembrane(cells=cells))
    pressures = 5000.0 * np.array(on, dtype=float).reshape(3, 3)
    shape = solve_equilibrium(membrane, pressures.ravel()).vertices
    mirrored = solve_equilibrium(membrane, pressures[:, ::-1].ravel()).vertices
    place = {tuple(np.round(p[:2], 6)): i for i, p in enumerate(membrane.rest_vertices)}
    across = [place[tuple(np.round([-p[0], p[1]], 6))] for p in membrane.rest_vertices]
    assert np.abs(mirrored[across] * [-1, 1, 1] - shape).max() < 1e-7


def test_every_start_leads_to_the_same_shape_beside_idle_chambers():
    """Elements of a slack sheet, compressed between inflated and idle chambers, would wrinkle in one of many ways."""
    membrane = build_membrane(DESCRIPTION, RealMembrane(prestretch=1.0))
    pressures = 5000.0 * np.array([1, 1, 0, 1, 1, 1, 1, 1, 1])
    shape = solve_equilibrium(membrane, pressures).vertices
    for elsewhere in (FULL, 5000.0 - pressures + 500.0):
        start = solve_equilibrium(membrane, elsewhere).vertices
        again = solve_equilibrium(membrane, pressures, start=start)
        assert again.iterations > 0
        assert np.abs(again.vertices - shape).max() < 1e-6


def test_chamber_one_lies_at_the_least_x_and_y():
    membrane = build_membrane(DESCRIPTION, RealMembrane(cells=12))
    for chamber, corner in ((0, (-1, -1)), (2, (1, -1)), (6, (-1, 1)), (8, (1, 1))):
        shape = solve_equilibrium(membrane, 5000.0 * np.eye(9)[chamber]).vertices
        assert np.sign(shape[shape[:, 2].argmax(), :2]).tolist() == list(corner)


def test_rises_of_the_robot_are_plausible():
    membrane = build_membrane(DESCRIPTION)
    assert membrane.rest_vertices.shape == (43 * 43, 3)
    alone = 5000.0 * np.eye(9)
    full, centre, edge, corner = (
        solve_equilibrium(membrane, p).vertices[:, 2].max() for p in (FULL, alone[4], alone[1], alone[0])
    )
    assert full == pytest.approx(0.0801, rel=0.02)  # docs/robots/membrane.md states these four
    assert centre == pytest.approx(0.0473, rel=0.02)
    assert edge == pytest.approx(0.0344, rel=0.02)
    assert corner == pytest.approx(0.0283, rel=0.02)


def test_faces_look_upwards_and_cover_the_sheet():
    for element in ("quadrilateral", "triangle"):
        membrane = build_membrane(DESCRIPTION, RealMembrane(cells=9, element=element))
        corners = membrane.rest_vertices[membrane.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        assert (normals[:, 2] > 0.0).all()
        assert 0.5 * normals[:, 2].sum() == pytest.approx(0.32**2)


def test_a_sheet_that_does_not_stiffen_runs_away():
    soft = Material(law="neo_hookean", coefficients=[2.0e4])
    membrane = build_membrane(DESCRIPTION, RealMembrane(cells=9, material=soft, wall_stiffness_scale=0.0))
    with pytest.raises(NoEquilibriumError, match="no equilibrium"):
        solve_equilibrium(membrane, FULL)
    assert solve_equilibrium(membrane, 0.05 * FULL).residual < 1e-6  # below the limit point


@pytest.mark.parametrize("law", ["gent", "yeoh"])
def test_a_start_that_cannot_be_is_reached_by_raising_the_load(law):
    """A soft sheet that stiffens late: the direct solve fails, or has far to go, yet the shape is found."""
    coefficients = {"gent": [4.0e4, 3.0], "yeoh": [2.0e4, 0.0, 1.0e4]}[law]
    membrane = build_membrane(
        DESCRIPTION, RealMembrane(cells=12, material=Material(law=law, coefficients=coefficients))
    )
    found = solve_equilibrium(membrane, FULL)
    again = solve_equilibrium(membrane, FULL, start=found.vertices)
    assert again.iterations == 0
    assert found.residual < 1e-6


def test_rig_realities_change_the_shape_as_they_should():
    def rise(**reality: object) -> float:
        membrane = build_membrane(DESCRIPTION, RealMembrane(cells=12, **reality))
        return float(solve_equilibrium(membrane, FULL).vertices[:, 2].max())

    own = rise()
    assert rise(thickness={"scale": 1.25}) < own < rise(thickness={"scale": 0.75})
    slipping = build_membrane(DESCRIPTION, RealMembrane(cells=12, clamp_stiffness=2.0e4))
    rim = np.abs(slipping.rest_vertices[:, :2]).max(axis=1) > 0.1599
    moved = np.linalg.norm(solve_equilibrium(slipping, FULL).vertices - slipping.rest_vertices, axis=1)[rim]
    assert 1e-3 < moved.max() < 0.03
    assert rise(clamp_stiffness=1.0e9) == pytest.approx(own, abs=1e-5)
    assert rise(gravity=(0.0, 0.0, -9.81)) < own
    assert rise(wall_stiffness_scale=3.0e4 / DESCRIPTION.wall_stiffness) < own
    assert rise(wall_stiffness_scale=[1.0] * 9) == pytest.approx(own, abs=1e-9)
    assert rise(material=Material(law="yeoh", coefficients=[2.0e5, 1.0e3, 4.0e3])) < own

    moved = build_membrane(
        DESCRIPTION,
        RealMembrane(cells=12, column_wall_shift=[-0.02 / 3, -0.04 / 3], row_wall_shift=[0.01 / 3, -0.01 / 3]),
    )
    first = moved.chamber_of_element == 0
    mounted = moved.areas[first].sum() * DESCRIPTION.prestretch**2
    assert mounted == pytest.approx((0.16 - 0.06) * (0.16 - 0.05))

    even = build_membrane(DESCRIPTION, RealMembrane(cells=12))
    along_x = even.rest_vertices[even.elements, 0].mean(axis=1)
    tapered = replace(even, thickness=0.002 + 0.005 * along_x)
    volumes, _ = volumes_and_gradients(tapered, solve_equilibrium(tapered, FULL).vertices)
    assert (volumes[[0, 3, 6]] > 1.02 * volumes[[2, 5, 8]]).all()  # the thinner side holds more


def test_gravity_lets_a_slack_sheet_sag_far_and_a_taut_one_as_theory_says():
    """A square membrane of side L under tension T and weight w a square metre sags 0.07367 w L^2 / T."""

    def sag(prestretch: float) -> float:
        hanging = RealMembrane(cells=24, gravity=(0.0, 0.0, -9.81), prestretch=prestretch, wall_stiffness_scale=0.0)
        membrane = build_membrane(DESCRIPTION, hanging)
        vertices = solve_equilibrium(membrane, np.zeros(9)).vertices
        assert vertices[:, 2].max() < 1e-9
        return float(-vertices[:, 2].min())

    stretch = 1.1
    c1, c2, c3 = DESCRIPTION.material.coefficients
    j = 2.0 * stretch**2 + stretch**-4 - 3.0
    thickness = DESCRIPTION.thickness / stretch**2
    tension = 2.0 * thickness * (stretch**2 - stretch**-4) * (c1 + 2.0 * c2 * j + 3.0 * c3 * j**2)
    weight = DESCRIPTION.density * 9.81 * thickness
    expected = 0.07367 * weight * DESCRIPTION.width**2 / tension
    assert sag(stretch) == pytest.approx(expected, rel=0.01)
    assert expected < 1e-3
    assert 3e-3 < sag(1.0) < 0.02


def test_clamp_force_balances_the_pressure():
    """Springs of the walls and the clamp carry p times the area that the rim encloses, projected along z."""
    membrane = build_membrane(DESCRIPTION, RealMembrane(cells=12, clamp_stiffness=5.0e4))
    shape = solve_equilibrium(membrane, FULL).vertices
    upward = -(membrane.springs @ (shape - membrane.rest_vertices))[:, 2].sum()
    corners = shape[membrane.faces]
    projected = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2].sum()
    assert -upward == pytest.approx(5000.0 * projected, rel=1e-8)


@pytest.mark.parametrize(
    ("pressures", "reason"),
    [
        (np.full(8, 1000.0), "9 chambers"),
        (np.full((1, 9), 1000.0), "9 chambers"),
        (np.array([np.nan] + 8 * [0.0]), "chamber 1 is not a finite"),
        (np.array(8 * [0.0] + [np.inf]), "chamber 9 is not a finite"),
    ],
)
def test_bad_pressures_are_rejected(pressures, reason):
    with pytest.raises(SoftformError, match=reason):
        build_membrane(DESCRIPTION, RealMembrane(cells=6)).pressure_of_element(pressures)


@pytest.mark.parametrize(
    "reality",
    [
        {"cells": 2},
        {"thickness": {"scale": -1.0}},
        {"wall_stiffness_scale": [1.0] * 4},
        {"wall_stiffness_scale": -1.0},
        {"column_wall_shift": [0.1, -0.1]},
        {"row_wall_shift": [0.0]},
        {"row_wall_shift": [0.0, 0.15]},
        {"clamp_stiffness": 0.0},
    ],
)
def test_impossible_realities_are_rejected(reality):
    with pytest.raises((SoftformError, ValueError)):
        build_membrane(DESCRIPTION, RealMembrane(**{"cells": 6, **reality}))


def test_fewer_cells_than_chambers_are_rejected():
    with pytest.raises(SoftformError, match="fewer than 3 chambers"):
        build_membrane(DESCRIPTION.model_copy(update={"cells": 2}))


def test_energy_of_a_collapsed_element_is_infinite():
    membrane = build_membrane(DESCRIPTION, RealMembrane(cells=6))
    assert np.isinf(total_potential(membrane, np.zeros_like(membrane.rest_vertices), FULL))
