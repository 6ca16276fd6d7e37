"""Cables and grips on a mesh: derivatives by differences, a beam, a stretched block, and what a description may say."""

import importlib.util

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.spatial.transform import Rotation

from softform_core.bodies.elements import tetrahedron_shapes, wedge_shapes
from softform_core.bodies.freeform.description import FreeformBody
from softform_core.bodies.freeform.simulator import simulator
from softform_core.bodies.loads.cable import TAKE_UP, Cable
from softform_core.bodies.loads.grip import Grip
from softform_core.bodies.loads.load import Load
from softform_core.bodies.loads.on_mesh import located
from softform_core.bodies.solid.equilibrium import SolidProblem
from softform_core.errors import SoftformError
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import PulledBody

pytestmark = pytest.mark.slow

SHEAR, NU = 50e3, 0.3
YOUNG = 2.0 * SHEAR * (1.0 + NU)
SIDE, LENGTH = 0.01, 0.1

LOW = {"load": "grip", "name": "low", "begin": (-1, -1, 0.0), "end": (1, 1, 0.005)}
HIGH = {"load": "grip", "name": "high", "begin": (-1, -1, 0.095), "end": (1, 1, 0.1)}
PULLED = {
    "load": "cable",
    "name": "t1",
    "runs": [[(0.003, 0, 0), (0.003, 0, 0.03), (0.003, 0.002, 0.05)], [(0.003, 0, 0.06), (0.003, 0, 0.1)]],
    "stiffness": 300.0,
}
TENSE = {"load": "cable", "name": "t2", "runs": [[(-0.003, 0.001, -0.02), (-0.003, 0, 0.05), (-0.002, 0, 0.1)]]}


def beam(length: float = LENGTH, **fields) -> FreeformBody:
    described = {
        "kind": "freeform",
        "shape": [{"part": "box", "begin": (-0.5 * SIDE, -0.5 * SIDE, 0), "end": (0.5 * SIDE, 0.5 * SIDE, length)}],
        "mesh_size": 0.005,
        "density": 1000.0,
        "material": {"law": "neo_hookean", "coefficients": [SHEAR]},
        "poisson_ratio": NU,
        "gravity": (0, 0, 0),
    }
    return FreeformBody.model_validate(described | fields)


CASES = {
    "cable by its pull": (PULLED, [2e-3]),
    "cable by its tension": (TENSE, [0.4]),
    "grip": (HIGH, [2e-3, 1e-3, -1e-3, 0.3, -0.5, 0.8]),
}


def loaded(load: dict) -> tuple[Load, np.ndarray]:
    problem = simulator(beam(loads=[load]))
    moved = problem.solid.nodes + 2e-4 * np.random.default_rng(1).standard_normal(problem.solid.nodes.shape)
    return problem.solid.loads[0], moved


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_of_a_load_is_that_of_its_energy(case):
    (load, nodes), values = loaded(CASES[case][0]), np.array(CASES[case][1])
    gradient = np.zeros_like(nodes)
    load.add_gradient(nodes, values, gradient)
    direction = np.random.default_rng(2).standard_normal(nodes.shape)
    step = 1e-7 * direction
    ahead, behind = (load.energy(nodes + sign * step, values) for sign in (1.0, -1.0))
    assert (ahead - behind) / 2e-7 == pytest.approx(float(np.sum(gradient * direction)), rel=1e-6)
    change = np.zeros_like(nodes)
    load.add_gradient(nodes, values + 1e-6, change)
    assert load.energy(nodes, values) > 0.0
    by_values = load.by_values(nodes, values)
    for index in range(load.inputs):
        shift = 1e-7 * np.eye(load.inputs)[index]
        one, other = np.zeros_like(nodes), np.zeros_like(nodes)
        load.add_gradient(nodes, values + shift, one)
        load.add_gradient(nodes, values - shift, other)
        assert (one - other) / 2e-7 == pytest.approx(by_values[index], abs=1e-6 * np.abs(by_values).max())


