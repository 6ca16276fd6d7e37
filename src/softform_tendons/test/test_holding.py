"""Motors that hold, or rest, are watched; a hold ends after a time, and at once when a motor is in trouble."""

from pathlib import Path

import numpy as np
import pytest
from stepped_motors import MOTORS, ROBOT, Motors

from softform_actuation.device import DeviceError, UnsafeError
from softform_rig.motor_bus import MotorBus
from softform_rig.tendon_motor import XC330_T288, XM430_W210

pytestmark = pytest.mark.slow

BENT = ROBOT.actuators_of(np.array([0.008, 0.0, 0.001]))
NEAR = 2e-4


@pytest.fixture
def held(tmp_path: Path) -> Motors:
    """Bent, and held there."""
    motors = Motors(tmp_path, safe_action="hold", hold_limit=20.0)
    motors.device.open()
    assert not motors.device.is_holding, "they had no power"
    motors.device.begin()
    assert not motors.device.is_holding
    motors.drive(BENT, 1.6)
    assert motors.device.make_safe() and motors.device.is_holding
    return motors


@pytest.fixture
def slack(tmp_path: Path) -> Motors:
    """Slackened, at rest."""
    motors = Motors(tmp_path)
    motors.device.open()
    motors.device.begin()
    motors.drive(BENT, 0.5)
    assert motors.device.make_safe()
    motors.clock.sleep(0.6)
    motors.device.check()
    return motors


def pulls(motors: Motors) -> np.ndarray:
    return motors.bus.actuator_values(MOTORS)


def powered(motors: Motors) -> list[bool]:
    return [motor.torque_on for motor in motors.bus.motors.values()]


def test_slack_tendons_are_at_rest_where_they_were_measured(slack):
    rest = slack.device.check()
    np.testing.assert_allclose(rest.values, pulls(slack), atol=2e-5)
    assert rest.at_rest.all() and rest.complaint == "" and not slack.device.is_holding


def test_tendons_under_way_are_not_at_rest_yet(tmp_path):
    motors = Motors(tmp_path)
    motors.device.open()
    motors.device.begin()
    motors.drive(BENT, 1.6)
    motors.device.make_safe()
    motors.clock.sleep(0.05)
    rest = motors.device.check()
    np.testing.assert_allclose(rest.values, pulls(motors), atol=2e-5)
    assert rest.at_rest.tolist() == (pulls(motors) < ROBOT.safe + NEAR).tolist() and not rest.at_rest.all()
    assert rest.complaint == ""


def test_what_is_not_known_of_a_motor_is_not_at_rest(slack):
    slack.bus.misses = lambda n, motor: motor == 2
    rest = slack.device.check()
    assert np.isnan(rest.values).tolist() == rest.at_rest.__invert__().tolist() == [False, True, False, False]
    assert "t2 (id 2) may not be slack" in rest.complaint and "of motor 2" in rest.complaint


def test_a_held_robot_keeps_its_shape_and_is_not_at_rest(held):
    for _ in range(15):
        held.clock.sleep(1.0)
        rest = held.device.check()
    np.testing.assert_allclose(rest.values, BENT, atol=NEAR)
    np.testing.assert_allclose(pulls(held), BENT, atol=NEAR)
    assert not rest.at_rest.any() and rest.complaint == "" and held.device.is_holding


def test_a_hold_ends_after_its_time_slack_and_without_power(held):
    for _ in range(10):
        held.clock.sleep(1.0)
        held.device.check()
        assert held.device.make_safe(), "asked for once more, it lasts no longer"
    for _ in range(11):
        held.clock.sleep(1.0)
        held.device.check()
    assert not held.device.is_holding
    assert "were held for 20 s" in held.device.health().warning
    held.clock.sleep(0.6)
    rest = held.device.check()
    assert rest.at_rest.all() and rest.complaint == "" and not any(powered(held))
    assert (pulls(held) - ROBOT.safe).max() < NEAR
    assert held.device.make_safe() and not held.device.is_holding, "it slackens from then on"
    held.wire._bus.receive(held.wire.emergency, held.clock.now())
    held.device.begin()
    assert held.device.health().warning == ""
    held.drive(BENT, 1.6)
    assert held.device.make_safe() and held.device.is_holding, "once driven, it holds again"
    held.clock.sleep(0.6)
    np.testing.assert_allclose(pulls(held), BENT, atol=NEAR)


@pytest.mark.parametrize(
    ("harm", "complaint"),
    [
        (lambda bus: setattr(bus.motors[1], "temperature", 66.0), r"Motor 1 \(t1\) has 66 °C"),
        (lambda bus: setattr(bus.motors[1], "heated", True), "Motor 1 .* has shut down: overheated"),
        (lambda bus: setattr(bus.motors[1], "torque_on", False), "Motor 1 .* has torque 0 instead of 1"),
        (lambda bus: setattr(bus.motors[1], "goal_current", 0.2), "Motor 1 .* has goal current 200 instead of 250"),
        (lambda bus: setattr(bus.motors[1], "goal", 3000.0), "Motor 1 .* has goal position 3000 instead of"),
    ],
)
def test_a_hold_ends_at_once_when_something_is_wrong_with_a_motor(held, harm, complaint):
    for motor in held.bus.motors.values():
        motor.temperature_limit = 80
    held.clock.sleep(1.0)
    held.device.check()
    harm(held.bus)
    held.clock.sleep(0.01)
    with pytest.raises(UnsafeError, match=complaint):
        held.device.check()
    assert not held.device.is_holding
    held.clock.sleep(0.6)
    assert (pulls(held) - ROBOT.safe)[1:].max() < NEAR
    held.device.check()
    assert not any(powered(held)[1:])


