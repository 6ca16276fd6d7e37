"""The arms under their driver: limits that are taken and kept, brakes at every end, and what is found to be wrong."""

import dataclasses

import numpy as np
import pytest
from stepped_arms import GOAL, PERIOD, ROBOT, START, SteppedArms

from softform_actuation.assembly import served_by_devices
from softform_actuation.device import DeviceError, UnsafeError
from softform_arms.lines import LineReader, packed
from softform_arms.settings import arm_settings
from softform_core.errors import SoftformError

BRAKED = 0.1
"""s within which brakes end any motion within the limits."""


@pytest.fixture
def arms() -> SteppedArms:
    """Open, held where they grasp."""
    found = SteppedArms()
    found.device.open()
    return found


def moving(arms: SteppedArms) -> SteppedArms:
    """On their way."""
    arms.device.begin()
    arms.drive(GOAL, 0.12)
    assert np.abs(arms.controller.speeds).max() > 0.2
    return arms


def stands(arms: SteppedArms) -> bool:
    """Whether the truth, which the device does not know, is at rest with brakes on."""
    return arms.controller.mode != "D" and not arms.controller.speeds.any()


def test_they_follow_within_the_limits_and_are_measured_where_they_are(arms):
    arms.device.begin()
    fastest, before, hardest = 0.0, arms.controller.speeds.copy(), 0.0
    target = START.copy()
    for _ in range(60):
        target = target + np.clip(GOAL - target, -ROBOT.slew_rate * PERIOD, ROBOT.slew_rate * PERIOD)
        arms.device.set_targets(target, lambda: False)
        arms.clock.sleep(PERIOD)
        (measured,) = arms.device.read(0.0)[-1:]
        speeds = arms.controller.speeds
        fastest = max(fastest, float(np.abs(speeds).max()))
        hardest, before = max(hardest, float(np.abs(speeds - before).max() / PERIOD)), speeds.copy()
    assert fastest <= 1.0 + 1e-9 and hardest <= 6.0 * 1.3  # of the controller's own steps within a period
    assert np.abs(arms.controller.places - GOAL).max() < 1e-3
    assert np.abs(measured.values - arms.controller.places).max() < 1e-3


@pytest.mark.parametrize("how", ["make_safe", "close", "guardian", "half a line", "silence", "frozen"])
def test_whatever_ends_a_motion_brakes_end_it_at_once(arms, how):
    """A stop, a driver that is closed, killed in the middle of a line, killed, or frozen."""
    moving(arms)
    reached = arms.controller.places.copy()
    if how == "make_safe":
        assert arms.device.make_safe()
    elif how == "close":
        arms.device.close()
    elif how == "guardian":
        arms.wire.close(emergency=True)
    elif how == "half a line":
        arms.wire.write(packed("T", ["0.1"] * 12)[:30])
        arms.wire.close(emergency=True)
    else:  # nobody writes anything any more: the controller's own watchdog, within what was asked for last
        arms.clock.sleep(0.5)
    arms.clock.sleep(BRAKED)
    assert stands(arms)
    way = np.abs(arms.controller.places - reached).max()
    assert way < (0.02 if how in ("make_safe", "close", "guardian", "half a line") else 0.1)
    here = arms.controller.places.copy()
    arms.clock.sleep(3.0)
    assert (arms.controller.places == here).all()


def test_a_delayed_point_of_before_the_stop_moves_nothing(arms):
    moving(arms)
    late = packed("T", [f"{value:.6f}" for value in GOAL])
    arms.device.make_safe()
    arms.clock.sleep(BRAKED)
    here = arms.controller.places.copy()
    for _ in range(20):
        arms.wire.write(late)
        arms.clock.sleep(PERIOD)
    assert stands(arms) and (arms.controller.places == here).all()


def test_held_is_what_was_measured_to_stand_still(arms):
    moving(arms)
    arms.device.make_safe()
    first = arms.device.check()
    assert not arms.device.is_holding and first.complaint == "" and not first.at_rest.any()
    arms.clock.sleep(0.4)
    rest = arms.device.check()
    assert arms.device.is_holding and rest.complaint == ""
    assert np.abs(rest.values - arms.controller.places).max() < 1e-4
    arms.fault("slipping_brake", 11)
    arms.clock.sleep(0.2)
    assert "right_6 moves on" in arms.device.check().complaint and not arms.device.is_holding


