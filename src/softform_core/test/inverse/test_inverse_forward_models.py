"""One inverse kinematics for every forward model: a part of the inputs, a simulation, a tip."""

import numpy as np
import pytest

from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.model import build_membrane
from softform_core.errors import SoftformError
from softform_core.forward.given_inputs import GivenInputs
from softform_core.forward.simulated_model import SimulatedModel
from softform_core.forward.tip_model import load_tip_model
from softform_core.forward.tip_point import TipPoint
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.servo import Servo, ServoSettings, ServoState
from softform_core.inverse.servo_target import ServoTarget
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M

GIVEN = {"chamber_2": 1500.0, "chamber_9": 4000.0}


def test_given_inputs_are_held_and_the_others_are_found(corrected_membrane, shape_of, options):
    hidden = np.linspace(600.0, 4400.0, 9)
    hidden[[1, 8]] = 1500.0, 4000.0
    model = GivenInputs(corrected_membrane, GIVEN)
    free = [0, 2, 3, 4, 5, 6, 7]
    assert model.inputs == tuple(f"chamber_{number + 1}" for number in free)
    free_options = IkOptions(options.pressure_min[free], options.pressure_max[free], relative_decrease=1e-8)
    result = solve_inverse_kinematics(model, shape_of(corrected_membrane, hidden), free_options)
    np.testing.assert_allclose(model.whole(result.pressures), hidden, atol=5.0)
    assert result.mean_error_mm < 0.01
    assert (model.whole(result.pressures)[[1, 8]] == [1500.0, 4000.0]).all()


def test_derivatives_by_free_inputs_are_those_of_the_whole_model(corrected_membrane):
    model, actuation = GivenInputs(corrected_membrane, GIVEN), np.full((1, 7), 2000.0)
    state, whole = model.forward(actuation), corrected_membrane.forward(model.whole(actuation))
    np.testing.assert_array_equal(state.points, whole.points)
    free = [0, 2, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(model.jacobian(state), corrected_membrane.jacobian(whole)[..., free])
    directions = np.random.default_rng(0).normal(size=state.points[0].shape)
    along = corrected_membrane.jacobian_along(whole, directions)[:, free]
    np.testing.assert_array_equal(model.jacobian_along(state, directions), along)
    gradient = corrected_membrane.objective_gradient(whole, directions)[free]
    np.testing.assert_array_equal(model.objective_gradient(state, directions), gradient)
    assert model.coarse.inputs == model.at(np.zeros((1, 2))).inputs == model.inputs


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"chamber_10": 0.0}, "no input chamber_10"),
        ({"chamber_1": np.nan}, "not finite"),
        ({f"chamber_{number}": 0.0 for number in range(1, 10)}, "Every input"),
    ],
)
def test_bad_given_inputs_are_rejected(corrected_membrane, given, complaint):
    with pytest.raises(SoftformError, match=complaint):
        GivenInputs(corrected_membrane, given)


@pytest.fixture(scope="module")
def simulation():
    return SimulatedModel(MembraneProblem(build_membrane(load_robot("membrane").body, cells=12)))


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
    target = TargetShape(simulation.forward(hidden[None]).points[0] / MM_PER_M, None, _faces(12))
    # Only three chambers are sought: a solve of three inputs shows as much as one of nine.
    given = {name: value for name, value in zip(simulation.inputs, hidden, strict=True) if name not in _SOUGHT}
    model = GivenInputs(simulation, given)
    options = IkOptions(robot.actuation_min[:3], robot.actuation_max[:3], relative_decrease=1e-6)
    result = solve_inverse_kinematics(model, target, options)
    assert result.mean_error_mm < 0.01
    np.testing.assert_allclose(model.whole(result.pressures), hidden, atol=10.0)


_SOUGHT = ("chamber_1", "chamber_5", "chamber_6")


def _faces(cells):
    """Triangles of the simulation's mesh."""
    elements = build_membrane(load_robot("membrane").body, cells=cells).elements
    return np.concatenate([elements[:, [0, 1, 2]], elements[:, [0, 2, 3]]])


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
        command = servo.step(tip, now[0] + 0.01)
    assert command.state is ServoState.TRACKING and command.converged
    assert command.errors.mean_mm < 0.02
    np.testing.assert_allclose(tip_model.tip(command.pressures), point[0, : tip_model.dimensions], atol=0.05)
