"""The script of injections, its ledger, the log of the wire and the figures; the stack itself is the bench's matter."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from softform_actuation.commands import CommandRejectedError, check_age, check_command
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorCommand, DriverState
from softform_interfaces.srv import Lease
from softform_rig.wire_log_writer import WireLogWriter
from softform_ros.conversions import seconds_from_stamp
from softform_system_tests.fault_injection import fault_class, truth
from softform_system_tests.fault_injection.arm_faults import STILL_WITHIN, stands_still
from softform_system_tests.fault_injection.arm_stack import NARROW, NARROW_JOINT, ArmStack
from softform_system_tests.fault_injection.campaign import CLASSES, DEFAULT_COUNT, SHARES, STACKS, script
from softform_system_tests.fault_injection.command_faults import not_rejected, wrong_command
from softform_system_tests.fault_injection.fault_class import wild_target
from softform_system_tests.fault_injection.held_shape_faults import stays_vented
from softform_system_tests.fault_injection.outcome import Ledger, Outcome, figures, table
from softform_system_tests.fault_injection.rig_stack import RigStack
from softform_system_tests.fault_injection.shifted_clock import ShiftedClock
from softform_system_tests.fault_injection.truth import WireLogReader, false_reports, inflates, is_at_rest, rested

ROBOT = load_robot("membrane")


class OnTheWire:
    """As much of a stack as the judges of targets need."""

    robot = ROBOT

    def __init__(self, path, *lines):
        path.write_text("".join(f"{line}\n" for line in lines))
        self.wire = WireLogReader(path)


def test_a_whole_script_has_every_variant_of_every_class():
    order = script(DEFAULT_COUNT)
    assert len(order) >= 330
    assert {name: sum(each == name for each, _ in order) for name in SHARES} == SHARES
    assert set(order) == {(name, variant) for name, each in CLASSES.items() for variant in each.variants}
    assert {each.stack for each in CLASSES.values()} == STACKS.keys()


def test_one_class_alone():
    assert script(3, "scan") == [("scan", variant) for variant in CLASSES["scan"].variants[:3]]
    with pytest.raises(SoftformError, match="Use one of: .*commands"):
        script(3, "weather")


def test_the_latches_of_a_run_are_kept_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", os.environ["ROS_DOMAIN_ID"])  # of a stack of its own: put back afterwards
    assert RigStack(ROBOT, tmp_path).processes.environment["SOFTFORM_STATE"] == str(tmp_path / "state")


def test_a_run_that_was_cut_off_goes_on_without_what_was_cut(tmp_path):
    ledger = Ledger(tmp_path / "outcomes.jsonl", "one")
    ledger.keep(0, Outcome("serial", "stall", True, "vented", 12.5))
    ledger.keep(3, Outcome("scan", "scan_nan", False, "a NaN came out"))
    whole = ledger.path.read_text()
    ledger.path.write_text(whole + '{"number": 4, "fault_cl')
    again = Ledger(ledger.path, "one")
    assert again.outcomes == ledger.outcomes
    again.keep(4, Outcome("scan", "scan_empty", True, "rejected"))
    assert sorted(Ledger(ledger.path, "one").outcomes) == [0, 3, 4]
    with pytest.raises(SoftformError, match="holds faults that revision one was given; this is two"):
        Ledger(ledger.path, "two")
    ledger.path.write_text("no outcome\n")
    with pytest.raises(SoftformError, match="no outcome"):
        Ledger(ledger.path, "one")


def test_figures_count_what_is_wrong():
    outcomes = [Outcome("serial", "mute", True, "", float(ms)) for ms in range(1, 101)]
    outcomes += [
        Outcome("kill -9", "rig", False, "unnoticed"),
        Outcome("kill -9", "collector", True, "", lost_frames=2),
    ]
    all_of_them = figures(outcomes)
    assert (all_of_them["injected"], all_of_them["safe"], all_of_them["data_lost_frames"]) == (102, 101, 2)
    assert all_of_them["vented_within_ms_p99"] == pytest.approx(99.0, abs=0.1)
    assert all_of_them["slack_within_ms_max"] is None
    assert figures([Outcome("tendon bus", "pulled", True, "", slack_ms=410.0)])["slack_within_ms_max"] == 410.0
    assert [each["variant"] for each in all_of_them["unsafe"]] == ["rig", "collector"]
    assert len(table(all_of_them).splitlines()) == 4


def test_figures_tell_what_was_measured_of_rest_and_what_was_only_said():
    outcomes = [
        Outcome("serial", "mute", True, "", 20.0, falls_ms=60.0, empty_ms=400.0, at_rest=True),
        Outcome("stuck valve", "stop", False, "", at_rest=False, false_reports=2),
    ]
    found = figures(outcomes)
    assert (found["safe_measured"], found["reported_safe_but_not"]) == (1, 2)
    assert (found["chamber_falls_within_ms_p99"], found["chamber_vented_within_ms_p99"]) == (60.0, 400.0)
    assert [each["fault_class"] for each in found["unsafe"]] == ["stuck valve"]


def true_lines(*samples):
    """Lines of the wire's log: at a moment, s, all nine chambers at a pressure, Pa."""
    return [f"{moment}\ttrue\t{' '.join(9 * [f'{pressure:g}'])}" for moment, pressure in samples]


