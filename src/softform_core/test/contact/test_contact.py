"""Contact: derivatives, a beam on a plane, a ball pressed into a block, no penetration, stable balances, bad input."""

import numpy as np
import pytest
from pydantic import ValidationError

from softform_core.bodies.freeform.description import FreeformBody
from softform_core.contact.barrier import Barrier, Skin
from softform_core.contact.obstacles import Obstacle, Plane, ball_mesh, obstacles_of
from softform_core.contact.touching_body import TouchingBody
from softform_core.errors import SoftformError
from softform_core.forward.simulated_models import SimulatedModel
from softform_core.geometry.winding import lies_within
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.robots import load_robot
from softform_core.robots.contact import Contact
from softform_core.shapes.shape import Shape
from softform_core.simulation.block_tridiagonal import BlockTridiagonalHessian
from softform_core.simulation.conformance import CHECKS, Examined
from softform_core.simulation.hessian import UpdatedHessian
from softform_core.simulation.newton import find_equilibria
from softform_core.units import MM_PER_M

pytest.importorskip("ipctk", reason="ipctk is not installed")

BALL = {"shape": "sphere", "name": "ball", "centre": (0.02, 0.01, 0.06), "radius": 0.03}
BOX = {"shape": "box", "name": "mould", "centre": (-0.08, 0.0, 0.05), "size": (0.1, 0.1, 0.04), "turn": (0.1, 0.2, 0.3)}
CEILING = {"shape": "plane", "name": "ceiling", "point": (0, 0, 0.045), "normal": (0.1, 0, -1)}


def membrane(*obstacles: dict, cells: int = 9, **fields: object):
    body = load_robot("membrane").body
    return type(body).model_validate(
        body.model_dump() | {"cells": cells, "contact": {"obstacles": obstacles, **fields}}
    )


@pytest.fixture(scope="module")
def touching() -> TouchingBody:
    return membrane(BALL, BOX, CEILING).simulator()


def test_the_barrier_is_differentiable():
    """A ball near another one, near a box, a plane, and with a dent that touches itself."""
    vertices, faces = ball_mesh(0.02, 4e-3)
    other = Obstacle("other", vertices + [0.0411, 0.003, 0.001], faces)
    box = Obstacle("box", 0.01 * vertices / np.abs(vertices).max() + [-0.001, 0.0315, 0.0], faces)
    plane = Plane("floor", np.array([0.0, 0.0, -0.0212]), np.array([0.0, 0.0, 1.0]))
    barrier = Barrier(
        Skin(vertices, faces, True, np.zeros(len(vertices), bool)), [other, box], [plane], 2.5e-3, 1e4, False
    )
    random = np.random.default_rng(1)
    points = vertices + 1e-4 * random.standard_normal(vertices.shape)
    assert {one.name for one in barrier.touches(points)} == {"other", "box", "floor"}
    way = random.standard_normal(points.shape)
    step = 1e-8 * way
    slope = (barrier.energy(points + step) - barrier.energy(points - step)) / 2e-8
    assert np.sum(barrier.gradient(points) * way) == pytest.approx(slope, rel=1e-6)
    rise = (barrier.gradient(points + step) - barrier.gradient(points - step)).ravel() / 2e-8
    found = barrier.hessian(points) @ way.ravel()
    assert np.abs(found - rise).max() < 1e-5 * np.abs(rise).max()
    pushes = sum(one.forces.sum(axis=0) for one in barrier.touches(points))
    assert pushes == pytest.approx(-barrier.gradient(points).sum(axis=0), rel=1e-9)


CHEAP = {"derivatives_are_those_of_the_energy", "actuators_move_the_points_as_sensitivities_say"}


@pytest.fixture(scope="module")
def held() -> Examined:
    return Examined.of(membrane(BALL, CEILING, reach=2e-3), np.full(9, 2500.0), np.full(9, 4500.0))


@pytest.mark.parametrize(
    "check",
    [pytest.param(one, marks=() if one.__name__ in CHEAP else pytest.mark.long, id=one.__name__) for one in CHECKS],
)
def test_a_body_with_contact_does_what_a_body_must(check, held):
    """With derivatives, and how it moves with its actuators while it is held, equal to differences."""
    check(held)