@pytest.mark.parametrize("loads", [[PULLED, TENSE], [LOW, HIGH], [PULLED, HIGH]])
def test_the_derivatives_of_a_loaded_body_agree_with_differences(loads):
    problem = simulator(beam(loads=loads, support="base" if loads[0] is not LOW else "none"))
    random = np.random.default_rng(3)
    values = 1e-3 * random.uniform(0.5, 1.5, (1, len(problem.unloaded)))
    x = problem.rest[None] + 1e-4 * random.standard_normal((1, len(problem.rest)))
    gradient, hessian = problem.derivatives(x, values)
    direction = random.standard_normal(x.shape)
    step = 1e-7 * direction
    ahead, behind = (problem.energy(x + sign * step, values)[0] for sign in (1.0, -1.0))
    assert (ahead - behind) / 2e-7 == pytest.approx(float(np.sum(gradient * direction)), rel=1e-6)
    one, other = (problem.derivatives(x + sign * step, values)[0] for sign in (1.0, -1.0))
    expected = hessian.times(direction)
    assert np.abs((one - other) / 2e-7 - expected).max() < 1e-6 * np.abs(expected).max()
    solved = hessian.factorised().solve(expected[..., None])[..., 0]
    assert np.abs(solved - direction).max() < 1e-6 * np.abs(direction).max()


def test_a_constant_pull_bends_a_beam_as_its_moment_does():
    """Small deflection of a cantilever under the moment T e of a cable beside its axis: T e L^2 / (2 E I)."""
    length, beside, tension = 0.1, 0.0025, 2e-3
    points = [(beside, 0.0, z) for z in np.linspace(0.0, length, 6).tolist()]
    cable = {"load": "cable", "name": "t1", "runs": [points]}
    problem = simulator(beam(length, loads=[cable], mesh_size=0.0025))
    found = find_equilibria(problem, np.array([[tension]]))
    assert found.failures == [""]
    nodes = problem.nodes(found.unknowns[0])
    at_end = np.abs(problem.solid.nodes[:, 2] - length) < 1e-9
    exact = tension * beside * length**2 / (2.0 * YOUNG * SIDE**4 / 12.0)
    assert (nodes - problem.solid.nodes)[at_end, 0].mean() == pytest.approx(exact, rel=0.01)


def test_a_pulled_cable_has_the_tension_that_its_pull_and_the_body_give_it():
    """u = T (e^2 l / (E I) + l / (E A) + L / (E A of the cable)), by small strains, of the soft length l."""
    length, beside, stiffness, pull, plate = 0.1, 0.0025, 50.0, 2e-4, 0.01
    points = [(beside, 0.0, z) for z in np.linspace(0.0, length, 6).tolist()]
    cable = {"load": "cable", "name": "t1", "runs": [points], "stiffness": stiffness}
    # It ends in a plate, for a soft end gives way around the one point that the cable is fixed in.
    rigid = [{"part": "box", "begin": (-1, -1, length - plate), "end": (1, 1, 1)}]
    problem = simulator(beam(length, loads=[cable], mesh_size=0.0025, rigid=rigid))
    found = find_equilibria(problem, np.array([[pull]]))
    assert found.failures == [""]
    cable = problem.solid.loads[0]
    assert isinstance(cable, Cable)
    tension, soft = cable.tension(problem.nodes(found.unknowns[0]), np.array([pull])), length - plate
    give = soft * (beside**2 / (YOUNG * SIDE**4 / 12.0) + 1.0 / (YOUNG * SIDE**2)) + length / stiffness
    assert tension == pytest.approx((pull - 1e-5) / give, rel=0.03)


def test_motors_feel_the_cables_that_they_pull():
    problem = simulator(beam(loads=[HIGH, PULLED, TENSE]))
    assert isinstance(problem, PulledBody) and not isinstance(gripped(), PulledBody)
    values = np.array([[*np.zeros(6), 1e-3, 0.02]])
    found = find_equilibria(problem, values)
    loads = problem.tendon_loads(found.unknowns, values)
    assert loads.tension[[*range(6), 7]].tolist() == 7 * [0.0]
    assert loads.tension[6] == pytest.approx(loads.stiffness[6] * (loads.stretch[6] - 0.5 * TAKE_UP))
    assert 0.0 < loads.stretch[6] < 1e-3
    slack = problem.tendon_loads(problem.rest[None], np.array([[*np.zeros(6), -2e-3, 0.0]]))
    assert (slack.tension[6], slack.stretch[6]) == (0.0, pytest.approx(-2e-3))


def test_a_stiff_cable_is_found_in_few_steps_and_a_slack_one_does_nothing():
    problem = simulator(beam(loads=[PULLED | {"stiffness": 1e5}]))
    slack, taut = (find_equilibria(problem, np.array([[pull]])) for pull in (-1e-3, 2e-3))
    assert np.abs(slack.unknowns - problem.rest).max() < 1e-9
    assert taut.failures == [""] and taut.iterations[0] <= 12
    end = problem.points(taut.unknowns)[0] - problem.points(problem.rest[None])[0]
    assert end[:, 0].max() > 1e-3  # towards the cable