def test_the_rig_logs_the_true_values_beside_the_wire(tmp_path):
    writer, reader = WireLogWriter(tmp_path / "wire.log"), WireLogReader(tmp_path / "wire.log")
    writer.hear(b"V\n", 1.0)
    writer.note_values(1.5, np.array([0.0, 3210.5]))
    writer.hear(b"C\n", 2.0)
    assert [event.text for event in reader.events(0.0)] == ["V", "C"]
    ((moment, values),) = reader.true_values(1.0)
    assert moment == 1.5 and values.tolist() == [0.0, 3210.5]
    assert reader.true_values(1.5) == []
    assert reader.first_values(lambda values: values.max() > 3000.0, 0.0, 0.0) == 1.5
    assert reader.first_values(lambda values: values.max() < 3000.0, 0.0, 0.0) is None


def test_a_board_that_measures_at_rest_holds_its_latch_and_one_that_inflates_does_not(tmp_path, monkeypatch):
    monkeypatch.setattr(fault_class, "LATCHED_SECONDS", 0.0)
    watch = SimpleNamespace(driver_state=DriverState.FAULT)
    for number, (line, wrong) in enumerate((("C", None), ("T=0.000", None), ("T=0.500", "'T=0.500' came on the wire"))):
        wire = OnTheWire(tmp_path / str(number), "1.0\thost\tV", f"1.5\thost\t{line}").wire
        assert fault_class.not_latched(SimpleNamespace(watch=watch, wire=wire), 1.0) == wrong


def test_air_is_timed_from_when_the_fault_could_be_observed(tmp_path):
    air = [(9.95, 3000), (10.1, 2950), (10.15, 2600), (10.3, 1500), (10.5, 900)]
    stack = OnTheWire(tmp_path / "wire.log", *true_lines(*air))
    outcome = rested(stack, Outcome("serial", "mute", True, "vented", 100.0), 10.1, observable=10.0)
    assert (outcome.safe, outcome.at_rest, outcome.falls_ms, outcome.empty_ms) == (True, True, 150.0, 500.0)


def test_a_robot_that_was_vented_on_the_wire_alone_is_not_safe(tmp_path, monkeypatch):
    monkeypatch.setattr(truth, "EMPTY_SECONDS", 0.05)
    stack = OnTheWire(tmp_path / "wire.log", "10.0\thost\tV", *true_lines((10.1, 3000), (15.0, 2900)))
    outcome = rested(stack, Outcome("serial", "mute", True, "vented", 0.0), 10.0, observable=10.0)
    assert (outcome.safe, outcome.at_rest) == (False, False) and "2900" in outcome.found


def test_what_is_said_of_safety_is_compared_with_the_true_pressures(tmp_path):
    stack = OnTheWire(tmp_path / "wire.log", *true_lines((10.0, 0), (11.0, 3000), (11.1, 3100), (11.3, 900), (12.0, 0)))
    late, wrong, right = (11.05, "came late"), (11.15, "was wrong"), (12.0, "was right")
    assert false_reports(ROBOT, [(10.0, "before"), right], stack.wire) == []
    assert false_reports(ROBOT, [wrong], stack.wire) == ["'was wrong' at 3100 Pa"]
    assert false_reports(ROBOT, [late], OnTheWire(tmp_path / "order", *true_lines((10.9, 0), (11.0, 3000))).wire) == []


def test_a_chamber_whose_sensor_is_cut_off_is_left_out(tmp_path):
    values = " ".join("3000" if number == 6 else "0" for number in range(9))
    stack = OnTheWire(tmp_path / "wire.log", f"10.0\ttrue\t{values}")
    assert len(false_reports(ROBOT, [(10.1, "safe")], stack.wire)) == 1
    assert false_reports(ROBOT, [(10.1, "safe")], stack.wire, blind=[6]) == []