def test_a_brake_that_slips_slowly_is_found_by_where_the_joint_is(arms):
    arms.clock.sleep(0.4)
    arms.device.check()
    assert arms.device.is_holding
    arms.controller.places[4] += 0.0012
    assert "left_5 moves on" in arms.device.check().complaint and not arms.device.is_holding


def test_a_controller_that_goes_on_though_it_was_asked_to_hold_is_told(arms):
    moving(arms)
    arms.wire.spoil_request = lambda data: data.replace(b"\nH*", b"\nX*")
    assert not arms.device.make_safe()
    arms.drive(GOAL, 0.4)
    assert "are driven though" in arms.device.check().complaint and not arms.device.is_holding


@pytest.mark.parametrize(("fault", "words"), [("stop_button", "stop button"), ("silence", "no point")])
def test_arms_that_brake_by_themselves_are_a_fault(arms, fault, words):
    moving(arms)
    if fault == "stop_button":
        arms.fault(fault)
    else:
        arms.clock.sleep(0.6)
    with pytest.raises(UnsafeError, match=words):
        arms.device.read(0.1)  # it says so by itself
    assert stands(arms) or arms.clock.sleep(BRAKED) or stands(arms)


def test_a_pressed_stop_button_keeps_the_brakes_on(arms):
    arms.fault("stop_button")
    with pytest.raises(DeviceError, match="stop button is pressed"):
        arms.device.begin()
    assert stands(arms)
    arms.fault("nothing")
    arms.device.begin()
    arms.drive(GOAL, 0.3)
    assert np.abs(arms.controller.places - START).max() > 0.05


def test_a_joint_that_is_too_fast_is_a_fault(arms):
    moving(arms)

    def faster(data: bytes) -> bytes:
        found = b""
        for kind, words in LineReader().feed(data):
            numbers = words[1:13] + ["1.3"] + words[14:] if kind == "S" else words[1:]
            found += packed(kind, [*words[:1], *numbers])
        return found

    arms.wire.spoil_answer = faster
    with pytest.raises(UnsafeError, match=r"left_1 turns at 1.30 rad/s; its limit is 1 rad/s"):
        arms.drive(GOAL, 0.5)


def test_damaged_lines_move_nothing_and_are_counted(arms):
    arms.device.begin()
    random = np.random.default_rng(0)

    def damaged(data: bytes) -> bytes:
        places = random.random(len(data)) < 0.05
        return bytes(byte ^ (1 << 3) if spoilt else byte for byte, spoilt in zip(data, places, strict=True))

    arms.wire.spoil_request = arms.wire.spoil_answer = damaged
    low, high = START.copy(), START.copy()
    for _ in range(40):
        arms.drive(START, PERIOD)
        low, high = np.minimum(low, arms.controller.places), np.maximum(high, arms.controller.places)
    assert (high - low).max() < 1e-4
    assert arms.device.health().values["damaged lines"] > 5


def test_limits_that_the_controller_does_not_take_are_told():
    arms = SteppedArms()
    arms.controller._most = (0.7 * arms.controller._most[0], arms.controller._most[1])
    with pytest.raises(DeviceError, match="do not take the limits"):
        arms.device.open()
    assert not arms.wire.is_open and stands(arms)


def test_what_a_description_says_wrongly_is_told():
    (served,) = served_by_devices(ROBOT)
    for change, words in (
        ({"velocity": 0.5}, "velocity is below the slew_rate"),
        ({"start": [0.0] * 11}, "start has 11 values"),
        ({"start": [3.0] * 12}, "start lies outside"),
        ({"watchdog": 30.0}, "watchdog: Input should be less than or equal to 1"),
        ({"speed": 1.0}, "speed: Extra inputs"),
    ):
        with pytest.raises(SoftformError, match=words):
            arm_settings(dataclasses.replace(served, settings={**served.settings, **change}))
    with pytest.raises(SoftformError, match="Number them from 0 to 11"):
        arm_settings(dataclasses.replace(served, channels=list(range(1, 13))))
    with pytest.raises(SoftformError, match="is given a pressure"):
        arm_settings(dataclasses.replace(served, quantities=["pressure"] * 12))
