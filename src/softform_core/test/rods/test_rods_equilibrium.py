"""The rod against the elastica, pure bending, finite differences, and the symmetries of its robots."""

import numpy as np
import pytest
import yaml
from scipy.integrate import solve_bvp
from scipy.spatial.transform import Rotation

from softform_core.bodies.rod.equilibrium import RodProblem, solve_equilibria, tip_sensitivities
from softform_core.bodies.rod.model import build_rod, wall_fibres
from softform_core.bodies.rotations import mean_tangent_derivative, turns_by
from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.robots.description import Material

FINGERS, THREE_CHAMBER = load_robot("planar_fingers", "tip"), load_robot("three_chamber", "tip")


def _cantilever(tip_mass: float, elements: int = 40) -> tuple[Robot, float]:
    """One slender, weightless finger without chambers to speak of in a vertical plane, and its bending stiffness."""
    described = yaml.safe_load(robot_file("planar_fingers").read_text())
    hole = {"outline": "rectangle", "width": 1e-5, "height": 1e-5}
    described["devices"][0]["channels"] = [0, 1]
    described["actuators"]["names"] = ["s1+", "s1-"]
    described["body"] |= {"sections": 1, "link_length": 1e-9, "link_mass": tip_mass, "elements": elements}
    described["body"]["gravity"] = [0.0, -9.81, 0.0]
    described["body"]["section"] |= {
        "length": 0.4,
        "width": 0.002,
        "height": 0.03,
        "taper": 1.0,
        "density": 1e-6,
        "strain_limiter": 0.0,
        "material": {"law": "neo_hookean", "coefficients": [1e6]},
        "chambers": [{"centre": [-0.0005, 0.0]} | hole, {"centre": [0.0005, 0.0]} | hole],
    }
    return Robot.model_validate(described), 3e6 * 0.03 * 0.002**3 / 12.0


def _elastica_tip(length: float, load_over_stiffness: float) -> np.ndarray:
    """Tip of a clamped elastica under a dead load across it: theta'' = -F cos(theta) / EI, by collocation."""
    arc = np.linspace(0.0, length, 200)
    found = solve_bvp(
        lambda s, y: np.array([y[1], load_over_stiffness * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])]),
        lambda a, b: np.array([a[0], b[1], a[2], a[3]]),
        arc,
        np.vstack([-0.5 * arc / length, np.full_like(arc, -1.0), arc, np.zeros_like(arc)]),
        tol=1e-8,
    )
    assert found.success
    return found.y[2:, -1]


@pytest.mark.parametrize("load", [1.0, 5.0])
def test_a_cantilever_under_a_tip_load_bends_as_the_elastica(load):
    # F L^2 / EI = 5 sinks the tip by 71 % of the length.
    stiffness = _cantilever(1.0)[1]
    robot, _ = _cantilever(load * stiffness / (9.81 * 0.4**2))
    tip = solve_equilibria(RodProblem(build_rod(robot.body)), np.zeros((1, 2))).tips[0]
    expected = _elastica_tip(0.4, load / 0.4**2)
    assert -expected[1] / 0.4 == pytest.approx({1.0: 0.30172, 5.0: 0.71379}[load], abs=1e-4)  # Bisshopp, Drucker 1945
    np.testing.assert_allclose(tip[:2], expected, atol=0.002 * 0.4)


def test_elements_converge_to_second_order():
    load = 2.0 * _cantilever(1.0)[1] / (9.81 * 0.4**2)
    tips = [
        solve_equilibria(_cantilever(load, n)[0].body.simulator(), np.zeros((1, 2))).tips[0] for n in (5, 10, 20, 80)
    ]
    errors = [np.linalg.norm(tip - tips[-1]) for tip in tips[:-1]]
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 3.0