def test_a_motor_that_takes_too_much_while_it_holds_ends_the_hold_within_two_checks(held):
    held.device.check()
    held.bus.motors[3].surging = True
    held.clock.sleep(1.0)
    held.device.check()
    held.clock.sleep(1.0)
    with pytest.raises(UnsafeError, match="t3 .motor 3. takes"):
        held.device.check()
    assert not held.device.is_holding


def test_motors_at_rest_are_watched_and_what_is_wrong_stands_in_the_complaint_until_it_is_over(slack):
    slack.bus.motors[4].temperature = 69.0
    with pytest.raises(UnsafeError, match=r"Motor 4 \(t4\) has 69 °C"):
        slack.device.check()
    rest = slack.device.check()
    assert "Motor 4 (t4) has 69 °C" in rest.complaint and rest.at_rest.all()
    slack.bus.motors[4].temperature = 40.0
    assert slack.device.check().complaint == ""
    slack.bus.motors[4].temperature = 69.0
    with pytest.raises(UnsafeError):
        slack.device.check()


def test_a_supply_out_of_range_is_found_at_rest(slack, monkeypatch):
    monkeypatch.setattr(MotorBus, "_voltage", 5.2)
    with pytest.raises(UnsafeError, match=r"Motor 1 .* has 5.2 V. Give it 5.5 to 14 V"):
        slack.device.check()


def test_motors_that_are_found_holding_by_another_driver_hold_on_for_their_time_only(held, tmp_path):
    other = Motors(tmp_path, safe_action="hold", hold_limit=5.0)
    other.clock, other.bus, other.wire = held.clock, held.bus, held.wire
    other.device = type(held.device)(other.served, held.wire, 1_000_000, tmp_path / "homes.json")
    other.device.open()
    assert other.device.is_holding
    for _ in range(7):
        other.clock.sleep(1.0)
        rest = other.device.check()
    assert rest.at_rest.all() and not any(powered(held))


def test_motors_that_are_found_hot_and_holding_are_slackened_though_nothing_is_opened(held, tmp_path):
    held.bus.motors[1].temperature = 66.0
    other = type(held.device)(held.served, held.wire, 1_000_000, tmp_path / "homes.json")
    with pytest.raises(UnsafeError, match="66 °C"):
        other.open()
    held.clock.sleep(0.6)
    assert (pulls(held) - ROBOT.safe).max() < NEAR


def test_closing_ends_a_hold_but_for_motors_that_cannot_be_reached(held):
    held.bus.misses = lambda n, motor: True
    held.device.close()
    assert held.device.is_holding
    np.testing.assert_allclose(pulls(held), BENT, atol=NEAR)
    held.bus.misses = lambda n, motor: False
    held.device.open()
    assert held.device.is_holding
    held.device.close()
    assert (pulls(held) - ROBOT.safe).max() < NEAR and not any(powered(held)) and not held.device.is_holding


def test_other_motors_than_at_configure_are_sent_nothing_and_the_right_ones_are_slackened(held):
    for motor in held.bus.motors.values():
        motor.type = XM430_W210
    before = [(motor.goal, motor.torque_on) for motor in held.bus.motors.values()]
    for _ in range(2):
        with pytest.raises(
            DeviceError, match="1: 'XC330-T288'.* were there at configure, .*1: 'XM430-W210'.* are there"
        ):
            held.device.open()
        assert [(motor.goal, motor.torque_on) for motor in held.bus.motors.values()] == before
    for motor in held.bus.motors.values():
        motor.type = XC330_T288
    held.device.open()
    held.clock.sleep(0.6)
    assert not held.device.is_holding and held.device.check().at_rest.all()


def test_a_hold_outlives_its_guardians_request(held):
    held.wire._bus.receive(held.wire.emergency, held.clock.now())
    held.clock.sleep(1.0)
    assert held.device.check().complaint == ""
    np.testing.assert_allclose(pulls(held), BENT, atol=NEAR)


def test_a_guardian_slackens_what_a_dead_driver_holds_after_the_holds_time(held):
    assert held.wire.seconds == 20.0
    held.wire._bus.receive(held.wire.emergency, held.clock.now())
    held.clock.sleep(1.0)
    np.testing.assert_allclose(pulls(held), BENT, atol=NEAR)
    held.wire._bus.receive(held.wire.later, held.clock.now())
    held.clock.sleep(0.6)
    assert (pulls(held) - ROBOT.safe).max() < NEAR