def test_in_a_bowden_tube_a_cable_bends_nothing():
    """Its two runs beside the tube bend; what lies along the tube turns as a whole."""
    straight = [(0.003, 0, z) for z in (0.0, 0.03)], [(0.003, 0, z) for z in (0.07, 0.1)]
    problem = simulator(beam(loads=[TENSE | {"runs": list(straight)}]))
    found = find_equilibria(problem, np.array([[0.02]]))
    moved = problem.nodes(found.unknowns[0]) - problem.solid.nodes
    z, x = problem.solid.nodes[:, 2], moved[:, 0]
    slope = {at: x[np.abs(z - at - 0.005) < 1e-6].mean() - x[np.abs(z - at) < 1e-6].mean() for at in (0.04, 0.06)}
    assert slope[0.06] == pytest.approx(slope[0.04], rel=0.05)
    through = simulator(beam(loads=[TENSE | {"runs": [[*straight[0], *straight[1]]]}]))
    other = through.nodes(find_equilibria(through, np.array([[0.02]])).unknowns[0]) - through.solid.nodes
    assert other[z > 0.0999, 0].mean() > 1.3 * x[z > 0.0999].mean()


def gripped(mesh_size: float = 0.005, **fields) -> SolidProblem:
    return simulator(beam(support="none", loads=[LOW, HIGH], mesh_size=mesh_size, **fields))


def test_a_block_between_two_grips_is_stretched_by_e_times_strain():
    problem, strain = gripped(), 1e-3
    pose = np.zeros((1, 12))
    pose[0, 8] = strain * 0.09
    found = find_equilibria(problem, pose)
    assert found.failures == [""]
    low, high = problem.solid.loads
    assert isinstance(low, Grip) and isinstance(high, Grip)
    nodes = problem.nodes(found.unknowns[0])
    force = YOUNG * strain * SIDE**2
    # Grips hinder what is beside them from getting narrower.
    assert high.wrench(nodes, pose[0, 6:]) == pytest.approx([0.0, 0.0, force, 0.0, 0.0, 0.0], abs=0.01 * force)
    assert low.wrench(nodes, pose[0, :6]) == pytest.approx([0.0, 0.0, -force, 0.0, 0.0, 0.0], abs=0.01 * force)
    assert np.abs(nodes[high.held] - high.places(pose[0, 6:])).max() < 1e-4 * strain * 0.09


def test_two_grips_that_move_as_one_lead_the_body_rigidly():
    problem = gripped()
    turn, shift = np.array([0.2, 0.9, -0.3]), np.array([0.03, -0.02, 0.05])
    rotation = Rotation.from_rotvec(turn)
    centres = [load.centre for load in problem.solid.loads]
    pose = np.concatenate([[*(rotation.apply(c) + shift - c), *turn] for c in centres])[None]
    found = find_equilibria(problem, pose)
    assert found.failures == [""]
    expected = rotation.apply(problem.solid.nodes) + shift
    assert np.abs(problem.nodes(found.unknowns[0]) - expected).max() < 1e-6


def test_how_the_body_follows_a_grip_is_what_sensitivities_say():
    problem, pose = gripped(), np.zeros((1, 12))
    pose[0, 6:] = 0.005, 0.0, -0.01, 0.0, 0.4, 0.2
    found = find_equilibria(problem, pose)
    moves = equilibrium_sensitivities(problem, found.unknowns, pose)
    for channel in (6, 8, 10, 11):
        step = 1e-5 * np.eye(12)[channel]
        ahead, behind = (find_equilibria(problem, pose + sign * step, found.unknowns).unknowns for sign in (1.0, -1.0))
        assert np.abs((ahead - behind)[0] / 2e-5 - moves[0, :, channel]).max() < 1e-3 * np.abs(moves).max()


