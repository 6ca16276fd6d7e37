"""The live body of a reality that depends on its path is led along it, as the actuators go."""

import numpy as np
import pytest

from softform_core.bodies.tendon_rod.path import TendonPath
from softform_core.bodies.tendon_rod.simulator import RealTendonRod
from softform_core.robots import load_robot
from softform_rig.live_body import LiveBody
from softform_rig.motor_bus import MotorBus
from softform_rig.reality import load_reality
from softform_rig.tendon_motor import TICKS_A_TURN, TendonMotor

pytestmark = pytest.mark.slow

ROBOT = load_robot("tendon_robot")
SLACK = float(ROBOT.safe[0])


@pytest.fixture
def body() -> LiveBody:
    return LiveBody(ROBOT, load_reality("printed", ROBOT))


def pulled(*pulls: float) -> np.ndarray:
    values = 1e-3 * np.array(pulls)
    return np.where(values > 0.0, values, ROBOT.safe)


def test_it_comes_to_another_shape_by_another_way_and_creeps_while_it_stands(body):
    home, goal = pulled(0, 0, 0, 0), pulled(6, 0, 0, 0)
    body.shape(home, 3.0)
    direct = body.shape(goal, 3.0)[0].copy()
    assert body.failure is None
    crept = body.shape(goal, 30.0)[0].copy()
    body.shape(pulled(12, 0, 0, 0), 3.0)
    over = body.shape(goal, 3.0)[0].copy()
    assert np.linalg.norm(over - direct) > 5e-3
    assert 1e-5 < np.linalg.norm(crept - direct) < 1e-2


def test_motors_feel_the_tension_that_friction_holds(body):
    bent = body.shape(pulled(6, 0, 0, 0), 3.0)[0].copy()
    up = body.tendon_loads()
    body.shape(pulled(13, 0, 0, 0), 3.0)
    further = body.shape(pulled(6, 0, 0, 0), 3.0)[0].copy()
    down = body.tendon_loads()
    assert up is not None and down is not None
    assert up.tension[0] > down.tension[0] > 0.0 and further[0] > bent[0]  # bent further by less tension
    assert (up.stretch[1:] < 0.0).all()


def test_it_stays_where_it_was_if_it_is_pulled_far_out_of_its_range(body):
    before = body.shape(pulled(9, 0, 0, 0), 3.0).copy()
    np.testing.assert_array_equal(body.shape(np.full(4, 0.2), 3.0), before)
    assert body.failure is not None
    body.shape(pulled(9, 0, 0, 0), 3.0)
    assert body.failure is None
    assert body.failure is None


def test_a_body_that_is_back_after_it_was_out_of_range_has_not_failed():
    printed = load_reality("printed", ROBOT)
    real = printed.body
    assert isinstance(real, RealTendonRod) and real.path is not None
    path = real.path.model_copy(update={"dead_band": 0.0})
    reality = printed.model_copy(update={"body": real.model_copy(update={"path": path})})
    body, values = LiveBody(ROBOT, reality), pulled(9, 0, 0, 0)
    before = body.shape(values, 3.0).copy()
    body.shape(np.full(4, 0.2), 0.01)
    np.testing.assert_allclose(body.shape(values, 0.01), before, atol=1e-4)
    assert body.failure is None


def test_a_body_at_rest_is_led_on_only_now_and_then(body):
    values = pulled(6, 0, 0, 0)
    body.shape(values, 3.0)
    solves = body.solves
    for _ in range(10):  # 0.5 s of looks
        body.shape(values, 0.05)
    assert body.solves == solves + 2
    body.shape(pulled(6.1, 0, 0, 0), 0.05)
    assert body.solves == solves + 3


def test_it_goes_as_fast_as_its_actuators_can_and_stays_for_the_rest_of_the_time(body):
    path, stops = body.simulated, (pulled(0, 0, 0, 0), pulled(10, 0, 0, 0))
    assert isinstance(path, TendonPath)
    unknowns, state = path.new(1)
    for stop in stops:
        going = np.abs(stop - state.pulls).max() / ROBOT.slew_rate[0]
        unknowns, state = path.advance(unknowns, stop[None], state, going)
        unknowns, state = path.advance(unknowns, stop[None], state, 10.0 - going)
        found = body.shape(stop, 10.0)
    np.testing.assert_allclose(found, path.points(unknowns)[0], atol=1e-9)


def test_the_current_of_a_motor_at_rest_tells_the_tension_on_both_sides_of_its_dead_band(body):
    radius, torque_constant = 0.008, 1.15
    for goal in (pulled(8, 0, 0, 0), pulled(7, 0, 0, 0)):  # tightened, then let go
        body.shape(goal, 3.0)
        loads = body.tendon_loads()
        assert loads is not None
        ticks = goal[0] / (2.0 * np.pi * radius) * TICKS_A_TURN
        motor = TendonMotor(radius, home=0.0, torn_pull=SLACK, position=ticks, goal=ticks, torque_on=True)
        bus = MotorBus({1: motor})
        bus.loads = loads.of(np.array([0]))
        bus.advance(0.1)
        assert loads.tension[0] > 0.5
        np.testing.assert_allclose(motor.current * torque_constant / radius, loads.tension[0], rtol=1e-6)


@pytest.mark.parametrize("look", ["shape", "shape_between_solves"])
def test_motors_are_told_their_own_pulls_where_the_material_plays(look):
    robot = load_robot("tendon_rod")
    body = LiveBody(robot, load_reality("ideal", robot).model_copy(update={"hysteresis": 0.001}))
    for pull in (0.006, 0.005, 0.0045):
        values = np.full(len(robot.actuators), pull)
        getattr(body, look)(values)
    loads = body.tendon_loads()
    assert loads is not None
    np.testing.assert_allclose(loads.pulls, values, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(("name", "reality"), [("tendon_robot", "printed"), ("tendon_rod", "default")])
def test_a_tendon_that_is_pulled_far_loads_its_motor_whatever_the_others_do(name, reality):
    """What its description calls a torn tendon is none that carries a load."""
    robot = load_robot(name)
    body, random, here = LiveBody(robot, load_reality(reality, robot)), np.random.default_rng(3), robot.safe
    settings, torque_constant, alone, looked = robot.devices[0].settings, 1.15, 0.015, 0  # N m/A, A
    for _ in range(8):
        wanted = random.uniform(robot.actuation_min, robot.actuation_max)
        to = robot.actuators_of(np.where(random.random(len(wanted)) < 0.3, robot.actuation_max, wanted))
        steps = np.linspace(0.0, 1.0, 2 + int(np.abs(to - here).max() / 2e-3))
        for pulls in (1.0 - steps[1:, None]) * here + steps[1:, None] * to:
            body.shape(pulls, 0.1)
            assert body.failure is None
            loads = body.tendon_loads()
            assert loads is not None
            current = loads.tension * settings["drum_radius"] / torque_constant
            far = pulls > settings["taut_from"]
            looked += int(far.sum())
            assert (current[far] > 1.2 * settings["taut_current"]).all(), (pulls, loads.tension)
        here = to
    assert looked > 5 and settings["taut_current"] > alone
