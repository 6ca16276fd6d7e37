"""The driver's state machine in one thread, over devices in memory: rest, following, and every way out of it."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stepped_device import PERIOD, HoldingDevice, Rig, SteppedDevice, two_devices

from softform_actuation.device import DeviceError, Measurement, Rest, never
from softform_actuation.lease import Grant, LeaseCode, LeaseError
from softform_actuation.states import ActuatorRest, DriverReport, DriverSettings, State, Status
from softform_actuation.supervisor import REST_PATIENCE_SECONDS
from softform_core.errors import SoftformError

SLEW = 20_000.0  # Pa/s
NAMES = ("c1", "c2", "c3")


def is_nan(report: DriverReport) -> list[bool]:
    return [bool(np.isnan(one.value)) for one in report.actuators]


# --- connecting -------------------------------------------------------------------------------------------------------


def test_what_is_connected_is_safe_once_it_is_measured() -> None:
    rig = Rig()
    report = rig.supervisor.report
    assert (report.state, report.reason) == (State.OFFLINE, "not connected")
    assert report.actuators == tuple(
        ActuatorRest(name, False, False, False, pytest.approx(np.nan, nan_ok=True)) for name in NAMES
    )
    assert not report.is_at_rest and report.warnings == ("no dead-man",)
    rig.device.values[1] = 9_000.0  # a driver that died has left it there
    rig.connected()
    assert rig.device.calls == ["open"] and rig.state is State.MAKING_SAFE
    report = rig.supervisor.report
    assert [(one.asked, one.acknowledged, one.at_rest) for one in report.actuators] == [(True, True, False)] * 3
    assert is_nan(report) == [True] * 3 and not rig.supervisor.is_secured
    assert rig.supervisor.unsafe_in_words() == "openpneu has not measured where its actuators are."
    rig.run(0.2)
    assert rig.state is State.MAKING_SAFE
    assert [(one.acknowledged, one.at_rest, one.value) for one in rig.supervisor.report.actuators] == [
        (True, True, 0.0),
        (True, False, 9_000.0),
        (True, True, 0.0),
    ]
    rig.run(0.3)
    assert rig.state is State.SAFE and rig.reason == "connected and inactive: activate the driver to send commands"
    report = rig.supervisor.report
    assert report.actuators == tuple(ActuatorRest(name, True, True, True, 0.0) for name in NAMES)
    assert report.is_at_rest and rig.supervisor.is_secured and rig.supervisor.unsafe_in_words() == ""
    assert [report.state for report in rig.reports] == [State.MAKING_SAFE, State.MAKING_SAFE, State.SAFE]
    rig.run(3.0)
    assert not rig.device.drives and "begin" not in rig.device.calls


def test_devices_that_cannot_all_be_opened_are_all_let_go() -> None:
    rig = Rig(two_devices(), (SteppedDevice, SteppedDevice))
    rig.devices[1].lost = True
    with pytest.raises(SoftformError, match="right is lost"):
        rig.supervisor.open(never)
    assert not any(device.is_open for device in rig.devices) and all(one.is_lost for one in rig.supervisor.connections)


def test_a_connection_that_is_interrupted_is_none() -> None:
    rig = Rig()
    rig.supervisor.open(never)
    with pytest.raises(DeviceError, match=r"The connection was interrupted\. Configure the driver again"):
        rig.supervisor.begin(lambda: True)
    assert not rig.device.is_open and rig.state is State.OFFLINE and rig.reports == []


def test_a_latch_that_is_found_takes_a_reset(tmp_path: Path) -> None:
    rig = Rig(latch_file=tmp_path / "latch")
    rig.latch.set("a chamber leaked")
    rig.connected()
    assert rig.state is State.FAULT and rig.supervisor.report.faults == ("a chamber leaked",)
    assert rig.reason == "Latched before this start: a chamber leaked. Call 'reset' to go on"
    rig.supervisor.activate(never)
    assert "test" not in rig.device.calls
    with pytest.raises(LeaseError, match="A fault is latched: Latched before this start") as rejected:
        rig.acquire()
    assert rejected.value.code is LeaseCode.FAULT
    rig.run(2.0)
    assert rig.state is State.FAULT and "begin" not in rig.device.calls
    assert rig.supervisor.reset(rig.now(), never).startswith("Cleared: a chamber leaked. Whoever asks for the lease")
    rig.run(1.0)
    assert rig.device.drives


# --- activating -------------------------------------------------------------------------------------------------------


def test_activating_tests_the_actuators_once_and_drives_only_what_was_measured_at_rest(tmp_path: Path) -> None:
    rig = Rig(latch_file=tmp_path / "latch")
    rig.connected()
    with pytest.raises(LeaseError, match="The driver is not active") as rejected:
        rig.acquire()
    assert rejected.value.code is LeaseCode.INACTIVE
    busy: list[str] = []
    rig.device.on_call = lambda name: busy.append(rig.supervisor.busy) if name == "test" else None
    assert rig.supervisor.activate(never) == "active"
    assert busy == ["The actuators are being tested."] and rig.supervisor.busy == ""
    assert rig.supervisor.is_secured and rig.supervisor.is_active
    assert "while it was active" in str(rig.latch.read())
    assert rig.device.calls[:3] == ["open", "test", "make_safe"] and rig.device.calls[-1] == "check"
    rig.run(PERIOD)
    rig.run(PERIOD)
    assert rig.device.drives and rig.state is State.SAFE
    assert rig.device.calls[-2:] == ["check", "begin"]  # it is measured before each `begin`
    assert rig.reason == "ready: all actuators are at rest, waiting for a lease and commands"
    calls = list(rig.device.calls)
    assert rig.supervisor.activate(never) == "active"
    assert rig.device.calls == calls and rig.device.drives  # it is driving
    rig.supervisor.rest_inactive(never)
    rig.supervisor.is_active = False
    rig.supervisor.activate(never)
    assert rig.device.calls.count("test") == 1
    assert [connection.is_tested for connection in rig.supervisor.connections] == [True]


def test_a_lease_is_not_given_while_the_actuators_are_tested() -> None:
    rig = Rig().connected()
    codes: list[LeaseCode] = []

    def ask(name: str) -> None:
        if name == "test":
            with pytest.raises(LeaseError, match="being tested") as rejected:
                rig.acquire()
            codes.append(rejected.value.code)

    rig.device.on_call = ask
    rig.supervisor.activate(never)
    assert codes == [LeaseCode.BUSY]


def test_a_driver_that_cannot_latch_the_next_one_is_not_activated(tmp_path: Path) -> None:
    rig = Rig(latch_file=tmp_path / "latch").connected()
    (tmp_path / "latch").mkdir()
    with pytest.raises(SoftformError, match=r"would not survive.*Make that folder writable, then activate again"):
        rig.supervisor.activate(never)
    assert not rig.supervisor.is_active and rig.device.calls == ["open"] and rig.supervisor.busy == ""


def test_a_device_that_fails_its_test_and_is_safe_leaves_no_fault(tmp_path: Path) -> None:
    rig = Rig(latch_file=tmp_path / "latch").connected()
    rig.device.fails.add("test")
    with pytest.raises(DeviceError, match="fails in test"):
        rig.supervisor.activate(never)
    assert not rig.supervisor.is_active and rig.supervisor.busy == ""
    assert rig.latch.read() is None and rig.state is State.MAKING_SAFE
    rig.run(0.2)
    assert rig.state is State.SAFE and not rig.supervisor.connections[0].is_tested


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_device_that_fails_its_test_and_does_not_come_to_rest_is_a_fault(tmp_path: Path, interrupted: bool) -> None:
    rig = Rig(latch_file=tmp_path / "latch").connected()
    rig.device.fails.add("test")
    rig.device.unmeasured[1] = True
    with pytest.raises(DeviceError, match="fails in test"):
        rig.supervisor.activate(lambda: interrupted)
    if interrupted:  # a stop has come, which makes safe and latches itself
        assert rig.state is State.MAKING_SAFE
    else:
        assert rig.state is State.FAULT and "fails in test" in rig.reason
    assert rig.latch.read() is not None


def test_an_actuator_that_was_stuck_after_the_test_is_not_driven() -> None:
    rig = Rig().connected()
    rig.device.unmeasured[0] = True
    with pytest.raises(SoftformError, match="c1 of openpneu does not come to rest"):
        rig.supervisor.activate(never)
    assert rig.state is State.FAULT and "begin" not in rig.device.calls


def test_what_is_no_longer_measured_at_rest_is_not_begun() -> None:
    rig = Rig().running()
    rig.device.falls_for = 0.05
    rig.supervisor.release("planner", rig.grant)
    rig.run(0.3)
    assert rig.state is State.SAFE
    rig.device.unmeasured[2] = True
    begun = rig.device.calls.count("begin")
    rig.run(0.5)
    assert rig.state is State.FAULT and rig.reason.startswith("Not at rest: c3 at nan Pa. Keep away")
    assert rig.device.calls.count("begin") == begun


# --- following --------------------------------------------------------------------------------------------------------


def test_a_command_is_followed_no_faster_than_the_slew_rate_and_settles() -> None:
    rig = Rig().active()
    assert rig.state is State.SAFE and rig.device.drives and rig.supervisor.report.holder == ""
    rig.acquire()
    assert rig.reports[-1].holder == "planner" and rig.reports[-1].lease == rig.grant.lease
    assert rig.state is State.SAFE  # nothing was commanded
    rig.goal, began, before = np.array([10_000.0, 5_000.0, 0.0]), rig.clock.at, len(rig.device.targets)
    rig.run(0.3)
    assert rig.state is State.RUNNING and rig.reason == "following the commands of 'planner'"
    steps = np.diff(np.array(rig.device.targets[before - 1 :]), axis=0)
    assert steps.max() == pytest.approx(SLEW * PERIOD, abs=1.0)
    assert rig.device.targets[-1][0] == pytest.approx(SLEW * (rig.clock.at - began), abs=SLEW * PERIOD)
    assert (rig.readings[-1].status[:2] == Status.MOVING).all()
    report = rig.supervisor.report
    assert [one[1:4] for one in report.actuators] == [(False, False, False)] * 3 and is_nan(report) == [True] * 3
    rig.run(0.6)
    np.testing.assert_array_equal(rig.device.targets[-1], rig.goal)
    assert (rig.readings[-1].status == Status.SETTLED).all()
    assert rig.readings[-1].captured == pytest.approx(rig.clock.at)
    np.testing.assert_array_equal(rig.readings[-1].values, rig.goal)
    assert rig.readings[-1].status.dtype == np.uint8  # as the message has it
    statistics = rig.statistics
    assert statistics.command_age == 0.0 and statistics.measured_rate == pytest.approx(50.0, rel=0.1)
    assert statistics.measurements == len(rig.readings) and len(statistics._latencies) > 40


def test_a_period_that_took_long_moves_no_further_than_a_fifth_of_a_second() -> None:
    rig = Rig().running(20_000.0, 0.0, 0.0)
    rig.goal = np.array([60_000.0, 0.0, 0.0])
    before = rig.device.targets[-1][0]
    rig.clock.at += 0.7
    rig.supervisor.resume()
    rig.run(PERIOD)
    assert rig.device.targets[-1][0] - before == pytest.approx(SLEW * 0.2, abs=1.0)


def test_a_period_that_is_over_before_all_is_sent_goes_on_with_the_next() -> None:
    rig = Rig().running()
    sent = len(rig.device.targets)
    rig.supervisor.tick(rig.clock.at, lambda: True)
    assert len(rig.device.targets) == sent
    rig.goal = None
    latencies = len(rig.statistics._latencies)
    rig.run(0.5)
    assert len(rig.device.targets) > sent and len(rig.statistics._latencies) <= latencies + 1  # one a command


def test_targets_are_sent_in_every_period_also_at_rest() -> None:
    rig = Rig().active()
    before = len(rig.device.targets)
    rig.run(1.0)
    assert len(rig.device.targets) - before == pytest.approx(1.0 / PERIOD, abs=2)
    assert not np.array(rig.device.targets[before:]).any()


def test_at_rest_while_it_drives_is_told_as_measured() -> None:
    rig = Rig().connected()
    rig.supervisor.activate(never)
    rig.device.silent = False
    rig.run(PERIOD)
    rig.run(PERIOD)
    assert rig.device.drives and rig.supervisor.report.is_at_rest
    assert rig.supervisor.report.actuators == tuple(
        ActuatorRest(name, True, True, True, pytest.approx(np.nan, nan_ok=True)) for name in NAMES
    )
    rig.device.leaves[1] = 3_900.0
    rig.run(0.1)
    assert rig.at_rest() == [True, True, True]  # as near as what follows has to be
    rig.device.leaves[1] = 4_100.0
    rig.run(0.1)
    assert rig.at_rest() == [True, False, True] and not rig.supervisor.report.is_at_rest


def test_before_the_first_measurement_at_rest_is_what_was_measured_before() -> None:
    rig = Rig().connected()
    rig.supervisor.activate(never)
    for _ in range(10):
        if not rig.device.drives:
            rig.supervisor.tick(rig.clock.at, never)
    assert rig.supervisor._followers[0].captured is None and rig.supervisor.report.is_at_rest


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (lambda rig: setattr(rig.device, "silent", True), "openpneu sent no measurements for 1 s"),
        (lambda rig: setattr(rig.device, "lost", True), "openpneu is lost"),
        (lambda rig: rig.device.leaves.__setitem__(1, 60_000.0), "c2 is at"),
        (lambda rig: rig.device.leaves.__setitem__(2, -4_500.0), "c3 stays at"),
        (lambda rig: setattr(rig.clock, "slept", 7.0), "The driver stood still for 7.0 s; its guardian may"),
    ],
)
def test_what_goes_wrong_in_motion_makes_safe_and_latches(fault: Callable[[Rig], None], why: str) -> None:
    rig = Rig().running()
    epoch, calls = rig.supervisor.commands.epoch, len(rig.device.calls)
    fault(rig)
    rig.run(6.0)
    assert rig.state is State.FAULT and rig.reason.startswith(why), rig.reason
    assert rig.device.calls[calls] == "make_safe" and rig.supervisor.commands.epoch > epoch
    assert rig.supervisor.report.holder == "" and rig.rejections[-1].startswith(
        "The lease of 'planner' has ended. " + why
    )
    assert rig.supervisor.report.faults[0].startswith(why)


# --- ways down --------------------------------------------------------------------------------------------------------


def gone(rig: Rig) -> None:
    rig.goal = None
    rig.run(1.0 + 2 * PERIOD)


def give_up(rig: Rig) -> None:
    rig.supervisor.release("planner", rig.grant)


def deactivate(rig: Rig) -> None:
    rig.supervisor.is_active = False
    rig.supervisor.rest_inactive(never)


def hold(rig: Rig) -> None:
    for _ in range(60):
        rig.goal = rig.goal + 1.0  # noise of a commander: less than what settles
        rig.run(0.1)


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        (gone, "safe, because no command of 'planner' came for 1 s: it is gone, or slower than 'command_timeout'"),
        (give_up, "safe, because 'planner' gave its lease up; waiting for another"),
        (deactivate, "inactive: activate the driver to send commands"),
        (hold, r"safe, because the same values were held for 5 s (hold_timeout); waiting for another lease"),
    ],
)
def test_every_way_down_ends_lease_and_epoch_and_is_safe_once_measured(way: Callable[[Rig], None], reason: str) -> None:
    rig = Rig(settings=DriverSettings(hold_timeout=5.0)).running()
    grant, epoch = rig.grant, rig.supervisor.commands.epoch
    seen, goal = len(rig.reports), rig.goal
    way(rig)
    states = [report.state for report in rig.reports[seen:] if report.state is not State.RUNNING]
    assert states[0] is State.MAKING_SAFE and rig.reports[-1].reason.startswith(reason)
    assert State.FAULT not in states
    assert rig.supervisor.commands.epoch > epoch and rig.supervisor.report.holder == ""
    assert any(report.reason.startswith(reason) for report in rig.reports)
    sent = len(rig.device.targets)
    rig.rejections.clear()
    rig.goal, rig.grant = goal, grant  # it woke up, and goes on
    rig.run(2.0)
    assert rig.state is State.SAFE and rig.supervisor.report.is_at_rest
    ended = "'planner' gave it up." if way is give_up else reason
    assert rig.rejections[-1].startswith(f"The lease of 'planner' has ended. {ended}")
    assert not np.array(rig.device.targets[sent:]).any()
    with pytest.raises(LeaseError):
        rig.supervisor.release("planner", grant)


def test_a_lease_given_up_at_rest_leaves_the_device_driving_at_rest() -> None:
    rig = Rig().active()
    grant, epoch, calls = rig.acquire(), rig.supervisor.commands.epoch, list(rig.device.calls)
    with pytest.raises(LeaseError, match="'planner' holds the lease"):
        rig.supervisor.release("stranger", grant)
    assert rig.supervisor.release("planner", grant) == epoch
    assert rig.device.calls == calls and rig.reports[-1].holder == ""


def test_a_program_that_lost_the_answer_asks_again() -> None:
    rig = Rig().active()
    lost = rig.acquire()
    assert rig.acquire().lease == lost.lease + 1


def test_a_lease_that_is_never_used_ends_and_that_is_told() -> None:
    rig = Rig().active()
    rig.acquire()
    rig.run(2.9)
    assert rig.reports[-1].holder == "planner"
    rig.run(0.3)
    assert rig.reports[-1].holder == "" and rig.device.drives
    rig.goal = np.zeros(3)
    rig.run(0.1)
    assert "Nothing was commanded within 3 s" in rig.rejections[-1]


def test_values_that_change_are_held_as_long_as_somebody_commands() -> None:
    rig = Rig(settings=DriverSettings(hold_timeout=5.0)).running()
    for number in range(80):
        rig.goal = np.full(3, 10_000.0 + 400.0 * (number // 20 % 2))  # more than what settles
        rig.run(0.1)
    assert rig.state is State.RUNNING
    rig.run(4.8 - 2.0)
    assert rig.state is State.RUNNING
    rig.run(2.5)
    assert "hold_timeout" in rig.reason


def test_a_new_lease_has_the_whole_time_to_hold() -> None:
    rig = Rig(settings=DriverSettings(hold_timeout=5.0)).running()
    rig.run(5.2)
    assert "hold_timeout" in rig.reason and rig.state is not State.RUNNING
    goal, rig.goal = rig.goal, None
    rig.run(1.5)
    rig.acquire()
    rig.goal = goal
    rig.run(4.5)
    assert rig.state is State.RUNNING


def test_what_made_safe_rests_before_it_is_driven_again() -> None:
    rig = Rig().running()
    rig.device.falls_for = 0.05
    rig.supervisor.release("planner", rig.grant)
    rig.goal = None
    rig.run(0.5)
    assert rig.state is State.SAFE and not rig.device.drives
    rig.run(0.2)
    assert rig.device.drives


def test_an_actuator_that_stays_high_is_never_safe_and_then_a_fault() -> None:
    rig = Rig().running()
    rig.device.stuck[1] = True
    rig.supervisor.release("planner", rig.grant)
    rig.goal = None
    rig.run(4.5)
    assert rig.state is State.MAKING_SAFE and rig.at_rest() == [True, False, True]
    assert rig.supervisor.report.actuators[1] == ActuatorRest("c2", True, True, False, 10_000.0)
    assert rig.supervisor.unsafe_in_words() == "Not at rest: c2 at 1e+04 Pa."
    rig.run(1.0)
    assert rig.state is State.FAULT and rig.reason == "c2 of openpneu does not come to rest. Cut its supply"
    assert rig.supervisor.report.reason == rig.reason  # said once
    assert rig.supervisor.report.faults == ("c2 of openpneu does not come to rest. Cut its supply.",)
    rig.run(6.0)
    assert rig.supervisor.unsafe_in_words() == "c2 of openpneu does not come to rest. Cut its supply."
    assert not rig.supervisor.report.is_at_rest and State.SAFE not in {report.state for report in rig.reports[-3:]}


def test_an_actuator_that_is_not_measured_counts_as_unsafe() -> None:
    rig = Rig().running()
    rig.device.unmeasured[0] = True
    rig.supervisor.release("planner", rig.grant)
    rig.run(3.0)
    assert rig.state is State.MAKING_SAFE and rig.at_rest() == [False, True, True]
    assert is_nan(rig.supervisor.report) == [True, False, False] and not rig.supervisor.is_secured


def test_a_device_that_does_not_confirm_is_asked_again_until_it_does() -> None:
    rig = Rig().running()
    rig.device.unconfirmed = True
    with pytest.raises(DeviceError, match=r"does not confirm that it is safe \(vent\)"):
        rig.supervisor.release("planner", rig.grant)
    rig.supervisor.fault("openpneu does not confirm that it is safe (vent).")
    report = rig.supervisor.report
    assert report.reason == (
        "openpneu does not confirm that it is safe (vent). openpneu has not confirmed that it is safe: cut its supply"
    )
    assert [one[1:4] for one in report.actuators] == [(True, False, False)] * 3
    assert rig.supervisor.unsafe_in_words().startswith("openpneu does not confirm")
    asked = rig.device.calls.count("make_safe")
    rig.run(2.5)
    assert rig.device.calls.count("make_safe") - asked >= 2 and rig.at_rest() == [False] * 3
    rig.device.unconfirmed = False
    rig.run(1.5)
    assert rig.supervisor.is_secured and rig.reports[-1].is_at_rest and rig.state is State.FAULT
    assert "has not confirmed" not in rig.supervisor.report.reason


def test_a_device_that_is_measured_at_rest_but_acknowledged_nothing_is_not_called_at_rest() -> None:
    rig = Rig().running()
    rig.device.falls_for, rig.device.drives = 0.0, False
    rig.device.values = np.zeros(3)
    rig.device.unconfirmed = True
    rig.supervisor.fault("planted")
    rig.device.drives = False
    rig.run(3.0)
    assert rig.at_rest() == [False] * 3 and not rig.supervisor.is_secured


def test_deactivating_waits_until_it_is_measured_and_clears_what_marks_an_active_driver(tmp_path: Path) -> None:
    rig = Rig(latch_file=tmp_path / "latch").running()
    before = rig.clock.at
    assert rig.supervisor.rest_inactive(never) == "safe"
    assert rig.state is State.SAFE and rig.supervisor.is_secured and rig.clock.at - before >= 0.3
    assert rig.latch.read() is None
    assert rig.reports[-1].is_at_rest and rig.reports[-1].state is State.SAFE


@pytest.mark.parametrize("how", ["stuck", "unconfirmed", "interrupted"])
def test_deactivating_what_is_not_measured_at_rest_is_a_fault(tmp_path: Path, how: str) -> None:
    rig = Rig(latch_file=tmp_path / "latch").running()
    rig.device.unconfirmed = how == "unconfirmed"
    rig.device.stuck[0] = how == "stuck"
    before = rig.clock.at
    with pytest.raises(SoftformError, match="does not confirm|does not come to rest|Not at rest|has not measured"):
        rig.supervisor.rest_inactive(lambda: how == "interrupted")
    assert rig.state is State.FAULT and rig.latch.read() is not None
    assert rig.clock.at - before < (6.5 if how == "stuck" else 0.5)
    with pytest.raises(SoftformError):
        rig.supervisor.rest_inactive(lambda: how == "interrupted")
    (fault,) = rig.supervisor.report.faults
    assert any(words in fault for words in ("does not confirm", "come to rest", "Not at rest", "has not measured"))


def test_patience_ends_though_a_device_never_complains() -> None:
    rig = Rig().running()
    rig.device.check = lambda: Rest(np.full(3, 9.0), np.zeros(3, dtype=bool))
    before = rig.clock.at
    with pytest.raises(SoftformError, match="Not at rest: c1 at 9 Pa, c2 at 9 Pa, c3 at 9 Pa"):
        rig.supervisor.rest_inactive(never)
    assert rig.clock.at - before == pytest.approx(REST_PATIENCE_SECONDS, abs=0.2)


def test_deactivating_in_fault_makes_safe_again_and_keeps_the_latch(tmp_path: Path) -> None:
    rig = Rig(latch_file=tmp_path / "latch").running()
    rig.stop()
    epoch, calls = rig.supervisor.commands.epoch, len(rig.device.calls)
    assert rig.supervisor.rest_inactive(never) == "safe"
    assert rig.device.calls[calls] == "make_safe" and rig.supervisor.commands.epoch > epoch
    assert rig.state is State.FAULT and "stopped" in str(rig.latch.read()) and rig.supervisor.is_secured


# --- several devices --------------------------------------------------------------------------------------------------


def test_two_devices_are_driven_each_with_its_own_actuators() -> None:
    rig = Rig(two_devices(), (SteppedDevice, SteppedDevice)).running(2_500.0, 2_000.0, 3_000.0)
    np.testing.assert_array_equal(rig.devices[0].targets[-1], [3_000.0, 2_500.0])
    np.testing.assert_array_equal(rig.devices[1].targets[-1], [2_000.0])
    np.testing.assert_array_equal(rig.readings[-1].values, [2_500.0, 2_000.0, 3_000.0])
    moments = [follower.captured for follower in rig.supervisor._followers]
    assert rig.readings[-1].captured == min(moments)
    rig.devices[0].stuck[1], rig.devices[1].unconfirmed = True, True
    rig.supervisor.fault("planted")
    rig.run(3.0)
    told = [(one.name, one.acknowledged, one.at_rest) for one in rig.supervisor.report.actuators]
    assert told == [("c1", True, False), ("c2", False, False), ("c3", True, True)]
    assert rig.supervisor.report.actuators[0].value == 2_500.0
    assert "right has not confirmed" in rig.supervisor.report.reason and "left has" not in rig.supervisor.report.reason
    assert rig.supervisor.unsafe_in_words().startswith("Not at rest: c1 at 2500 Pa. right does not confirm")


def test_only_the_device_in_doubt_is_named() -> None:
    rig = Rig(two_devices(), (SteppedDevice, SteppedDevice)).connected()
    rig.devices[1].unmeasured[:] = True
    rig.run(1.0)
    assert [connection.is_secured for connection in rig.supervisor.connections] == [True, False]
    assert rig.supervisor.unsafe_in_words() == "Not at rest: c2 at nan Pa." and not rig.supervisor.is_secured


def test_no_readings_are_told_before_each_device_has_measured() -> None:
    rig = Rig(two_devices(), (SteppedDevice, SteppedDevice)).connected()
    rig.devices[1].silent = False
    rig.supervisor.activate(never)
    rig.devices[1].read = lambda timeout: []
    rig.run(0.6)
    assert rig.devices[0].drives and rig.readings == []
    rig.run(1.5)
    assert rig.state is State.FAULT and "right sent no measurements" in rig.reason


def test_a_fault_of_one_device_makes_all_safe_though_another_is_lost() -> None:
    rig = Rig(two_devices(), (SteppedDevice, SteppedDevice)).running()
    rig.devices[0].lost = True
    rig.run(0.1)
    assert rig.state is State.FAULT and not rig.devices[1].drives and not rig.devices[0].is_open
    assert "left has not confirmed" in rig.supervisor.report.reason


def test_devices_that_answer_slowly_are_made_safe_at_the_same_time() -> None:
    rig = Rig(two_devices(), (SteppedDevice, SteppedDevice)).running()
    both = threading.Barrier(2, timeout=5.0)
    for device in rig.devices:
        device.on_call = lambda name: both.wait() if name == "make_safe" else None
    rig.supervisor.make_safe_quietly("planted")
    assert [connection.acknowledged for connection in rig.supervisor.connections] == [True, True]


def test_a_device_that_serves_no_actuator_is_made_safe_with_the_others() -> None:
    rig = Rig(two_devices(dead_man=True), (SteppedDevice, SteppedDevice)).running()
    assert [one.name for one in rig.supervisor.report.actuators] == list(NAMES)
    np.testing.assert_array_equal(rig.readings[-1].values, rig.goal)
    rig.devices[0].silent = True
    rig.run(1.1)
    assert rig.state is State.FAULT and "dead_man sent no measurements" in rig.reason and not rig.devices[1].drives
    rig.devices[0].silent = False
    rig.run(1.5)
    assert rig.supervisor.is_secured and rig.supervisor.report.is_at_rest


def test_a_dead_man_is_proven_first_and_keeps_the_supply_on_while_the_others_are_tested() -> None:
    rig = Rig(two_devices(dead_man=True), (SteppedDevice, SteppedDevice)).connected()
    (dead_man, board), supplied, waits, read = rig.devices, [], [], rig.devices[0].read
    board.on_call = lambda name: supplied.append(dead_man.drives) if name == "test" else None

    def note(timeout: float) -> list[Measurement]:
        waits.append(timeout)
        return read(timeout)

    dead_man.read = note
    rig.supervisor.activate(never)
    assert supplied == [True] and not dead_man.drives
    assert dead_man.calls[:5] == ["open", "test", "make_safe", "begin", "make_safe"]
    assert [len(targets) for targets in dead_man.targets] == [0] and set(waits) == {0.0}
    begun: list[str] = []
    for device in rig.devices:
        device.on_call = lambda name, device=device: begun.append(device.identity) if name == "begin" else None
    rig.run(1.0)
    assert begun == ["openpneu", "dead_man"] and set(waits) == {0.0}  # its heartbeats begin with the next tick
    assert rig.statistics.measurements == len(rig.readings)
    rig.supervisor.is_active = False
    rig.supervisor.rest_inactive(never)
    rig.supervisor.activate(never)
    assert (dead_man.calls.count("test"), board.calls.count("test")) == (2, 1)


@pytest.mark.parametrize("who", [0, 1])
def test_a_test_that_fails_leaves_the_supply_off(who: int) -> None:
    rig = Rig(two_devices(dead_man=True), (SteppedDevice, SteppedDevice)).connected()
    rig.devices[who].fails.add("test")
    with pytest.raises(DeviceError, match="fails in test"):
        rig.supervisor.activate(never)
    assert not rig.devices[0].drives and rig.devices[0].calls[-1] == "check"
    if who == 0:
        assert "test" not in rig.devices[1].calls


def test_a_stop_interrupts_the_test_beside_a_dead_man() -> None:
    rig = Rig(two_devices(dead_man=True), (SteppedDevice, SteppedDevice)).connected()
    with pytest.raises(DeviceError, match="openpneu was interrupted"):
        rig.supervisor.activate(lambda: rig.devices[1].calls[-1] == "test")
    assert not rig.devices[0].drives


# --- motors that hold -------------------------------------------------------------------------------------------------


def test_motors_that_hold_are_holding_and_driven_only_for_who_has_the_lease() -> None:
    rig = Rig(kinds=[HoldingDevice])
    rig.device.stuck[:] = True
    rig.connected()
    rig.run(1.0)
    assert rig.state is State.HOLDING and rig.supervisor.is_secured
    rig.supervisor.activate(never)
    rig.run(2.0)
    assert rig.state is State.HOLDING and not rig.device.drives
    rig.acquire()
    rig.run(0.3)
    assert rig.device.drives and rig.state is State.HOLDING
    assert [one[1:4] for one in rig.supervisor.report.actuators] == [(False, False, False)] * 3
    rig.run(3.0)
    assert not rig.device.drives
    assert rig.reason == "held, because nothing was commanded; waiting for another lease"
    assert rig.state is State.HOLDING and rig.supervisor.report.holder == ""


def test_a_lease_of_motors_that_hold_given_up_unused_makes_them_hold() -> None:
    rig = Rig(kinds=[HoldingDevice]).active()
    grant = rig.acquire()
    rig.run(0.3)
    assert rig.device.drives
    rig.supervisor.release("planner", grant)
    assert not rig.device.drives and "gave its lease up" in rig.reason
    rig.run(1.0)
    assert rig.state is State.HOLDING


def test_motors_that_hold_and_do_not_confirm_are_not_secured() -> None:
    rig = Rig(kinds=[HoldingDevice]).active()
    rig.acquire()
    rig.goal = np.full(3, 5_000.0)
    rig.run(1.0)
    assert rig.state is State.RUNNING
    rig.device.unconfirmed = True
    rig.supervisor.fault("planted")
    assert not rig.supervisor.is_secured and "(hold)" in rig.supervisor.unsafe_in_words()
    rig.device.unconfirmed = False
    rig.supervisor.rest_inactive(never)
    assert rig.supervisor.is_secured and rig.state is State.FAULT
    rig.supervisor.reset(rig.now(), never)
    rig.supervisor.rest_inactive(never)
    assert rig.state is State.HOLDING


# --- reports ----------------------------------------------------------------------------------------------------------


def test_only_changes_are_told_and_a_listener_that_fails_stops_nothing() -> None:
    rig = Rig().active()
    told = len(rig.reports)
    rig.run(3.0)
    assert len(rig.reports) == told

    def fail(report: DriverReport) -> None:
        raise RuntimeError("planted")

    rig.supervisor._on_report = fail
    rig.stop()
    assert rig.state is State.FAULT and not rig.device.drives


def test_a_report_names_the_epoch_that_a_request_has_to_name() -> None:
    rig = Rig().running()
    for make in (lambda: rig.supervisor.release("planner", rig.grant), rig.stop):
        before = rig.reports[-1].epoch
        make()
        assert rig.reports[-1].epoch == rig.supervisor.report.epoch == rig.supervisor.commands.epoch != before


@pytest.mark.parametrize("kinds", [1, 2])
def test_a_wait_for_measurements_lasts_until_its_end(kinds: int) -> None:
    rig = Rig(two_devices() if kinds == 2 else None, [SteppedDevice] * kinds).connected()
    began = rig.clock.at
    rig.supervisor.watch_until(began + 0.5, never)
    assert rig.clock.at - began == pytest.approx(0.5, abs=1e-4)
    for device in rig.devices:
        device.read = lambda timeout: rig.clock.sleep(0.001) or []  # something arrived that was no measurement
    rig.supervisor.watch_until(began + 1.0, never)
    assert rig.clock.at - began == pytest.approx(1.0, abs=0.01)


def test_a_wait_for_lost_devices_is_interrupted_soon() -> None:
    rig = Rig().connected()
    rig.supervisor.connections[0].let_go()
    began = rig.clock.at
    rig.supervisor.watch_until(began + 1.0, lambda: rig.clock.at > began)
    assert rig.clock.at - began == pytest.approx(0.05)


def test_a_device_is_looked_at_when_it_is_due_though_another_is_not() -> None:
    rig = Rig(two_devices(), (SteppedDevice, SteppedDevice)).connected()
    rig.run(1.0)
    rig.supervisor.connections[0]._next_check = np.inf
    rig.devices[1].silent = True
    rig.run(1.5)
    assert rig.state is State.FAULT and "right does not answer" in rig.reason


def test_what_stays_unknown_is_told_once() -> None:
    rig = Rig().running()
    rig.device.unmeasured[0] = rig.device.unconfirmed = True
    rig.supervisor.fault("planted")
    rig.run(2.2)
    told = len(rig.reports)
    rig.run(3.0)
    assert len(rig.reports) - told <= 2 and rig.state is State.FAULT


def test_a_measurement_that_comes_unasked_makes_safe_again() -> None:
    rig = Rig().connected()
    rig.run(1.0)
    rig.device.strays = [Measurement(np.zeros(3), rig.clock.at - 10.0)]
    calls = rig.device.calls.count("make_safe")
    rig.run(0.1)
    assert rig.device.calls.count("make_safe") == calls and rig.state is State.SAFE  # was under way
    rig.run(1.0)
    rig.device.strays = [Measurement(np.zeros(3), rig.clock.at + late) for late in (-10.0, 0.4)]
    rig.run(0.1)
    assert rig.device.calls.count("make_safe") == calls + 1 and rig.state is State.SAFE


def test_an_unknown_grant_is_nobodys() -> None:
    rig = Rig().running()
    with pytest.raises(LeaseError) as rejected:
        rig.supervisor.release("planner", Grant(rig.grant.lease, rig.grant.key + 1))
    assert rejected.value.code is LeaseCode.UNKNOWN_LEASE and rig.state is State.RUNNING