@pytest.mark.long
def test_the_force_is_the_work_over_the_way():
    """Of the energy of the whole by the place of the ball, which is the force on it."""
    pressures = np.full((1, 9), 4000.0)

    def at(rise: float):
        body = membrane(BALL | {"centre": (0.02, 0.01, 0.06 + rise)}).simulator()
        return body, find_equilibria(body, pressures)

    (_, low), (body, found), (_, high) = at(-1e-5), at(0.0), at(1e-5)
    (ball,) = body.touches(found.unknowns[0])
    assert ball.name == "ball" and ball.force[2] < -10.0
    assert ball.force[2] == pytest.approx((high.energy - low.energy)[0] / 2e-5, rel=1e-4)
    assert np.linalg.norm(ball.place - [0.02, 0.01, 0.06]) == pytest.approx(0.03, abs=2e-3)


SHEAR, NU, SIDE, LENGTH = 50e3, 0.3, 0.01, 0.1


def beam(gravity: float, **fields: object) -> FreeformBody:
    described = {
        "kind": "freeform",
        "shape": [{"part": "box", "begin": (-0.5 * SIDE, -0.5 * SIDE, 0), "end": (0.5 * SIDE, 0.5 * SIDE, LENGTH)}],
        "loads": [{"load": "cable", "name": "t", "runs": [[(0, 0, 0), (0, 0, 0.1)]]}],
        "mesh_size": 0.01,
        "density": 1000.0,
        "material": {"law": "neo_hookean", "coefficients": [SHEAR]},
        "poisson_ratio": NU,
        "gravity": (0, -gravity, 0),
    }
    return FreeformBody.model_validate(described | fields)


def test_a_beam_leans_on_a_plane_as_a_propped_cantilever():
    """Its end presses with R = 3/8 q L - 3 E I g / L^3, less a few per cent: the plane meets it before its very end."""
    gravity, gap = 0.4, 0.001
    plane = {"shape": "plane", "name": "floor", "point": (0, -0.5 * SIDE - gap, 0), "normal": (0, 1, 0)}
    body = beam(gravity, contact={"obstacles": [plane], "reach": 1e-4}).simulator()
    found = find_equilibria(body, np.zeros((1, 1)))
    assert not found.failures[0]
    (floor,) = body.touches(found.unknowns[0])
    load, stiffness = 1000.0 * gravity * SIDE**2, 2.0 * SHEAR * (1.0 + NU) * SIDE**4 / 12.0
    expected = 3.0 / 8.0 * load * LENGTH - 3.0 * stiffness * gap / LENGTH**3
    assert floor.force[1] == pytest.approx(expected, rel=0.06)
    assert floor.place[2] > 0.9 * LENGTH


@pytest.mark.long
def test_a_held_base_may_stand_on_a_plane():
    """Its wall, which is pressed down beside it, may not pass through."""
    floor = {"shape": "plane", "name": "floor", "point": (0, 0, 0), "normal": (0, 0, 1)}
    body = beam(0.4, contact={"obstacles": [floor]}).simulator()
    found = find_equilibria(body, np.zeros((1, 1)))
    assert not found.failures[0] and body.points(found.unknowns)[0, :, 2].min() >= 0.0


def test_nothing_passes_through_in_random_shapes(touching):
    _press_at_random(touching, 2)


def test_touches_are_told_again_and_again(touching):
    """A pair of the library that outlived its set would end the process."""
    found = find_equilibria(touching, np.full((1, 9), 4500.0))
    told = [touching.touches(found.unknowns[0]) for _ in range(60)]
    assert {tuple(one.name for one in touches) for touches in told} == {tuple(one.name for one in told[0])}
    assert told[0]


@pytest.mark.long
def test_nothing_passes_through_in_a_thousand_random_shapes(touching):
    _press_at_random(touching, 1000)


