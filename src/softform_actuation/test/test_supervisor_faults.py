"""Faults of the driver: kept until a reset that has seen them, and never forgotten at the end."""

from pathlib import Path

import numpy as np
import pytest
from stepped_device import PERIOD, HoldingDevice, Rig, SteppedDevice, two_devices

from softform_actuation.device import DeviceError, never
from softform_actuation.latch import LEFT_ACTIVE, LEFT_UNCONFIRMED
from softform_actuation.lease import Asked, LeaseCode, LeaseError
from softform_actuation.states import State
from softform_actuation.supervisor import STOPPED
from softform_core.errors import SoftformError


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(latch_file=tmp_path / "latch")


LOST_STEP = "Ask for it by the service 'lease', if that is still meant."


# --- faults and stops -------------------------------------------------------------------------------------------------


def test_a_stop_makes_safe_first_and_latches(rig: Rig) -> None:
    rig.running()
    epoch, states = rig.supervisor.commands.epoch, []
    rig.device.on_call = lambda name: states.append((name, rig.state))
    assert rig.supervisor.stop() == "latched"
    assert states == [("make_safe", State.RUNNING)]  # and reported afterwards
    assert rig.state is State.FAULT and rig.reason == "stopped by request; call 'reset' to go on"
    assert rig.supervisor.report.faults == (STOPPED,) and rig.latch.read() == STOPPED
    assert rig.supervisor.commands.epoch == epoch + 1 and rig.supervisor.report.holder == ""
    assert not rig.reports[-1].is_at_rest
    rig.run(1.0)
    assert (
        rig.reports[-1].is_at_rest
        and rig.state is State.FAULT
        and "has ended. stopped by request" in rig.rejections[-1]
    )
    rig.run(3.0)
    assert "begin" not in rig.device.calls[rig.device.calls.index("make_safe", 5) :][3:]


def test_each_stop_ends_what_was_asked_for_before_it_and_is_kept_once(rig: Rig) -> None:
    rig.active()
    rig.stop()
    asked, calls = rig.now(), rig.device.calls.count("make_safe")
    rig.stop()
    assert rig.device.calls.count("make_safe") == calls + 1
    assert rig.supervisor.report.faults == (STOPPED,) and rig.latch.read() == STOPPED
    with pytest.raises(LeaseError, match="The reset was asked for before the robot was made safe") as rejected:
        rig.supervisor.reset(asked, never)
    assert rejected.value.code is LeaseCode.OUTDATED and rig.state is State.FAULT


def test_a_second_fault_is_kept_and_not_cleared_by_a_reset_that_was_asked_for_before_it(rig: Rig) -> None:
    rig.running()
    rig.supervisor.fault("a chamber leaked")
    asked, told = rig.now(), len(rig.reports)
    rig.supervisor.fault("the board is hot")
    assert rig.state is State.FAULT and rig.reason == "a chamber leaked"
    assert rig.reports[-1].faults == ("a chamber leaked", "the board is hot") and len(rig.reports) > told
    assert rig.latch.read() == "a chamber leaked; the board is hot"
    with pytest.raises(LeaseError, match="asked for before"):
        rig.supervisor.reset(asked, never)
    assert rig.supervisor.report.faults == ("a chamber leaked", "the board is hot")
    done = rig.supervisor.reset(rig.now(), never)
    assert done == "Cleared: a chamber leaked; the board is hot. Whoever asks for the lease moves the robot."
    assert rig.supervisor.report.faults == ()


def test_a_fault_that_repeats_makes_safe_again_and_is_nothing_new(rig: Rig) -> None:
    rig.running()
    rig.supervisor.fault("a chamber leaked")
    asked, calls = rig.now(), rig.device.calls.count("make_safe")
    rig.supervisor.fault("a chamber leaked")
    assert rig.device.calls.count("make_safe") == calls + 1
    assert rig.supervisor.report.faults == ("a chamber leaked",)
    assert rig.supervisor.reset(asked, never).startswith("Cleared: a chamber leaked.")


