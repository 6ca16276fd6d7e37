"""The tendon-driven rod against constant curvature, the helix's torque and finite differences; bad descriptions."""

from typing import Any

import numpy as np
import pytest
import yaml

from softform_core.bodies.loads.cable import TAKE_UP
from softform_core.bodies.rod.equilibrium import solve_equilibria, tip_sensitivities
from softform_core.bodies.tendon_rod.simulator import TendonRodProblem
from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.robots.load import read_robot

ROBOT = load_robot("tendon_rod", "tip")
OFFSET, LENGTH = 0.008, 0.2


def _described(**body: Any) -> dict[str, Any]:
    content = yaml.safe_load(robot_file("tendon_rod").read_text())
    content["body"] |= {"gravity": [0.0, 0.0, 0.0]} | body
    return content


def _problem(**body: Any) -> TendonRodProblem:
    return Robot.model_validate(_described(**body)).body.simulator()


def _one_straight_tendon(stiffness: float, limiter: float) -> TendonRodProblem:
    content = _described()
    for tendon in content["body"]["tendons"]:
        tendon["stiffness"] = stiffness
    content["body"]["section"]["strain_limiter"] = limiter
    return Robot.model_validate(content).body.simulator()


def test_one_stiff_tendon_bends_the_rod_to_a_constant_curvature():
    pull = 0.001
    problem = _one_straight_tendon(5e7, 1e8)
    found = solve_equilibria(problem, np.array([[pull, -0.01, -0.01, -0.01]]))
    curvature = -found.strains[0, :, 1]
    assert np.ptp(curvature) < 1e-9
    np.testing.assert_allclose(np.abs(curvature), pull / (OFFSET * LENGTH), rtol=1e-3)
    assert found.tips[0, 0] > 0.01  # towards the tendon at +x


def test_an_elastic_tendon_on_a_compressible_rod_shares_the_pull_as_springs_in_series():
    pull = 0.001
    problem = _one_straight_tendon(5000.0, 38000.0)
    values = np.array([[pull, -0.01, -0.01, -0.01]])
    found = solve_equilibria(problem, values)
    area = float(problem.rod.fibre_area.sum())
    bending = 4e7 * float((problem.rod.fibre_area * problem.rod.fibre_place[:, 0] ** 2).sum())
    axial, tendon = 4e7 * area + 38000.0, problem.tendons.stiffness[0]
    give = bending / OFFSET * (LENGTH / axial + 1.0 / tendon)
    expected = (pull - 0.5 * TAKE_UP) / (OFFSET * LENGTH + give)
    np.testing.assert_allclose(np.abs(found.strains[0, :, 1]), expected, rtol=2e-4)
    tension = problem.tensions(problem.unknowns(found.strains), values)[0]
    np.testing.assert_allclose(tension[0] * OFFSET, bending * expected, rtol=2e-3)
    np.testing.assert_array_equal(tension[1:], 0.0)  # slack


def test_the_helix_turns_the_rod_by_its_torque():
    problem = _problem()
    values = np.array([[-0.01, -0.01, -0.01, 0.0005]])
    found = solve_equilibria(problem, values)
    tension = problem.tensions(problem.unknowns(found.strains), values)[0, 3]
    helix_length = np.hypot(LENGTH, 2.0 * np.pi * OFFSET)
    np.testing.assert_allclose(problem.tendons.rest_length[3], helix_length, rtol=1e-12)
    torque = -tension * OFFSET * 2.0 * np.pi * OFFSET / helix_length  # a right-handed helix unwinds
    np.testing.assert_allclose((problem.rod.torsion * found.strains[0, :, 2]).mean(), torque, rtol=0.02)


def test_slack_tendons_carry_nothing_and_leave_the_rod_straight():
    problem = _problem()
    values = np.full((1, 4), -0.001)
    unknowns = problem.rest[None]
    np.testing.assert_array_equal(problem.tensions(unknowns, values), 0.0)
    np.testing.assert_allclose(solve_equilibria(problem, values).tips[0], [0.0, 0.0, LENGTH], atol=1e-12)


def test_gradient_hessian_and_load_derivative_are_derivatives_of_the_energy():
    problem = _problem(elements=3, gravity=[2.0, -5.0, -7.0], sections=2, link_length=0.01, link_mass=0.01)
    rng = np.random.default_rng(3)
    x = rng.normal(0.0, 0.1, (1, len(problem.rest)))
    values = np.array([[0.02, 0.03, -0.2, 0.05]])
    assert problem.tensions(x, values)[0, 2] == 0.0
    assert (problem.tensions(x, values)[0, [0, 1, 3]] > 0.0).all()
    gradient, hessian = problem.derivatives(x, values)
    step = 1e-6
    moved = [(x + step * e, x - step * e) for e in np.eye(x.shape[1])]
    slope = [(problem.energy(a, values) - problem.energy(b, values))[0] / (2 * step) for a, b in moved]
    np.testing.assert_allclose(gradient[0], slope, atol=1e-7 * np.abs(gradient).max())
    second = [(problem.derivatives(a, values)[0] - problem.derivatives(b, values)[0])[0] / (2 * step) for a, b in moved]
    np.testing.assert_allclose(hessian.blocks[0, 0], second, atol=1e-7 * np.abs(second).max())
    loads = [
        (problem.derivatives(x, values + step * e)[0] - problem.derivatives(x, values - step * e)[0])[0] / (2 * step)
        for e in np.eye(4)
    ]
    np.testing.assert_allclose(
        problem.load_derivative(x, values)[0], np.transpose(loads), atol=1e-6 * np.abs(loads).max()
    )