def _press_at_random(body: TouchingBody, count: int) -> None:
    touched = 0
    for pressures in np.random.default_rng(5).uniform(-2000.0, 5000.0, (count, 9)):
        found = find_equilibria(body, pressures[None])
        assert not found.failures[0], f"{pressures.tolist()}: {found.failures[0]}"
        points = body.points(found.unknowns)[0]
        assert (np.linalg.norm(points - BALL["centre"], axis=1) > BALL["radius"] - 1e-5).all()
        assert ((points - CEILING["point"]) @ np.array(CEILING["normal"]) > 0.0).all()
        assert body.impossible(found.unknowns) == [""]
        touched += bool(body.touches(found.unknowns[0]))
    assert touched > 0.4 * count


def arm(*obstacles: dict):
    body = load_robot("manipulator").body
    cells = {"chamber": 2, "rib": 2, "layers": 2}
    less = {"gravity": (0, 0, 0), "segments": 1, "length": 0.14, "cells": cells}
    return type(body).model_validate(body.model_dump() | less | {"contact": {"obstacles": obstacles}})


@pytest.mark.long
def test_an_arm_that_leans_on_a_ball_slides_off_its_top():
    """Right on top it would be in balance, but an unstable one: the arm ends beside it, at less energy."""
    body = arm({"shape": "sphere", "name": "ball", "centre": (0.066, 0.0, 0.12), "radius": 0.04}).simulator()
    pressures = np.array([[0.0, 20e3, 20e3]])
    found = find_equilibria(body, pressures)
    assert not found.failures[0]
    assert (body.derivatives(found.unknowns, pressures)[1].factorised().pivots > 0.0).all()
    aside = abs(body.points(found.unknowns)[0, -1, 1])
    assert aside > 1e-4, f"{aside} m"


def test_an_arm_that_is_pulled_against_wall_and_ball_keeps_its_layers():
    """What its facets meet joins neighbouring layers alone, so that the factor costs as little as without contact."""
    body = load_robot("helix").body
    sections = [one.model_dump() | {"layers": 12} for one in body.sections]
    wall = {"shape": "plane", "name": "wall", "point": (0.08, 0, 0), "normal": (-1, 0, 0)}
    ball = {"shape": "sphere", "name": "ball", "centre": (0.1135, 0.0, 0.75), "radius": 0.06}
    less = {"sections": sections, "rings": 1, "cable_circle": 0.03, "contact": {"obstacles": [wall, ball]}}
    arm = type(body).model_validate(body.model_dump() | less).simulator()
    pulls = np.array([[0.012, -0.002, -0.002, 0.02, 0.0, 0.0, 0.02, 0.0, 0.0]])
    found = find_equilibria(arm, pulls)
    assert not found.failures[0] and {one.name for one in arm.touches(found.unknowns[0])} == {"wall", "ball"}
    hessian = arm.derivatives(found.unknowns, pulls)[1]
    assert isinstance(hessian, UpdatedHessian) and isinstance(hessian.sparse, BlockTridiagonalHessian)
    way = np.random.default_rng(2).standard_normal(found.unknowns.shape)
    ahead, back = (arm.derivatives(found.unknowns + step * way, pulls)[0] for step in (1e-8, -1e-8))
    rise = (ahead - back) / 2e-8
    assert np.abs(hessian.times(way) - rise).max() < 1e-5 * np.abs(rise).max()


@pytest.mark.parametrize(
    ("obstacle", "said"),
    [
        (BALL | {"centre": (0.018, 0.018, 0.02)}, r"At rest the body lies in obstacle 'ball' at \(.*\) mm"),
        (BALL | {"centre": (0, 0, 0), "radius": 0.004}, r"passes through obstacle 'ball' near \(.*\) mm"),
        (CEILING | {"point": (0, 0, -0.01)}, r"behind plane 'ceiling' at \(.*\) mm"),
    ],
)
def test_what_is_in_the_way_at_rest_is_told(obstacle, said):
    with pytest.raises(SoftformError, match=said):
        membrane(obstacle).simulator()