def test_further_faults_are_logged(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.active()
    rig.supervisor.fault("a chamber leaked")
    rig.supervisor.fault("the board is hot")
    assert caplog.messages == ["further fault: the board is hot"]


def test_no_more_than_sixteen_faults_are_kept(rig: Rig) -> None:
    rig.active()
    for number in range(20):
        rig.supervisor.fault(f"fault {number}")
    assert rig.supervisor.report.faults == tuple(f"fault {number}" for number in range(16))
    asked = rig.now()
    rig.supervisor.fault("fault 20")  # not kept, and yet later than what was seen
    with pytest.raises(LeaseError, match="asked for before"):
        rig.supervisor.reset(asked, never)


def test_a_stop_that_could_not_be_latched_says_so_and_has_made_safe(rig: Rig) -> None:
    rig.running()
    assert rig.latch_file is not None
    rig.latch_file.unlink()
    rig.latch_file.mkdir()
    with pytest.raises(
        SoftformError, match=r"Made safe and latched, but: .*would not survive.*Correct it, then stop again"
    ):
        rig.supervisor.stop()
    assert rig.state is State.FAULT and not rig.device.drives


# --- reset ------------------------------------------------------------------------------------------------------------


def test_a_reset_without_a_fault_does_nothing(rig: Rig) -> None:
    rig.running()
    epoch = rig.supervisor.commands.epoch
    assert rig.supervisor.reset(rig.now(), never) == "Nothing is latched."
    assert rig.state is State.RUNNING and rig.supervisor.commands.epoch == epoch
    with pytest.raises(LeaseError, match="The reset does not say when"):
        rig.supervisor.reset(Asked(0.0, 0), never)


def test_a_reset_that_waited_too_long_clears_nothing(rig: Rig) -> None:
    rig.active()
    rig.stop()
    with pytest.raises(LeaseError, match=r"The reset was asked for 2\.1 s ago"):
        rig.supervisor.reset(Asked(2.1, rig.supervisor.commands.epoch), never)
    assert rig.state is State.FAULT


def test_after_a_reset_the_robot_rests_and_waits_for_a_lease(rig: Rig) -> None:
    rig.running()
    rig.device.falls_for = 0.05
    rig.stop()
    rig.run(1.0)
    epoch = rig.supervisor.commands.epoch
    rig.supervisor.reset(rig.now(), never)
    assert rig.supervisor.commands.epoch > epoch
    assert rig.state is State.MAKING_SAFE
    assert rig.reason == "ready after a reset: all actuators are at rest, waiting for a lease and commands"
    assert rig.latch.read() == LEFT_ACTIVE
    begun = rig.device.calls.count("begin")
    rig.run(0.5)
    assert rig.device.calls.count("begin") == begun and rig.state is State.SAFE
    rig.run(0.2)
    assert rig.device.calls.count("begin") == begun + 1
    rig.run(1.0)
    assert rig.state is State.SAFE and not np.array(rig.device.targets[-30:]).any()


def test_a_reset_of_an_inactive_driver_clears_the_latch_and_tests_nothing(rig: Rig) -> None:
    rig.connected()
    rig.supervisor.fault("a chamber leaked")
    rig.run(1.0)
    rig.supervisor.reset(rig.now(), never)
    assert rig.latch.read() is None and "test" not in rig.device.calls
    assert rig.reason == "reset; activate the driver to send commands"
    rig.run(2.0)
    assert rig.state is State.SAFE and not rig.device.drives


def test_actuators_are_tested_again_after_a_fault_and_not_after_stops(rig: Rig) -> None:
    rig.active()
    for times in range(2):
        rig.stop()
        rig.stop()
        rig.supervisor.reset(rig.now(), never)
        assert rig.device.calls.count("test") == 1, times
    rig.supervisor.fault("a chamber leaked")
    rig.stop()
    rig.supervisor.reset(rig.now(), never)
    assert rig.device.calls.count("test") == 2 and rig.supervisor.busy == ""
    rig.stop()
    rig.supervisor.reset(rig.now(), never)
    assert rig.device.calls.count("test") == 2


def test_a_reset_whose_test_fails_clears_nothing_and_tests_again(rig: Rig) -> None:
    rig.active()
    rig.supervisor.fault("a chamber leaked")
    rig.device.fails.add("test")
    with pytest.raises(DeviceError, match="fails in test"):
        rig.supervisor.reset(rig.now(), never)
    assert (
        rig.state is State.FAULT and rig.supervisor.report.faults == ("a chamber leaked",) and rig.supervisor.busy == ""
    )
    rig.device.fails.clear()
    with pytest.raises(DeviceError, match="was interrupted"):
        rig.supervisor.reset(rig.now(), lambda: rig.device.calls[-1] == "test")
    rig.supervisor.reset(rig.now(), never)
    assert rig.device.calls.count("test") == 4


@pytest.mark.parametrize("how", ["stuck", "unconfirmed", "silent", "interrupted"])
def test_a_reset_whose_cause_persists_clears_nothing(rig: Rig, how: str) -> None:
    rig.running()
    rig.device.stuck[0] = how == "stuck"
    rig.device.unconfirmed = how == "unconfirmed"
    rig.device.silent = how == "silent"
    rig.supervisor.fault("planted")
    with pytest.raises(
        SoftformError, match="does not come to rest|does not confirm|does not answer|Not at rest|has not measured"
    ):
        rig.supervisor.reset(rig.now(), lambda: how == "interrupted")
    assert rig.state is State.FAULT and "planted" in str(rig.latch.read()) and "planted" in rig.supervisor.report.faults
    rig.device.stuck[:] = False
    rig.device.unconfirmed = rig.device.silent = False
    rig.supervisor.reset(rig.now(), never)
    rig.run(1.0)
    assert rig.state is State.SAFE


def test_a_reset_that_could_not_latch_the_next_driver_leaves_the_fault(rig: Rig) -> None:
    rig.active()
    rig.stop()
    assert rig.latch_file is not None
    rig.latch_file.unlink()
    rig.latch_file.mkdir()
    with pytest.raises(SoftformError, match="Make that folder writable, then reset again"):
        rig.supervisor.reset(rig.now(), never)
    assert rig.state is State.FAULT and rig.supervisor.report.faults == (STOPPED,)


# --- devices that are lost --------------------------------------------------------------------------------------------


def test_a_device_that_comes_back_is_made_safe_and_waits_for_a_reset(rig: Rig) -> None:
    rig.running()
    rig.device.lost = True
    rig.run(1.5)
    assert rig.state is State.FAULT and not rig.device.is_open and rig.statistics.reconnections == 0
    rig.device.lost = False
    rig.run(2.5)
    back = "openpneu is lost. Plug it in, then reset. The device is back on its port and safe; call 'reset' to go on"
    assert rig.reason == back and rig.statistics.reconnections == 1 and rig.device.is_open
    assert rig.supervisor.is_secured and rig.reports[-1].is_at_rest
    rig.device.lost = True
    rig.run(1.5)
    rig.device.lost = False
    assert "is back on" not in rig.reason
    rig.run(1.5)
    assert rig.reason == back and rig.statistics.reconnections == 2
    tests = rig.device.calls.count("test")
    rig.supervisor.reset(rig.now(), never)
    assert rig.device.calls.count("test") == tests + 1


def test_a_device_that_is_lost_at_rest_is_a_fault_and_a_reset_opens_it(rig: Rig) -> None:
    rig.connected()
    rig.run(1.0)
    rig.device.lost = True
    rig.run(1.5)
    assert rig.state is State.FAULT and "is lost" in rig.reason
    with pytest.raises(SoftformError, match="is lost"):
        rig.supervisor.reset(rig.now(), never)
    rig.device.lost = False
    with pytest.raises(SoftformError, match="was interrupted"):
        rig.supervisor.reset(rig.now(), lambda: True)
    rig.supervisor.reset(rig.now(), never)
    assert rig.device.is_open and rig.device.calls.count("open") >= 2


def test_deactivating_opens_a_lost_device_that_is_back(rig: Rig) -> None:
    rig.running()
    rig.device.lost = True
    rig.run(0.1)
    rig.device.lost = False
    assert not rig.device.is_open and rig.supervisor.rest_inactive(never) == "safe"
    assert rig.device.is_open and rig.supervisor.is_secured and rig.state is State.FAULT


def test_a_device_that_does_not_answer_at_rest_is_let_go_after_a_while(rig: Rig) -> None:
    rig.connected()
    rig.run(1.0)
    rig.device.silent = True
    rig.run(1.5)
    assert rig.state is State.FAULT and "does not answer" in rig.reason and rig.device.is_open
    rig.run(6.0)
    assert not rig.device.is_open or rig.device.calls.count("open") > 1


def test_a_reset_that_is_done_does_not_forget_a_device_that_was_lost_meanwhile(rig: Rig) -> None:
    rig.active()
    rig.stop()
    rig.device.lost = True
    with pytest.raises(SoftformError, match="is lost"):
        rig.supervisor.reset(rig.now(), never)
    assert rig.state is State.FAULT


# --- standing still ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "is_long"), [(1.55, False), (1.65, True)])
@pytest.mark.parametrize("asleep", [False, True])
def test_a_standstill_at_rest_ends_what_was_asked_for_and_is_no_fault(
    rig: Rig, seconds: float, is_long: bool, asleep: bool
) -> None:
    rig.connected()
    rig.run(1.0)
    epoch = rig.supervisor.commands.epoch
    if asleep:
        rig.clock.slept += seconds
    else:
        rig.clock.at += seconds
    rig.run(PERIOD)
    assert (rig.supervisor.commands.epoch > epoch) == is_long and rig.state is State.SAFE


def test_a_standstill_while_motors_hold_ends_the_lease(rig: Rig) -> None:
    rig = Rig(kinds=[HoldingDevice]).active()
    rig.acquire()
    rig.clock.slept += 2.0
    rig.run(PERIOD)
    assert rig.state is State.HOLDING and not rig.device.drives and rig.supervisor.report.holder == ""
    rig.goal = np.zeros(3)
    rig.command()
    assert rig.rejections == [
        f"The lease of 'planner' has ended. The driver stood still for 2.0 s. {LOST_STEP}",
    ]


def test_a_standstill_in_motion_is_a_fault(rig: Rig) -> None:
    rig.active()
    rig.clock.slept += 1.5
    rig.run(PERIOD)
    assert rig.state is State.SAFE
    rig.clock.slept += 1.7
    rig.run(PERIOD)
    assert rig.state is State.FAULT and rig.reason.startswith("The driver stood still for 1.7 s; its guardian may have")


def test_what_took_its_time_on_request_is_no_standstill(rig: Rig) -> None:
    rig.active()
    rig.clock.slept += 3.0
    rig.supervisor.resume()
    rig.run(PERIOD)
    assert rig.state is State.SAFE
    rig = Rig()
    rig.supervisor.open(never)
    rig.clock.at += 30.0
    epoch = rig.supervisor.commands.epoch
    rig.supervisor.begin(never)
    rig.run(PERIOD)
    assert rig.supervisor.commands.epoch == epoch


# --- calibration ------------------------------------------------------------------------------------------------------


def test_sensors_are_calibrated_at_rest_and_nothing_else_is_taken_meanwhile(rig: Rig) -> None:
    rig.active()
    busy: list[str] = []
    rig.device.on_call = lambda name: busy.append(rig.supervisor.busy) if name == "calibrate" else None
    epoch = rig.supervisor.commands.epoch
    assert rig.supervisor.calibrate(never) == "openpneu is calibrated."
    assert busy == ["The sensors are being calibrated."] and rig.supervisor.busy == ""
    assert rig.device.calls[-1] == "calibrate" and rig.supervisor.commands.epoch > epoch
    assert rig.supervisor.is_secured and rig.reason == "safe for the calibration of its sensors"
    began = rig.clock.at
    rig.run(0.5)
    assert not rig.device.drives
    rig.run(0.3)
    assert rig.device.drives and rig.clock.at - began < 1.0


def test_sensors_are_not_calibrated_in_motion_for_a_holder_or_in_fault(rig: Rig) -> None:
    rig.active()
    rig.acquire()
    with pytest.raises(SoftformError, match=r"'planner' holds the lease.*Let it end, then calibrate"):
        rig.supervisor.calibrate(never)
    rig.goal = np.full(3, 5_000.0)
    rig.run(0.5)
    with pytest.raises(SoftformError, match="Offsets are measured at rest, but the driver is RUNNING: following"):
        rig.supervisor.calibrate(never)
    rig.stop()
    with pytest.raises(SoftformError, match="the driver is FAULT"):
        rig.supervisor.calibrate(never)
    assert "calibrate" not in rig.device.calls


def test_a_calibration_that_is_interrupted_is_a_fault(rig: Rig) -> None:
    rig.connected()
    rig.run(1.0)
    with pytest.raises(DeviceError, match="was interrupted"):
        rig.supervisor.calibrate(lambda: rig.device.calls[-1] == "calibrate")
    assert rig.state is State.FAULT


def test_a_calibration_that_fails_is_a_fault(rig: Rig) -> None:
    rig.connected()
    rig.run(1.0)
    rig.device.fails.add("calibrate")
    with pytest.raises(DeviceError, match="fails in calibrate"):
        rig.supervisor.calibrate(never)
    assert rig.state is State.FAULT and rig.supervisor.busy == "" and "fails in calibrate" in rig.supervisor.faults[0]


# --- the end ----------------------------------------------------------------------------------------------------------


def end(rig: Rig) -> None:
    rig.supervisor.end()
    rig.supervisor.close()
    rig.supervisor.set_offline()


def test_a_driver_that_ends_in_motion_measures_that_it_is_safe_and_leaves_no_latch(rig: Rig) -> None:
    rig.running()
    epoch = rig.supervisor.commands.epoch
    end(rig)
    assert rig.device.calls[-1] == "close" and not rig.device.is_open and not rig.device.drives
    assert rig.supervisor.left_secured and rig.latch.read() is None
    assert rig.supervisor.commands.epoch > epoch and rig.supervisor.report.holder == ""
    assert (rig.state, rig.reason) == (State.OFFLINE, "not connected") and rig.reports[-1].state is State.OFFLINE


@pytest.mark.parametrize("how", ["stuck", "unmeasured", "unconfirmed", "lost"])
def test_doubts_at_the_end_stay_latched(rig: Rig, caplog: pytest.LogCaptureFixture, how: str) -> None:
    rig.running()
    rig.device.stuck[0], rig.device.unmeasured[1] = how == "stuck", how == "unmeasured"
    rig.device.unconfirmed, rig.device.lost = how == "unconfirmed", how == "lost"
    before = rig.clock.at
    end(rig)
    assert caplog.messages[-1].startswith("at the end: ") and "openpneu" in caplog.text or "Not at rest" in caplog.text
    assert rig.clock.at - before < 3.5 and not rig.supervisor.left_secured and not rig.device.is_open
    assert str(rig.latch.read()) == f"{LEFT_UNCONFIRMED} (following the commands of 'planner')"
    doubt = f"{LEFT_UNCONFIRMED} (following the commands of 'planner')"
    assert rig.reason == f"not connected: {doubt}. Cut the supply if the robot is not safe"


def test_an_inactive_driver_that_ends_in_doubt_latches_nothing(rig: Rig) -> None:
    rig.connected()
    rig.device.lost = True
    end(rig)
    assert rig.latch.read() is None and "did not confirm" in rig.reason


def test_a_fault_stays_latched_over_an_end_that_was_measured_safe(rig: Rig) -> None:
    rig.running()
    rig.stop()
    end(rig)
    assert rig.latch.read() == STOPPED and rig.supervisor.left_secured
    again = Rig(latch_file=rig.latch_file).connected()
    assert again.state is State.FAULT and again.supervisor.faults == [STOPPED]


def test_a_latch_that_cannot_be_cleared_at_the_end_is_no_exception(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.active()
    assert rig.latch_file is not None
    rig.latch_file.unlink()
    rig.latch_file.mkdir()
    end(rig)
    assert rig.state is State.OFFLINE and f"{rig.latch_file} cannot be removed" in caplog.messages[-1]


def test_who_commands_while_the_driver_is_closed_is_told(rig: Rig) -> None:
    rig.running()
    rig.supervisor.end()
    rig.command()
    assert rig.rejections[-1].startswith("The lease of 'planner' has ended. The driver was closed.")


def test_each_device_is_closed_and_one_in_doubt_is_enough() -> None:
    rig = Rig(two_devices(), (SteppedDevice, SteppedDevice)).running()
    rig.devices[1].unmeasured[0] = True
    end(rig)
    assert not any(device.is_open for device in rig.devices) and not rig.supervisor.left_secured