@pytest.mark.parametrize("stretch", [-1e-5, 0.3 * TAKE_UP, TAKE_UP, 3 * TAKE_UP])
def test_a_tendon_takes_up_its_stiffness_smoothly(stretch):
    problem = _problem(elements=2)
    x, values = problem.rest[None], np.array([[stretch, -1.0, -1.0, -1.0]])
    h = 1e-8
    slope = (problem.energy(x, values + h * np.eye(4)[:1]) - problem.energy(x, values - h * np.eye(4)[:1]))[0] / (2 * h)
    np.testing.assert_allclose(slope, problem.tensions(x, values)[0, 0], atol=1e-5)


def test_a_tendon_of_the_first_section_leaves_the_second_one_alone():
    tendons = [
        {"place": [0.008, 0.0], "stiffness": 5e3, "sections": [1, 1]},
        {"place": [0.0, 0.008], "stiffness": 5e3, "sections": [2, 2]},
    ]
    content = _described(sections=2, tendons=tendons)
    problem = read_robot({**content, "actuation_map": {"kind": "identity"}, "devices": [
        {"name": "dynamixel", "channels": [1, 2]}]}, "two").body.simulator()  # fmt: skip
    bends = solve_equilibria(problem, np.array([[0.004, -0.001], [-0.001, 0.004]])).strains
    half = problem.rod.section == 0
    assert (np.abs(bends[0, half, 1]) > 1.0).all()
    np.testing.assert_allclose(bends[0, ~half], 0.0, atol=1e-9)
    assert (np.abs(bends[1, ~half, 0]) > 1.0).all()
    np.testing.assert_allclose(bends[1, half], 0.0, atol=1e-9)


def test_the_sensitivity_of_the_tip_is_that_of_solves_beside_it():
    problem, rng = ROBOT.body.simulator(), np.random.default_rng(5)
    actuations = rng.uniform(ROBOT.actuation_min, ROBOT.actuation_max, (4, 3))
    values = ROBOT.actuators_of(actuations)
    centre = solve_equilibria(problem, values)
    found = tip_sensitivities(problem, centre.strains, values)
    for tendon, step in enumerate(1e-8 * np.eye(4)):
        ahead, behind = (solve_equilibria(problem, values + sign * step).tips for sign in (1, -1))
        np.testing.assert_allclose(found[:, :, tendon], (ahead - behind) / 2e-8, atol=1e-4 * np.abs(found).max())


def test_the_whole_range_has_equilibria_and_taut_tendons_where_they_pull():
    problem, rng = ROBOT.body.simulator(), np.random.default_rng(6)
    values = ROBOT.actuators_of(rng.uniform(ROBOT.actuation_min, ROBOT.actuation_max, (40, 3)))
    found = solve_equilibria(problem, values)
    assert not any(found.failures)
    tensions = problem.tensions(problem.unknowns(found.strains), values)
    assert tensions.max() < 30.0
    assert ((values > 0.002) <= (tensions > 0.0))[:, :3].all()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"tendons": [{"place": [0.0, 0.0], "stiffness": 1.0}]}, "beside the rod's axis"),
        ({"tendons": [{"place": [0.01, 0.0], "stiffness": 1.0, "sections": [1, 2]}]}, "through sections 1 to 2 of 1"),
        ({"planar": True}, "leaves the plane"),
        ({"tendons": []}, "at least 1 item"),
    ],
)
def test_a_tendon_that_does_not_fit_is_rejected(change, complaint):
    with pytest.raises(SoftformError, match=complaint):
        read_robot(_described(**change), "a test")


def test_commands_are_displacements_in_metres():
    assert (ROBOT.quantity, ROBOT.unit) == ("displacement", "m")
    with pytest.raises(SoftformError, match="Displacement 0.05 m of t1 is outside"):
        ROBOT.check_commands(np.array([0.05, 0.0, 0.0, 0.0]))


@pytest.mark.parametrize("given", [{}, {"settle": 0.0001}, {"arrive": 0.001}])
def test_tolerances_that_are_not_given_are_parts_of_the_range_in_metres(given):
    tolerances = read_robot(_described() | {"tolerances": given}, "a test").actuator_tolerances._asdict()
    usual = {"settle": 0.00056, "arrive": 0.0014, "follow": 0.0056, "beyond_range": 0.0056}
    assert np.isnan(tolerances.pop("vent_threshold")).all()  # nothing to vent
    assert {name: values.min() for name, values in tolerances.items()} == pytest.approx(usual | given)
