"""That a motor never pulls harder than it may, and never faster: registers are read back, currents have a ceiling."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from stepped_motors import MOTORS, ROBOT, Motors

from softform_actuation.device import DeviceError, UnsafeError
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_tendons import registers
from softform_tendons.family import FAMILY
from softform_tendons.settings import SLACKENED_WITHIN, tendon_settings
from softform_tendons.watch import LoadWatch

BENT = ROBOT.actuators_of(np.array([0.008, 0.0, 0.001]))
LIMIT = 0.25


@pytest.fixture
def motors(tmp_path: Path) -> Motors:
    return Motors(tmp_path)


def fault(motors: Motors, kind: str, motor: int) -> None:
    """Let the motor feel a fault of the rig from now on."""

    class On:
        channel = motor

    motors.bus.suffer(lambda name: [On()] if name == kind else [])  # type: ignore[list-item]


def test_an_emulated_motor_boots_as_the_manual_says(motors):
    motors.bus.boot(1.0)
    for wired in motors.bus._wired:
        state = registers.decoded(wired.image(11.1)[64:], registers.STATE)
        assert state[registers.GOAL_CURRENT] == 910 and state[registers.PROFILE_VELOCITY] == 0
        assert state[registers.TORQUE_ENABLE] == state[registers.BUS_WATCHDOG] == 0
        kept = registers.decoded(wired.image(11.1)[10:], registers.CONFIGURATION)
        assert kept[registers.CURRENT_LIMIT] == 910 and kept[registers.OPERATING_MODE] == 3


def test_an_emulated_motor_takes_no_goal_current_beyond_its_limit_and_a_new_mode_forgets_it(motors):
    wired = motors.bus._wired[0]
    wired.write(38, (300).to_bytes(2, "little"), 1.0)
    assert wired.write(102, (301).to_bytes(2, "little"), 1.0) == 6
    assert wired.write(102, (200).to_bytes(2, "little"), 1.0) == 0 and wired.motor.goal_current == 0.2
    wired.write(11, b"\x05", 1.0)
    assert wired.motor.goal_current == pytest.approx(0.3)
    assert wired.write(38, (911).to_bytes(2, "little"), 1.0) == 6


def test_the_helix_has_motors_that_bear_its_limit_follow_it_and_slacken_it_in_time(tmp_path):
    robot = load_robot("helix")
    motors, goal = Motors(tmp_path, robot), robot.actuator_max
    motors.device.open()
    motors.device.begin()
    motors.drive(goal, 1.0)
    channels = robot.devices[0].channels
    assert motors.bus.actuator_values(channels) == pytest.approx(goal, abs=1e-3)
    assert motors.device.make_safe()
    motors.clock.sleep(SLACKENED_WITHIN)
    assert (motors.bus.actuator_values(channels) - robot.safe).max() < 1e-3
    assert motors.device.check().at_rest.all()


def test_motors_keep_the_limit_and_what_else_they_need_without_power(motors):
    for wired in motors.bus._wired:
        wired.drive_mode, wired.startup = 0b1101, 3  # profiles in ms, power with a goal; power with the supply
    motors.device.open()
    motors.bus.boot(motors.clock.now())
    for wired in motors.bus._wired:
        assert (wired.mode, wired.drive_mode, wired.startup) == (registers.CURRENT_BASED_POSITION, 1, 0)
        assert wired.motor.goal_current == LIMIT


def put_in_anew(wired) -> None:
    """Another motor is in its place, as it came from the factory."""
    wired.mode, wired.watchdog, wired.motor.is_limited = 3, 0, False
    wired.motor.current_limit = wired.motor.type.highest_current
    wired.motor.reboot()


@pytest.mark.parametrize("lost", range(1, 15))
def test_a_lost_write_never_leaves_a_motor_without_its_limit(motors, lost):
    motors.device.open()
    for wired in motors.bus._wired:
        put_in_anew(wired)
    before = motors.bus._instructions
    motors.bus.misses = lambda n, motor: n == before + lost and motor == 2
    motors.wire.after_write = lambda: check_limited(motors)
    motors.device.begin()
    for motor in motors.bus.motors.values():
        assert motor.limit == motor.goal_current == motor.current_limit == LIMIT and motor.torque_on
        assert 0.0 < motor.profile_speed < 1.0


def test_a_motor_that_is_put_in_anew_at_rest_is_limited_before_it_slackens(motors):
    motors.device.open()
    motors.device.begin()
    assert motors.device.make_safe()
    motors.clock.sleep(0.6)
    wired = motors.bus._wired[1]
    put_in_anew(wired)
    wired.motor.position += 150.0
    motors.wire.after_write = lambda: check_limited(motors)
    assert "t2 (id 2) may not be slack" in motors.device.check().complaint
    motors.clock.sleep(0.6)
    rest = motors.device.check()
    assert rest.at_rest.all() and rest.complaint == "" and not wired.motor.torque_on


def check_limited(motors) -> None:
    powered = [motor for motor in motors.bus.motors.values() if motor.torque_on]
    assert all(motor.limit <= LIMIT and motor.profile_speed > 0.0 for motor in powered)


def test_a_motor_that_takes_no_limit_is_not_driven_and_named(motors):
    motors.device.open()
    motors.bus.motors[3].goal_current = 0.2
    fault(motors, "deaf_motor", 3)
    with pytest.raises(DeviceError, match=r"motor 3 has goal current 200 instead of 250"):
        motors.device.begin()
    assert not motors.bus.motors[3].torque_on


def test_when_a_start_fails_in_the_middle_all_other_motors_are_made_safe(motors):
    motors.device.open()
    motors.bus.misses = lambda n, motor: motor == 3 and motors.bus.motors[1].torque_on
    with pytest.raises(DeviceError, match="motor 3 has no answer"):
        motors.device.begin()
    goals = motors.device._drums.ticks(ROBOT.safe)
    assert [motor.goal for number, motor in motors.bus.motors.items() if number != 3] == [*goals[:2], goals[3]]
    assert [wired.watchdog for wired in motors.bus._wired if wired.number != 3] == [0, 0, 0]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"goal_current": 0.3}, "goal current 300 instead of 250"),
        ({"profile_speed": 0.0}, "profile velocity 0 instead of"),
        ({"torque_on": False}, "torque 0 instead of 1"),
    ],
)
def test_a_register_that_changes_while_a_motor_is_driven_is_a_fault_at_the_next_reading(motors, change, complaint):
    motors.device.open()
    motors.device.begin()
    motors.drive(BENT, 0.5)
    for name, value in change.items():
        setattr(motors.bus.motors[2], name, value)
    before = motors.clock.now()
    with pytest.raises(UnsafeError, match=r"Motor 2 \(t2\) has " + complaint):
        motors.drive(BENT, 1.0)
    assert motors.clock.now() - before < 0.3


def test_a_watchdog_that_is_off_while_a_motor_is_driven_is_a_fault(motors):
    motors.device.open()
    motors.device.begin()
    motors.bus._wired[0].watchdog = 0
    with pytest.raises(UnsafeError, match="bus watchdog 0 instead of 25"):
        motors.drive(BENT, 0.3)


def test_a_motor_that_takes_more_than_its_limit_is_a_fault_after_a_fifth_of_a_second(motors):
    motors.device.open()
    motors.device.begin()
    motors.drive(BENT, 1.0)
    fault(motors, "surging_motor", 2)
    before = motors.clock.now()
    with pytest.raises(UnsafeError, match=r"t2 \(motor 2\) takes 0.3\d A, its limit is 0.25 A"):
        motors.drive(BENT, 1.0)
    assert 0.2 <= motors.clock.now() - before < 0.3


@pytest.mark.parametrize("ticks", [200.0, -200.0, 4096.0, -4096.0])
def test_a_motor_that_jumps_is_a_fault_at_once_and_is_slackened_to_where_it_is_slack(motors, ticks):
    motors.device.open()
    motors.device.begin()
    motors.drive(BENT, 1.0)
    motor = motors.bus.motors[1]
    motor.position += ticks
    if abs(ticks) == 4096.0:  # what it says; the drum stands still
        motor.home += ticks
    before = motors.clock.now()
    with pytest.raises(UnsafeError, match=r"t1 \(motor 1\) jumped by (2\.\d|50\.\d) mm in .*calibrate, then reset"):
        motors.drive(BENT, 1.0)
    assert motors.clock.now() - before < 0.1
    highest = motors.bus.actuator_values(MOTORS)[0]
    assert motors.device.make_safe()
    for _ in range(6):
        motors.clock.sleep(SLACKENED_WITHIN / 5.0)
        assert motors.bus.actuator_values(MOTORS)[0] < highest + 1e-3, "it is not wound up"
    np.testing.assert_allclose(motors.bus.actuator_values(MOTORS), ROBOT.safe, atol=5e-4)
    assert motors.device.check().at_rest.all()


@pytest.mark.parametrize(("way", "torn"), [(0.0, True), (1e-5, True), (-1e-5, False)])
def test_a_tendon_that_carries_nothing_is_torn_unless_its_motor_pays_out(motors, way, torn):
    """Then friction carries part of the load, and the motor takes next to nothing."""
    watch = LoadWatch(tendon_settings(motors.served), motors.served)
    watch.restart(0.0)
    with pytest.raises(UnsafeError, match="t1 .motor 1. is pulled by .* carries nothing") if torn else nullcontext():
        for number in range(40):
            pulls = np.array([0.0095 + number * way, 0.0, 0.0, 0.0])
            watch.look(pulls, pulls, np.array([0.015, 0.0, 0.0, 0.0]), 0.02 * number)


def test_a_motor_that_is_led_as_fast_as_it_may_has_not_jumped(motors):
    motors.device.open()
    motors.device.begin()
    for goal in (ROBOT.actuator_max, ROBOT.actuator_min):
        motors.drive(np.clip(goal, -0.013, 0.008), 2.5)
    motors.clock.sleep(0.3)  # the driver stood still meanwhile
    motors.device.read(0.02)


def test_a_calibration_winds_up_under_its_own_limit_though_a_goal_is_lost(motors):
    motors.device.open()
    seen = []
    motors.wire.after_write = lambda: seen.append(
        max(m.goal_current for m in motors.bus.motors.values() if m.torque_on or m.profile_speed)
    )
    start = motors.bus._instructions
    motors.bus.misses = lambda n, motor: motor == 1 and (n - start) % 7 == 5
    with pytest.raises(DeviceError, match="never became taut"):  # nothing pulls back here: each goal arrived
        motors.device.calibrate(lambda: False)
    assert max(seen) == LIMIT


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"current_limit": 3.2}, "current_limit is 3.2 A.*more than 2.45 A"),
        ({"current_limit": 0.04}, "calibration_current asks for 0.045 A, beyond current_limit"),
        ({"hold_limit": 3601.0}, "hold_limit"),
        ({"safe_action": "hold", "slacken_speed": 0.01}, "slackening takes"),
    ],
)
def test_settings_beyond_what_motors_may_are_rejected_with_their_field(motors, settings, complaint):
    served = motors.served
    FAMILY.check(served)
    with pytest.raises(SoftformError, match=complaint):
        FAMILY.check(type(served)(**{**vars(served), "settings": {**served.settings, **settings}}))


def test_a_current_beyond_the_ceiling_of_the_model_is_rejected_when_the_motor_is_known(tmp_path):
    motors = Motors(tmp_path, current_limit=0.5)
    with pytest.raises(DeviceError, match=r"current_limit is 0.5 A, too much for motor 1, a XC330-T288.*at most 0.4 A"):
        motors.device.open()
    assert all(motor.current_limit == motor.type.highest_current for motor in motors.bus.motors.values()), (
        "nothing was told"
    )


def test_every_ceiling_lies_below_what_the_model_draws_when_it_stands(motors):
    assert all(model.highest_current <= 0.5 * model.stall_current for model in registers.MODELS.values())
    assert len(MOTORS) == 4
