"""One inverse kinematics for every forward model: a simulation, a tip."""

import numpy as np
import pytest

from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.simulator import RealMembrane, build_membrane
from softform_core.forward import simulated_models
from softform_core.forward.one_point import TipPoint
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.forward.simulated_models import SimulatedModel
from softform_core.forward.tip_model import load_tip_model
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.servo import Servo, ServoSettings, ServoState
from softform_core.inverse.servo_target import ServoTarget
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.simulation.newton import find_equilibria
from softform_core.units import MM_PER_M


@pytest.fixture(scope="module")
def simulation():
    robot = load_robot("membrane")
    return SimulatedModel(robot, MembraneProblem(build_membrane(robot.body, RealMembrane(cells=12))))


def test_the_jacobian_of_the_simulation_agrees_with_finite_differences(simulation):
    actuation = np.linspace(1500.0, 4500.0, 9)
    state = simulation.forward(actuation[None])
    step = np.zeros(9)
    step[4] = 5.0
    ahead, behind = (simulation.forward((actuation + sign * step)[None]).points for sign in (1.0, -1.0))
    expected = (ahead - behind) / 10.0
    assert np.abs(simulation.jacobian(state)[..., 4] - expected).max() <= 1e-4 * np.abs(expected).max()


def test_a_shape_is_found_on_the_simulation_itself(simulation):
    robot = load_robot("membrane")
    hidden = np.linspace(4200.0, 1800.0, 9)
    target = Shape(simulation.forward(hidden[None]).points[0] / MM_PER_M, None, _faces(12))
    options = IkOptions(robot.actuation_min, robot.actuation_max, relative_decrease=1e-6)
    result = solve_inverse_kinematics(simulation, target, options)
    assert result.mean_error_mm < 0.01
    np.testing.assert_allclose(result.actuation, hidden, atol=10.0)


def test_an_equilibrium_that_is_known_is_not_solved_for_and_one_near_it_is_sought_along_its_derivative(monkeypatch):
    robot = load_robot("three_chamber")
    spent = []

    def counted(*args):
        found = find_equilibria(*args)
        spent.append(int(found.iterations.sum()))
        return found

    monkeypatch.setattr(simulated_models, "find_equilibria", counted)
    here = 0.5 * (robot.actuation_min + robot.actuation_max)
    there = here + 0.02 * (robot.actuation_max - robot.actuation_min)
    plain, led = (SimulatedModel(robot, robot.body.simulator()) for _ in range(2))
    expected = [plain.forward(one[None]).points for one in (here, there)][1]
    led.jacobian(led.forward(here[None]))
    found = led.forward(there[None])
    assert spent[3] < spent[1] and np.abs(found.points - expected).max() < 1e-5
    for known in (here, there, here):
        led.forward(known[None])
    assert len(spent) == 4


def _faces(cells):
    """Triangles of the simulation's mesh."""
    elements = build_membrane(load_robot("membrane").body, RealMembrane(cells=cells)).elements
    return np.concatenate([elements[:, [0, 1, 2]], elements[:, [0, 2, 3]]])


@pytest.mark.parametrize("name", ["planar_fingers", "tendon_rod"])
def test_a_tip_is_found_on_the_simulation_itself(name):
    robot = load_robot(name)
    model = SimulatedModel(robot, robot.body.simulator())
    span = robot.actuation_max - robot.actuation_min
    hidden = robot.actuation_min + np.linspace(0.35, 0.6, len(span)) * span
    wanted = model.forward(hidden[None]).points[0] / MM_PER_M
    features = FeaturePoints.of(np.zeros((len(wanted), 2)), wanted)
    options = IkOptions(robot.actuation_min, robot.actuation_max, relative_decrease=1e-6)
    result = solve_inverse_kinematics(model, None, options, features=features)
    assert result.max_error_mm < 0.01


def test_a_balance_is_sought_from_the_nearer_of_the_last_one_and_rest_and_once(monkeypatch):
    robot, begun = load_robot("planar_fingers"), []
    model = SimulatedModel(robot, robot.body.simulator())

    def noted(body, values, start=None, balanced=None):
        begun.append(balanced)
        return find_equilibria(body, values, start, balanced)

    monkeypatch.setattr("softform_core.forward.simulated_models.find_equilibria", noted)
    full = robot.actuation_max[None]
    for share in (1.0, 0.9, 0.9, 0.3):
        state = model.forward(share * full)
    first, second, third = begun
    assert first is None and np.array_equal(second, robot.actuators_of(full)) and third is None
    assert model.forward(0.3 * full) is state and len(begun) == 3
    model.forward(np.concatenate([0.25 * full, 0.3 * full]))
    model.forward(np.concatenate([0.24 * full, 0.1 * full]))
    assert begun[3] is None and np.array_equal(begun[4], robot.actuators_of(np.concatenate([0.25 * full, 0.0 * full])))


def test_a_servo_follows_waypoints_of_a_tip():
    tip_model = load_tip_model("three_chamber")
    tip, now = TipPoint(tip_model), [0.0]
    span = tip_model.actuation_max - tip_model.actuation_min
    start, wanted = (tip_model.actuation_min + part * span for part in (0.5, np.array([0.4, 0.6, 0.5])))
    settings = ServoSettings(tip_model.actuation_min, tip_model.actuation_max, slew_rate=float(span.max()))
    servo = Servo(settings, clock=lambda: now[0])
    servo.resume_from(start)
    point = np.zeros((1, 3))
    point[0, : tip_model.dimensions] = tip_model.tip(wanted)
    features = FeaturePoints(np.zeros((1, 2)), point / MM_PER_M, np.ones(1))
    for step in range(20):
        now[0] += 0.02
        servo.aim(ServoTarget(step, now[0], features=features))
        servo.refine(tip, now[0] + 0.01)
        command = servo.command()
    assert command.state is ServoState.TRACKING and command.converged
    assert command.errors.mean_mm < 0.02
    np.testing.assert_allclose(tip_model.tip(command.actuation), point[0, : tip_model.dimensions], atol=0.05)


def test_a_point_may_be_the_mean_of_several_parameters() -> None:
    robot = load_robot("compressible")
    pipeline, hidden = load_pipeline(robot, 400), robot.actuation_min * 0.4
    rim = robot.point_parameters("tip")
    wanted = pipeline.at(rim).points(hidden).mean(axis=0)
    features = FeaturePoints.of([[0.0, 0.0]], wanted[None] / MM_PER_M, output=["tip"]).on(robot)
    term = FeatureTerm.of(pipeline, features)
    matches = term.match(hidden, RigidTransform())
    np.testing.assert_allclose(matches.points[0], wanted, atol=1e-3)
    step = 1e-2 * (robot.actuation_max - robot.actuation_min)
    beyond, behind = (term.match(hidden + way * step, RigidTransform()).points[0] for way in (1.0, -1.0))
    expected = beyond - behind
    np.testing.assert_allclose(term.jacobian(matches)[0] @ (2.0 * step), expected, atol=0.02 * np.abs(expected).max())