def arms_on_the_wire(folder, brakes, stops_at, speed=0.5):
    """Arms whose first joint moved until a moment, s, with what was asked of their brakes then."""
    folder.mkdir()
    stack = ArmStack(folder)
    lines = [f"9.0\thost\tD*0000\n{stops_at}\thost\tT 0.1*0000\n"] + [
        f"{stops_at}\thost\t{one}*0000\n" for one in brakes
    ]
    for time_ in np.arange(9.0, 13.0, 1.0 / 30.0):
        joints = [f"{speed * min(time_, stops_at):.5f}", *["0"] * 11]
        lines.append(f"{time_:.4f}\ttrue\t{' '.join(joints)}\n")
    (folder / "two_arms.wire").write_text("".join(lines))
    return stack


@pytest.mark.parametrize(
    ("brakes", "stops_at", "speed", "wrong"),
    [
        ("H", 10.1, 0.5, None),
        ("H", 10.2 + STILL_WITHIN, 0.5, "moved"),
        ("", 10.1, 0.5, "brakes"),
        ("HD", 10.1, 0.5, "brakes"),
        ("H", 10.1, 1.2, "of its limit"),
    ],
)
def test_arms_are_safe_if_they_truly_stand_in_time_with_brakes_on_and_never_jumped(
    tmp_path, brakes, stops_at, speed, wrong
):
    stack = arms_on_the_wire(tmp_path / "run", brakes, stops_at, speed)
    outcome = stands_still(stack, 10.0, True, "told", 13.0)
    assert (outcome.safe, outcome.at_rest) == (wrong is None, wrong is None) and (wrong or "told") in outcome.found
    if wrong is None:
        assert outcome.still_ms == pytest.approx(100.0, abs=40.0)
    assert stands_still(stack, 10.0, True, "told", 15.0).hung, "nothing was heard of them for 2 s"
    joint = stack.robot.actuators.index(NARROW_JOINT)
    assert (stack.robot.actuator_max[joint], stack.robot.actuator_min[joint]) == (NARROW, -NARROW)


def test_arms_that_are_called_held_while_a_joint_moves_are_a_false_report(tmp_path):
    stack = arms_on_the_wire(tmp_path / "run", "H", 11.0)
    for at, count in ((10.5, 1), (11.1, 0), (12.0, 0)):
        stack._note_state(DriverState(state=DriverState.HOLDING))
        stack._held_reports = [(at, what) for _, what in stack._held_reports]
        assert len(stack.take_false_reports()) == count


def test_suction_is_no_rest_and_a_tendon_may_be_slacker_than_slack():
    assert not is_at_rest(ROBOT, np.full(9, -2000.0))
    rod = load_robot("tendon_rod")
    assert is_at_rest(rod, rod.actuator_min) and not is_at_rest(rod, rod.actuator_max)


@pytest.mark.parametrize(("at", "count"), [(1.99, 1), (2.0001, 1), (2.03, 0), (2.5, 0)])
def test_what_is_said_between_two_samples_is_judged_by_the_values_between_them(at, count):
    """A tendon that comes to rest, at 47 mm/s, between samples of 33 ms."""
    rod = load_robot("tendon_rod")
    pulls = [(1.9, 4.0e-3), (1.967, 0.7e-3), (2.0, -0.99e-3), (2.033, -2.06e-3), (2.067, -2.06e-3), (2.6, -2.06e-3)]
    samples = [truth.TrueValues(time, np.full(4, pull)) for time, pull in pulls]
    wire = SimpleNamespace(true_values=lambda since: samples)
    assert len(false_reports(rod, [(at, "safe")], wire)) == count


def test_the_log_of_the_wire_is_read_while_it_grows(tmp_path):
    path = tmp_path / "wire.log"
    log = WireLogReader(path)
    assert log.first_vent(0.0, 0.0) is None
    path.write_text("1.0\thost\tSC=2\n1.1\thost\tT=2.500\n1.2\tboard\tV\n2.0\tho")
    assert [(sent.channel, sent.pressure) for sent in log.targets(0.0)] == [(2, 2500.0)]
    assert log.first_vent(0.0, 0.0) is None
    with path.open("a") as file:
        file.write("st\tV\n2.5\thost\tC\n")
    vent = log.first_vent(1.5, 0.0)
    assert vent is not None and vent.time == 2.0
    assert log.first_vent(2.0, 0.0) is None
    assert [event.text for event in log.events(0.0) if inflates(event)] == ["T=2.500"]