def test_pressure_alone_bends_an_even_finger_into_a_circle_of_the_beams_curvature():
    described = yaml.safe_load(robot_file("planar_fingers").read_text())
    described["body"]["section"]["taper"] = 1.0
    robot = Robot.model_validate(described)
    section, pressure = robot.body.section, 300.0
    found = solve_equilibria(RodProblem(build_rod(robot.body)), robot.actuators_of(np.array([[pressure, 0.0, 0.0]])))
    curvature = found.strains[0, :, 1]
    first, others = curvature[: robot.body.elements], curvature[robot.body.elements :]
    assert np.ptp(first) < 1e-9 * first.mean()
    np.testing.assert_allclose(others, 0.0, atol=1e-9)
    place, area = wall_fibres(section, section.chambers, planar=True)
    hole = section.chambers[0]
    moment = pressure * hole.width * hole.height * -hole.centre[0]
    stiffness = 6.0 * section.material.coefficients[0] * float(area @ place[:, 0] ** 2)
    # The fibres of a rod whose limiter holds its axis; to first order in so small a pressure.
    np.testing.assert_allclose(first.mean(), moment / stiffness, rtol=2e-3)
    angle, length = first.mean() * section.length, section.length * (1.0 + found.strains[0, 0, 3])
    straight = 3 * robot.body.link_length + 2 * section.length
    expected = [
        length * np.sin(angle) / angle + straight * np.cos(angle),
        length * (1.0 - np.cos(angle)) / angle + straight * np.sin(angle),
    ]
    np.testing.assert_allclose(found.tips[0, :2], expected, atol=1e-6)
    problem = RodProblem(build_rod(robot.body))
    turn = Rotation.from_matrix(problem.turns(problem.unknowns(found.strains))[0, 0]).as_rotvec()
    np.testing.assert_allclose(turn, [0.0, 0.0, angle], atol=1e-9)


@pytest.mark.parametrize("robot", [THREE_CHAMBER, FINGERS], ids=lambda robot: robot.name)
def test_gradient_and_hessian_are_derivatives_of_the_energy(robot):
    problem = RodProblem(build_rod(robot.body.model_copy(update={"elements": 3, "gravity": (2.0, -5.0, -7.0)})))
    rod, rng = problem.rod, np.random.default_rng(3)
    pressures = robot.actuators_of(rng.uniform(robot.actuation_min, robot.actuation_max))[None]
    strains = np.zeros((1, rod.elements, 4))
    strains[..., rod.strains] = rng.normal(0.0, [3.0, 3.0, 3.0, 0.03], (rod.elements, 4))[:, rod.strains]
    x = problem.unknowns(strains)
    gradient, hessian = problem.derivatives(x, pressures)
    step = 1e-5
    moved = [(x + step * e, x - step * e) for e in np.eye(x.shape[1])]
    slope = [(problem.energy(a, pressures) - problem.energy(b, pressures))[0] / (2 * step) for a, b in moved]
    np.testing.assert_allclose(gradient[0], slope, atol=1e-6 * np.abs(gradient).max())
    second = [problem.derivatives(a, pressures)[0] - problem.derivatives(b, pressures)[0] for a, b in moved]
    exact, found = np.concatenate(second) / (2 * step), hessian.blocks[0, 0]
    np.testing.assert_allclose(found, exact, atol=1e-6 * np.abs(exact).max())
    apart = np.kron(1 - np.eye(rod.elements), np.ones((len(rod.strains),) * 2)) > 0
    assert np.abs(exact[apart]).max() > 0.0
    np.testing.assert_allclose(found[apart], exact[apart], atol=1e-5 * np.abs(exact[apart]).max())


@pytest.mark.parametrize("phi", [[0.0, 0.0, 0.0], [1e-5, -2e-5, 0.0], [0.02, 0.01, -0.03], [0.7, -1.1, 0.4]])
def test_an_elements_turn_and_arc_and_their_derivative(phi):
    phi = np.array(phi)
    turns = turns_by(phi)
    np.testing.assert_allclose(turns.turn, Rotation.from_rotvec(phi).as_matrix(), atol=1e-12)
    shares = (np.arange(4000) + 0.5) / 4000
    np.testing.assert_allclose(
        turns.mean, Rotation.from_rotvec(shares[:, None] * phi).as_matrix().mean(axis=0), atol=1e-7
    )
    step = 1e-6 * np.eye(3)
    difference = (turns_by(phi + step).mean - turns_by(phi - step).mean)[:, :, 2] / 2e-6
    np.testing.assert_allclose(mean_tangent_derivative(turns), np.transpose(difference), atol=1e-8)