@pytest.mark.parametrize("reach", [1e-7, 0.5])
def test_a_reach_beside_all_measure_is_told(reach):
    with pytest.raises(SoftformError, match="does not fit a body of 0.32 m"):
        membrane(BALL, reach=reach).simulator()


def test_an_obstacle_within_the_body_is_told():
    ball = {"shape": "sphere", "name": "pea", "centre": (0, 0, 0.05), "radius": 0.003}
    with pytest.raises(SoftformError, match=r"obstacle 'pea' lies in the body at \(.*, 50\) mm"):
        beam(0.0, contact={"obstacles": [ball]}).simulator()


def test_the_hollow_of_a_mesh_is_not_within_it(tmp_path):
    vertices, faces = ball_mesh(0.03, 1e-3)
    path = tmp_path / "shell.obj"
    lines = [f"v {x} {y} {z}" for x, y, z in np.concatenate([vertices, 0.9 * vertices])]
    lines += [f"f {a} {b} {c}" for a, b, c in np.concatenate([faces, faces + len(vertices)]) + 1]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    described = Contact.model_validate({"obstacles": [{"shape": "mesh", "name": "shell", "file": str(path)}]})
    (shell,) = obstacles_of(described, 1e-3)
    places = np.array([[0.0, 0.0, 0.0], [0.0, 0.0283, 0.0], [0.0, 0.04, 0.0]])
    assert lies_within(shell.vertices[shell.faces], places).tolist() == [False, True, False]


def test_a_mesh_must_be_closed(tmp_path):
    vertices, faces = ball_mesh(0.03, 1e-3)
    path = tmp_path / "mould.obj"
    lines = [f"v {x} {y} {z}" for x, y, z in vertices + [0, 0, 0.06]]

    def write(some):
        path.write_text("\n".join(lines + [f"f {a} {b} {c}" for a, b, c in some + 1]) + "\n", encoding="utf-8")

    mesh = {"shape": "mesh", "name": "mould", "file": str(path)}
    write(faces)
    body = membrane(mesh).simulator()
    found = find_equilibria(body, np.full((1, 9), 3000.0))
    assert [one.name for one in body.touches(found.unknowns[0])] == ["mould"]
    write(faces[1:])
    with pytest.raises(SoftformError, match=r"'mould' .* is open: it has 1 hole, .* around \(.*\) mm"):
        membrane(mesh).simulator()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "neither obstacles nor itself"),
        ({"obstacles": [BALL, BALL]}, "names of their own"),
        ({"obstacles": [BALL | {"name": "itself"}]}, "names of their own"),
        ({"obstacles": [CEILING | {"normal": (0, 0, 0)}]}, "is zero"),
        ({"obstacles": [BALL | {"radius": 0.0}]}, "greater than 0"),
    ],
)
def test_a_description_is_checked(fields, said):
    with pytest.raises(ValidationError, match=said):
        Contact.model_validate(fields)


def test_a_body_without_a_skin_of_its_own_is_told():
    body = load_robot("three_chamber").body
    with pytest.raises(SoftformError, match="no skin|turns with its sections"):
        type(body).model_validate(body.model_dump() | {"contact": {"obstacles": [BALL]}}).simulator()


def test_contact_changes_no_fingerprint_where_there_is_none():
    robot = load_robot("membrane")
    assert "contact" not in robot.body.model_dump()
    pressed = robot.model_copy(update={"body": membrane(BALL, cells=robot.body.cells)})
    assert pressed.fingerprint != robot.fingerprint