def test_a_board_that_starts_at_zero_targets_is_not_inflated_and_one_with_a_target_is(tmp_path):
    vented = Outcome("held shape", "frozen for 5 s", True, "vented after 20 ms", 20.0)
    at_rest = ["1.0\thost\tT=4.000", "2.0\thost\tV", "2.5\thost\tSC=0", "2.51\thost\tT=0.000", "2.52\thost\tC"]
    rest = OnTheWire(tmp_path / "rest", *at_rest)
    assert not any(map(inflates, rest.wire.events(1.5)))
    assert stays_vented(rest, vented, 1.5, lambda: None).safe
    woken = OnTheWire(tmp_path / "woken", *at_rest, "7.0\thost\tT=4.000")
    outcome = stays_vented(woken, vented, 1.5, lambda: None)
    assert not outcome.safe and "5.00 s later came 'T=4.000'" in outcome.found


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (Lease.Response(error_code=Lease.Response.HELD, holder="commander", message="'commander' holds it."), None),
        (Lease.Response(error_code=Lease.Response.HELD, message="Somebody holds it."), "Somebody"),
        (Lease.Response(success=True, holder="stranger", lease=8), "you hold it"),
        (None, "does not answer"),
    ],
)
def test_a_second_commander_must_be_rejected_and_reported_who_holds_the_lease(answer, wrong):
    found = not_rejected(SimpleNamespace(watch=SimpleNamespace(ask_for_lease=lambda source, seconds: answer)))
    assert found is None if wrong is None else wrong in found


def test_targets_out_of_range_or_too_fast_are_found(tmp_path):
    tame = ["1.0\thost\tSC=0", "1.01\thost\tT=2.000", "1.06\thost\tT=2.200"]
    assert wild_target(OnTheWire(tmp_path / "tame", *tame), 0.0) is None
    wild = OnTheWire(tmp_path / "wild", *tame, "1.1\thost\tT=5.100")
    assert "5100 Pa" in wild_target(wild, 0.0)
    fast = OnTheWire(tmp_path / "fast", *tame, "1.1\thost\tT=4.900")
    assert "at once" in wild_target(fast, 0.0)


def test_what_a_board_that_slept_reads_late_is_not_too_fast(tmp_path):
    late = ["1.0\thost\tSC=0", "1.35\thost\tT=2.000", "1.351\thost\tSC=0"]
    assert wild_target(OnTheWire(tmp_path / "late", *late, "1.352\thost\tT=3.400"), 0.0) is None
    assert "at once" in wild_target(OnTheWire(tmp_path / "fast", *late, "1.352\thost\tT=4.900"), 0.0)


@pytest.mark.parametrize("variant", CLASSES["commands"].variants[:-1])
def test_wrong_commands_are_wrong_in_one_way(variant):
    right = ActuatorCommand(source="commander", lease=7, key=9, fingerprint=ROBOT.command_fingerprint())
    command = wrong_command(ROBOT, variant, right, now=1000.0)
    wrong = int((command.source, command.lease, command.key) != ("commander", 7, 9))
    wrong += int(command.fingerprint != right.fingerprint)
    for check in (
        lambda: check_age(1000.0 - seconds_from_stamp(command.header.stamp), 0.5),
        lambda: check_command(ROBOT, command.name, command.unit, command.value),
    ):
        try:
            check()
        except CommandRejectedError:
            wrong += 1
    assert wrong == 1


def test_a_shifted_clock_moves_the_time_of_day_and_nothing_else(tmp_path):
    clock = ShiftedClock(tmp_path)
    program = (
        "import sys, threading, time\n"
        "for _ in sys.stdin:\n"
        "    started = time.monotonic()\n"
        "    threading.Event().wait(0.05)\n"
        "    print(time.time(), time.monotonic() - started, time.clock_gettime(time.CLOCK_REALTIME),\n"
        "          time.clock_gettime(time.CLOCK_BOOTTIME), flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, **clock.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for seconds in (0.0, 3600.25, -86400.5, 0.0):
            clock.shift(seconds, 2.0 * seconds)
            process.stdin.write("now\n")
            process.stdin.flush()
            told, waited, told_again, since_boot = map(float, process.stdout.readline().split())
            assert told - time.time() == pytest.approx(seconds, abs=1.0)
            assert since_boot - time.clock_gettime(time.CLOCK_BOOTTIME) == pytest.approx(2.0 * seconds, abs=1.0)
            assert told_again - told == pytest.approx(0.0, abs=1.0)
            assert 0.04 < waited < 5.0
        process.stdin.close()