def test_the_three_chambers_are_alike():
    tips = solve_equilibria(RodProblem(build_rod(THREE_CHAMBER.body)), 50000.0 * np.eye(3)).tips
    third = Rotation.from_euler("z", 120, degrees=True)
    for one, next_one in zip(tips, np.roll(tips, -1, axis=0), strict=True):
        np.testing.assert_allclose(third.apply(one), next_one, atol=2e-4)
    assert tips[0, 0] < -0.02  # the chamber at +x bends the actuator towards -x


def test_the_fingers_bend_alike_to_both_sides_by_about_120_degrees():
    problem = FINGERS.body.simulator()
    rod = problem.rod
    actuations = np.array([[60000.0, -30000.0, 10000.0], [60000.0, 0.0, 0.0]])
    found = solve_equilibria(problem, FINGERS.actuators_of(np.concatenate([actuations, -actuations])))
    np.testing.assert_allclose(found.tips[:2] * [1.0, -1.0, 1.0], found.tips[2:], atol=1e-9)
    finger = rod.section == 0
    bend = np.degrees((found.strains[1, :, 1] * rod.length)[finger].sum())
    assert 115.0 < bend < 130.0


def test_weight_makes_the_actuator_lean_further_than_its_mirror_image_upside_down():
    pressures = np.array([[50000.0, 0.0, 0.0]])
    bodies = [THREE_CHAMBER.body.model_copy(update={"gravity": (0.0, 0.0, g)}) for g in (-9.81, 0.0, 9.81)]
    tips = [solve_equilibria(body.simulator(), pressures).tips[0] for body in bodies]
    assert tips[0][0] < tips[1][0] - 5e-4 < tips[2][0] - 1e-3


def test_pressures_that_do_not_fit_are_rejected_and_a_crushed_rod_has_no_tip():
    problem = THREE_CHAMBER.body.simulator()
    with pytest.raises(SoftformError, match="no finite values of 3 actuators"):
        solve_equilibria(problem, np.zeros((2, 6)))
    with pytest.raises(SoftformError, match="no finite values"):
        solve_equilibria(problem, np.array([[0.0, np.nan, 0.0]]))
    material = Material(law="neo_hookean", coefficients=[1e3])
    soft = THREE_CHAMBER.body.section.model_copy(update={"material": material})
    problem = THREE_CHAMBER.body.model_copy(update={"section": soft}).simulator()
    beyond = solve_equilibria(problem, np.full((1, 3), 6e4))
    assert "no equilibrium" in beyond.failures[0]
    assert np.isnan(beyond.tips).all()


@pytest.mark.parametrize("centre", [[0.02, 0.0], [-1.0, 0.0], [0.0, 11.5]])
def test_a_chamber_outside_the_body_is_rejected(centre):
    described = yaml.safe_load(robot_file("three_chamber").read_text())
    described["body"]["section"]["chambers"][0]["centre"] = centre
    with pytest.raises(SoftformError, match="outside its section's outline"):
        build_rod(Robot.model_validate(described).body)


@pytest.mark.parametrize("robot", [THREE_CHAMBER, FINGERS], ids=lambda robot: robot.name)
def test_the_sensitivity_of_the_tip_is_that_of_solves_beside_it(robot):
    problem, rng = robot.body.simulator(), np.random.default_rng(5)
    rod = problem.rod
    pressures = rng.uniform(0.1, 0.9, (4, rod.chambers)) * robot.actuator_max
    centre = solve_equilibria(problem, pressures)
    found = tip_sensitivities(problem, centre.strains, pressures)
    assert found.shape == (4, 3, rod.chambers)
    for chamber, step in enumerate(10.0 * np.eye(rod.chambers)):
        ahead, behind = (solve_equilibria(problem, pressures + sign * step).tips for sign in (1, -1))
        np.testing.assert_allclose(found[:, :, chamber], (ahead - behind) / 20.0, atol=1e-6 * np.abs(found).max())