def test_a_point_is_found_in_wedges_and_tetrahedra():
    random = np.random.default_rng(4)
    for count, shapes, place in (
        (18, wedge_shapes, np.array([[0.2, 0.3, -0.4]])),
        (10, tetrahedron_shapes, np.array([[0.1, 0.2, 0.3]])),
    ):
        flat = np.array([(0, 0), (1, 0), (0, 1), (0.5, 0), (0.5, 0.5), (0, 0.5)])
        if count == 18:
            nodes = np.column_stack([np.tile(flat, (3, 1)), np.repeat([-1.0, 0.0, 1.0], 6)])
        else:
            corners = np.concatenate([np.zeros((1, 3)), np.eye(3)])
            edges = [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)]
            nodes = np.concatenate([corners, [0.5 * (corners[a] + corners[b]) for a, b in edges]])
        nodes = nodes + 0.03 * random.standard_normal(nodes.shape)
        weights = shapes(place)[0][0]
        element, found = located(weights @ nodes, nodes, np.arange(count)[None])
        assert element == 0 and found == pytest.approx(weights, abs=1e-8)
        assert located(nodes.max(axis=0) + 1.0, nodes, np.arange(count)[None]) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "nothing would move it"),
        ({"loads": [PULLED, PULLED]}, "two loads are named 't1'"),
        ({"loads": [PULLED], "support": "none"}, "needs a grip"),
        ({"loads": [PULLED | {"runs": [[(0, 0, 0)]]}]}, "at least 2"),
        ({"loads": [PULLED | {"runs": [[(0, 0, 0), (0, 0, 0)]]}]}, "same point twice"),
        ({"loads": [HIGH | {"end": (1, 1, 0.095)}]}, "must lie below end"),
    ],
)
def test_impossible_loads_name_what_is_wrong(fields, message):
    with pytest.raises(ValidationError, match=message):
        beam(**fields)


def test_loads_that_miss_the_body_are_rejected():
    with pytest.raises(SoftformError, match="lies neither in the body nor in its support"):
        simulator(beam(loads=[PULLED | {"runs": [[(0, 0, 0.01), (0.02, 0, 0.05)]]}]))
    with pytest.raises(SoftformError, match="holds 0 nodes"):
        simulator(beam(loads=[HIGH | {"begin": (0, 0, 0.2), "end": (1, 1, 1)}]))


def test_a_cylinder_needs_no_mesher_and_is_round():
    radius, end = 0.02, 0.01
    cone = {"part": "cylinder", "begin": (0, 0, 0), "end": (0, 0, 0.1), "radius": radius, "end_radius": end}
    plate = {"part": "box", "begin": (-1, -1, 0.08), "end": (1, 1, 1)}
    problem = simulator(beam(shape=[cone], rigid=[plate], mesh_size=0.01, loads=[TENSE]))
    solid = problem.solid
    volume = np.pi * 0.1 / 3.0 * (radius**2 + radius * end + end**2)
    assert solid.shape_volumes.sum() == pytest.approx(volume, rel=5e-3)
    points = problem.points(problem.rest[None])[0]
    wall = points[points[:, 2] < 0.0999]
    assert np.hypot(*wall[:, :2].T) == pytest.approx(radius + (end - radius) * wall[:, 2] / 0.1)
    assert 0.0 < (solid.bulk > 2.0 * solid.bulk.min()).mean() < 0.3
    a, b, c = points[problem.faces].transpose(1, 0, 2)
    outwards = np.einsum("fi,fi->f", np.cross(b - a, c - a), (a + b + c) / 3.0 - [0.0, 0.0, 0.05])
    assert (outwards > 0.0).all()


@pytest.mark.skipif(importlib.util.find_spec("gmsh") is None, reason="gmsh is not installed")
def test_chambers_cables_and_grips_of_one_body_act_together():
    """Of one that gmsh meshes: inputs are those of the chambers, then of the loads, whatever else is rigid."""
    chamber = [{"part": "box", "begin": (-0.002, -0.002, 0.02), "end": (0.002, 0.002, 0.08)}]
    rigid = [{"part": "box", "begin": (-1, -1, 0.09), "end": (1, 1, 1)}]
    body = beam(chambers=[chamber], rigid=rigid, loads=[PULLED, HIGH])
    assert body.inputs == ["c1", "t1", *(f"high_{channel}" for channel in ("x", "y", "z", "rx", "ry", "rz"))]
    problem = simulator(body)
    values = np.array([[2e3, 5e-4, 1e-3, 0.0, 0.0, 0.0, 0.1, 0.0]])
    found = find_equilibria(problem, values)
    assert found.failures == [""]
    grip = problem.solid.loads[1]
    assert isinstance(grip, Grip)
    places = grip.places(values[0, 2:])
    assert np.abs(problem.nodes(found.unknowns[0])[grip.held] - places).max() < 1e-6


def test_a_body_without_loads_is_described_as_before_there_were_any():
    chamber = [{"part": "box", "begin": (-0.002, -0.002, 0.02), "end": (0.002, 0.002, 0.08)}]
    described = beam(chambers=[chamber]).model_dump(mode="json")
    assert "loads" not in described and "support" not in described
    assert beam(loads=[LOW, HIGH], support="none").model_dump(mode="json").keys() >= {"loads", "support"}