@pytest.mark.long
def test_a_ball_presses_into_a_block_as_hertz_says():
    """F = 4/3 E* sqrt(R) d^1.5 on a half space.

    A block six contact radii deep on a held base is stiffer, and so is its mesh, whose nodes are 2.5 mm apart under a
    contact 10 mm across: by up to a third, as a block of 20 mm under a larger ball was by two thirds.
    """
    radius, depth, gap = 0.03, 0.0008, 0.0005
    ball = {"shape": "sphere", "name": "ball", "centre": (0, 0, 0.03 + gap + radius), "radius": radius}
    block = {
        "shape": [{"part": "box", "begin": (-0.02, -0.02, 0), "end": (0.02, 0.02, 0.03)}],
        "loads": [{"load": "grip", "name": "hand", "begin": (-1, -1, 0), "end": (1, 1, 0.001)}],
        "support": "none",
        "mesh_size": 0.005,
        "contact": {"obstacles": [ball], "reach": 3e-5},
        "surface": "sheet",
    }
    body = beam(0.0, **block).simulator()
    found = find_equilibria(body, np.array([[0.0, 0.0, gap + depth, 0.0, 0.0, 0.0]]))
    assert not found.failures[0]
    (touch,) = body.touches(found.unknowns[0])
    modulus = 2.0 * SHEAR * (1.0 + NU) / (1.0 - NU**2)
    half_space = 4.0 / 3.0 * modulus * np.sqrt(radius) * depth**1.5
    assert 0.95 * half_space < -touch.force[2] < 1.35 * half_space, -touch.force[2] / half_space
    assert np.abs(touch.place[:2]).max() < 5e-4


def test_two_lips_of_one_skin_touch_each_other():
    """A skin that is bent onto itself: its own forces cancel, and no step leads through it."""
    along, around = np.meshgrid(np.linspace(0.0, np.pi, 11), np.linspace(0.0, 0.02, 3), indexing="ij")
    vertices = np.stack([0.02 * np.sin(along), around, -0.02 * np.cos(along)], axis=-1).reshape(-1, 3)
    cells = np.array([3 * i + j for i in range(10) for j in range(2)])
    corners = (cells, cells + 3, cells + 4), (cells, cells + 4, cells + 1)
    faces = np.concatenate([np.stack(one, axis=1) for one in corners])
    barrier = Barrier(Skin(vertices, faces, False, np.zeros(len(vertices), bool)), [], [], 1e-3, 1e4, True)
    assert barrier.energy(vertices) == 0.0
    beyond = vertices * [1.0, 1.0, -1.0]  # its lower lip is above the upper one, and askew
    beyond[:, 2] += 0.2 * vertices[:, 1] * (vertices[:, 2] > 0.0)
    near = vertices
    while not barrier.energy(near):
        share = barrier.free_share(near, beyond)
        assert 0.0 < share < 0.5
        near = near + share * (beyond - near)
    (fold,) = barrier.touches(near)
    assert fold.name == "itself" and np.linalg.norm(fold.forces, axis=1).min() > 0.0
    assert np.abs(fold.force).max() < 1e-9 * np.abs(fold.forces).sum()


@pytest.mark.long
def test_inverse_kinematics_pushes_against_an_obstacle():
    """A shape that the held sheet takes is found by its pressures; free, it would be another one."""
    robot, body = load_robot("membrane"), membrane(BALL, reach=2e-3).simulator()
    model, hidden = SimulatedModel(robot, body), np.linspace(4200.0, 2800.0, 9)
    state = model.forward(hidden[None])
    assert body.touches(state.unknowns[0])
    target = Shape(state.points[0] / MM_PER_M, None, body.faces)
    options = IkOptions(robot.actuation_min, robot.actuation_max, relative_decrease=1e-6)
    result = solve_inverse_kinematics(model, target, options)
    assert result.mean_error_mm < 0.05
    np.testing.assert_allclose(result.actuation, hidden, atol=50.0)


def test_a_data_set_holds_shapes_that_touch():
    body = membrane(BALL, reach=2e-3)
    solved = body.sampled().solve(np.full((1, 9), 4000.0), np.eye(9)[None])
    assert solved.failures == [""]
    away = np.linalg.norm(solved.outputs["vertices"][0] - BALL["centre"], axis=1)
    assert away.min() > BALL["radius"]
    free = membrane(BALL).model_copy(update={"contact": None}).sampled().solve(np.full((1, 9), 4000.0), np.eye(9)[None])
    assert np.linalg.norm(free.outputs["vertices"][0] - BALL["centre"], axis=1).min() < BALL["radius"]
    with pytest.raises(SoftformError, match="not simulated on a device"):
        body.batched("cpu")
