"""The status of stacks that are well, at fault, half dead, elsewhere, or not there."""

import json
import math
import os
import re
import threading
import time
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode

from softform_interfaces.msg import ActuatorState, DriverState
from softform_recording.record import background_recording
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.diagnostics import ERROR, OK, DiagnosticsPublisher, Health
from softform_tools import doctor, ros_checks
from softform_tools.cli_status import screen
from softform_tools.cli_status import status as status_command
from softform_tools.ros_checks import HeardDriver
from softform_tools.status.observer import StackObserver, driver_status
from softform_tools.status.stack_status import (
    ActuatorRest,
    DiskStatus,
    DriverStatus,
    NodeStatus,
    RecorderStatus,
    StackStatus,
    TopicStatus,
    made_printable,
    nothing_runs,
    rest_of_actuators,
)

AT_REST = rest_of_actuators(["c1", "c2"], [True, True], [True, True], [True, True], [3.0, -2.0])

WELL = StackStatus(
    namespace="/softform",
    domain=0,
    bringup="active",
    driver=DriverStatus("running", "follows commands", "planner", 12.0),
    motors={"motor 1 (t1)": "XC330-T288, 11.1 V, 30 °C, 20 mA", "bus": "all motors answer"},
    held={"inverse_kinematics": "37 of 600"},
    robots=("membrane",),
    models={"shape_predictor": "rig_default"},
    nodes=(NodeStatus("actuation", "active", "OK", "running"), NodeStatus("bringup_manager", "", "OK", "active")),
    topics=(TopicStatus("actuator_state", 1, 50.02, 0.012), TopicStatus("target_shape", 1, 0.0, None)),
    recorders=(RecorderStatus("bag_recorder", "runs/bag", 1200, 0),),
    disks=(DiskStatus("runs", 50 * 10**9, 10**11),),
)


def test_a_healthy_stack_is_reported_with_rates_and_ages():
    text = click.unstyle(screen(WELL, 100))
    assert "all is well" in text and not WELL.troubles and WELL.as_dict()["healthy"]
    for said in (
        "ROS_DOMAIN_ID 0: active",
        "driver    running: follows commands",
        "lease     'planner' has held it for 12 s",
        "held      inverse_kinematics has held its shape for 37 of 600 s without renewal",
        "motor 1 (t1) XC330-T288, 11.1 V, 30 °C, 20 mA",
        "bus       all motors answer",
        "membrane; sim-to-real model: rig_default",
        "1200 messages, none missing, into runs/bag",
        "50.0 GB left",
    ):
        assert said in text
    assert re.search(r"actuator_state +50\.0  12 ms ago", text) and re.search(r"target_shape +-  none yet", text)
    json.dumps(WELL.as_dict())
    waiting = replace(WELL, driver=DriverStatus("safe", "ready", fingerprint="5f3a", actuators=AT_REST))
    text = click.unstyle(screen(waiting, 100))
    assert "lease     nobody holds it" in text and "all is well" in text
    assert "c1, c2: asked, acknowledged, measured at rest" in text and "membrane (5f3a)" in text


def test_a_past_that_is_not_known_is_told_with_the_way_out_of_it():
    for known, said in ((False, True), (True, False), (None, False)):
        told = click.unstyle(screen(replace(WELL, driver=replace(WELL.driver, past_known=known)), 100))
        assert ("past      not known" in told and "./softform home" in told) is said and "all is well" in told


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"driver": DriverStatus("fault", "c3 leaks; call reset", actuators=AT_REST)}, "driver is at fault: c3 leaks"),
        ({"driver": DriverStatus("offline", "no board")}, "driver is offline: no board"),
        ({"driver": DriverStatus("in state 77", "?", actuators=AT_REST)}, "the driver is in state 77"),
        ({"driver": DriverStatus("safe", "ready")}, "no actuator is known to be at rest"),
        ({"driver": replace(WELL.driver, silent_for=7.0)}, "said nothing for 7 s: its state is unknown"),
        ({"driver": DriverStatus("safe", "", actuators=AT_REST, silent_for=7.0)}, "no actuator is known to be at rest"),
        ({"driver": None}, "the driver's state is unknown"),
        ({"bringup": "degraded: scanner does not answer"}, "the stack is degraded: scanner"),
        ({"nodes": (NodeStatus("scanner", "gone", "STALE", "silent"),)}, "scanner is gone"),
        ({"nodes": (NodeStatus("scanner", "no answer", "OK", ""),)}, "scanner does not answer"),
        ({"nodes": (NodeStatus("scanner", "inactive", "OK", ""),)}, "scanner is inactive"),
        ({"nodes": (NodeStatus("scanner", "active", "ERROR", "no scans"),)}, "scanner: no scans"),
        ({"recorders": (RecorderStatus("bag_recorder", "runs/bag", 10, 3),)}, "3 messages are missing in runs/bag"),
        ({"robots": ("membrane", "planar_fingers")}, "different robots: membrane, planar_fingers"),
        ({"disks": (DiskStatus("runs", 10**8, 10**11),)}, "the disk of runs has 100 MB left"),
    ],
)
def test_each_trouble_is_named(change, said):
    ill = replace(WELL, **change)
    assert len(ill.troubles) == 1 and said in ill.troubles[0]
    assert said in " ".join(screen(ill, 120).split()) and "all is well" not in screen(ill, 120)


def partly_at_rest(state, **others):
    """Of c2 the device has acknowledged nothing, c3 was measured above rest, of c4 the driver says nothing at all."""
    rest = rest_of_actuators(
        ["c1", "c2", "c3", "c4"], [True, True, True], [True, False, True], [True, False, False], [2.0, math.nan, 3279.0]
    )
    return replace(WELL, driver=DriverStatus(state, "a valve is stuck", actuators=rest, **others))


@pytest.mark.parametrize("state", ["safe", "fault", "offline", "making safe"])
def test_what_is_not_measured_at_rest_is_unsafe(state):
    status = partly_at_rest(state)
    assert status.troubles[0] == (
        "not measured at rest: c2 (nothing measured), c3 (3279 measured), c4 (nothing measured)"
    )
    assert not status.as_dict()["healthy"]
    text = click.unstyle(screen(status, 120))
    for said in (
        "c1: asked, acknowledged, measured at rest",
        "c2 (nothing measured): asked, NOT acknowledged, NOT measured at rest",
        "c3 (3279 measured): asked, acknowledged, NOT measured at rest",
        "c4 (nothing measured): NOT asked, NOT acknowledged, NOT measured at rest",
    ):
        assert said in text
    assert ("KEEP AWAY, THE ROBOT IS NOT KNOWN TO BE SAFE: not measured at rest: c2" in text) == (state == "fault")
    json.dumps(status.as_dict(), allow_nan=False)


@pytest.mark.parametrize("state", ["running", "holding"])
def test_a_robot_that_is_driven_or_held_needs_not_be_at_rest(state):
    status = partly_at_rest(state, warnings=("no dead-man",))
    assert not status.troubles
    text = click.unstyle(screen(status, 120))
    assert ("it is not safe to touch" in text) == (state == "holding") and "warning   no dead-man" in text


def test_all_faults_are_named_and_nothing_promises_that_it_stays_safe():
    status = partly_at_rest("fault", faults=("c3 leaks", "the board is gone"))
    assert "the driver is at fault: c3 leaks; the board is gone" in status.troubles
    text = click.unstyle(screen(status, 120))
    assert "fault     c3 leaks" in text and "it takes no command until you call /softform/reset" in text
    assert "stays safe" not in text


def test_strings_of_others_are_harmless_to_a_terminal():
    evil = "\x1b]0;owned\x07\x1b[2J\u202egnihton\r\x9b31m" + 5000 * "x"
    status = made_printable(
        replace(
            WELL,
            driver=DriverStatus("safe", evil, evil, 1.0, evil, (evil,), (evil,), (replace(AT_REST[0], name=evil),)),
            motors={evil: evil},
            nodes=(NodeStatus(evil, "active", "ERROR", evil),),
            bringup=evil,
        )
    )
    shown = click.unstyle(screen(status, 10_000)) + json.dumps(status.as_dict(), ensure_ascii=False)
    assert all(character.isprintable() for character in shown.replace("\n", ""))
    assert 700 * "x" not in shown and status.nodes[0].state == "active" and status.recorders == WELL.recorders


def test_a_state_of_the_driver_is_read_whatever_it_holds():
    message = DriverState(
        state=200, actuator=["a", "b"], asked=[True], at_rest=[True, True, True], rest_value=[math.inf], faults=["x"]
    )
    status = driver_status(message)
    assert status.state == "in state 200" and status.faults == ("x",)
    assert driver_status(DriverState(state=DriverState.MAKING_SAFE)).state == "making safe"
    assert status.actuators == (ActuatorRest("a", True, False, True), ActuatorRest("b", False, False, True))


def test_a_warning_is_shown_and_is_no_trouble():
    warned = replace(WELL, nodes=(NodeStatus("scanner", "active", "WARN", "few points"),))
    shown = screen(warned, 100)
    assert not warned.troubles and "few points" in shown
    assert "no trouble, but warnings of scanner" in shown and "all is well" not in shown


def test_without_a_manager_not_all_is_well():
    alone = replace(WELL, bringup="")
    assert "no bring-up manager watches" in screen(alone, 100) and "all is well" not in screen(alone, 100)


@pytest.mark.parametrize("width", [60, 100])
def test_what_is_wrong_is_shown_whole_in_lines_that_fit_the_terminal(width):
    reason = "Motive at 127.0.0.1 speaks NatNet 4.9, and versions 3.0 to 4.2 are read.\n" + "Install another one. " * 9
    long = replace(WELL, nodes=(NodeStatus("motion_capture", "active", "ERROR", reason),))
    shown = click.unstyle(screen(long, width))
    assert all(len(line) <= max(width, 64) for line in shown.partition("health")[2].splitlines())
    assert " ".join(shown.split()).count(" ".join(reason.split())) == 2  # of the node, and of what is to be done


@pytest.mark.parametrize(
    ("elsewhere_here", "domains", "step"),
    [
        ([], [], "./softform launch softform"),
        (["/lab"], [5], "--namespace /lab"),
        ([], [5, 7], "ROS_DOMAIN_ID=5 ./softform status (or 7)"),
    ],
)
def test_what_to_do_when_nothing_runs(elsewhere_here, domains, step):
    error = nothing_runs("/softform", 0, elsewhere_here, domains)
    assert "No node runs in /softform (ROS_DOMAIN_ID 0)" in error.message and step in error.next_step


def wait_for(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Silent(LifecycleNode):
    """A life-cycle node whose process hangs when `executor` is not spun."""


BROKEN = "A motor is missing: id 1 answers, 2 does not. Look at the plugs, the supply and the id of motor 2."
MOTORS = {"loop": 1, "motor 1 (t1)": "XC330-T288", "bus": BROKEN}
HOLDS = {"holding a shape": True, "held without renewal (s)": "37 of 600"}
NOWHERE = ["--namespace", "nowhere"]


def test_a_running_stack_is_observed(tmp_path):
    """A driver that publishes, a node with a life cycle that hangs, and a recorder, from another participant."""
    name = f"/status_{os.getpid()}_{time.monotonic_ns()}"
    with BackgroundNode("observer", "") as node, BackgroundNode("actuation", name) as driver:
        observer = StackObserver(node, name)
        faults = []
        DiagnosticsPublisher(
            driver, "openpneu", lambda: Health(ERROR, faults[0]) if faults else Health(OK, "running", MOTORS | HOLDS)
        )
        states = driver.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        said = [DriverState(state=DriverState.RUNNING, reason="follows commands", holder="planner", held_for=7.0)]
        driver.create_timer(0.2, lambda: states.publish(said[-1]))
        measured = driver.create_publisher(ActuatorState, "actuator_state", qos.ACTUATOR_STATE)
        driver.create_timer(0.02, lambda: measured.publish(ActuatorState()))
        scanner = Silent("scanner", namespace=name, context=driver.context)
        executor, hangs = SingleThreadedExecutor(context=driver.context), threading.Event()
        executor.add_node(scanner)

        def spin():
            while not hangs.is_set():
                executor.spin_once(timeout_sec=0.05)

        spinning = threading.Thread(target=spin)
        spinning.start()
        with background_recording(["actuator_state"], tmp_path / "bag", name):
            wait_for(lambda: observer.status().recorders)
            wait_for(lambda: "unconfigured" in {one.state for one in observer.status().nodes})
            seen = observer.status()
        nodes = {one.name: one for one in seen.nodes}
        assert (
            seen.driver == DriverStatus("running", "follows commands", "planner", 7.0) and name in observer.namespaces()
        )
        assert seen.held == {"actuation": "37 of 600"}
        assert seen.motors == {"motor 1 (t1)": "XC330-T288", "bus": BROKEN}
        found = list(doctor.check_drivers())
        assert [one.message for one in found if one.level is doctor.Level.FAIL] == [f"{name}/actuation: bus: {BROKEN}"]
        assert any(
            f"{name}/actuation is running" in one.message and "'planner' has held it for 7 s" in one.message
            for one in found
        )
        assert nodes["actuation"] == NodeStatus("actuation", "", "OK", "running")
        (topic,) = [one for one in seen.topics if one.name == "actuator_state"]
        assert 5.0 < topic.rate < 60.0 and topic.age < 5.0 and topic.publishers == 1
        assert seen.recorders[0].bag == str(tmp_path / "bag") and seen.troubles == ["scanner is unconfigured"]
        result = CliRunner().invoke(status_command, ["--namespace", name, "--json"])
        assert result.exit_code == 1 and json.loads(result.output)["troubles"] == ["scanner is unconfigured"]
        faults.append("the board is gone")
        said.append(
            DriverState(state=DriverState.FAULT, reason="the board is gone", actuator=["c1"], rest_value=[3279.0])
        )
        hangs.set()
        spinning.join()
        wait_for(lambda: "scanner does not answer" in observer.status().troubles)
        wait_for(lambda: "actuation: the board is gone" in observer.status().troubles)
        assert "the driver is at fault: the board is gone" in observer.status().troubles
        assert observer.status().troubles[0] == "not measured at rest: c1 (3279 measured)"
        result = CliRunner().invoke(status_command, ["--namespace", name])
        assert result.exit_code == 1 and "KEEP AWAY" in result.output
        said[:] = [DriverState(state=DriverState.SAFE)]
        wait_for(lambda: "no actuator is known to be at rest" in observer.status().troubles)
        # A new participant may see the observer, which is in the root, before it sees the others.
        wait_for(lambda: f"--namespace {name}" in str(CliRunner().invoke(status_command, NOWHERE).exception))
        scanner.destroy_node()


def test_what_anybody_announces_is_kept_within_bounds():
    """Of other namespaces, under endless names, in states that nobody knows, with escapes for terminals."""
    observer = StackObserver.__new__(StackObserver)
    observer._namespace, observer._reports = "/softform", {}
    array = DiagnosticArray(status=[DiagnosticStatus(name=f"/softform/n{i}") for i in range(9000)])
    array.status.insert(0, DiagnosticStatus(name="/other/actuation"))
    observer._note_diagnostics(array)
    observer._note_diagnostics(DiagnosticArray(status=[DiagnosticStatus(name="/softform/n7", message="news")]))
    assert len(observer._reports) == 500 and "/other/actuation" not in observer._reports
    assert observer._reports["/softform/n7"].message == "news"


def test_a_driver_that_is_not_measured_at_rest_fails_the_doctor(monkeypatch):
    heard = HeardDriver(driver_status(DriverState(state=DriverState.FAULT, reason="leaks", actuator=["c1"])))
    monkeypatch.setattr(ros_checks, "drivers_heard", lambda: {"/softform/actuation": heard})
    (finding,) = doctor.check_drivers()
    assert finding.level is doctor.Level.FAIL and "Cut its supply: not measured at rest: c1" in finding.remedy
    heard.status = driver_status(DriverState(state=DriverState.RUNNING, actuator=["c1"]))
    assert [one.level for one in doctor.check_drivers()] == [doctor.Level.OK]


def test_drivers_that_are_heard_do_nothing_to_a_terminal_whatever_their_state():
    name = f"/heard_{os.getpid()}_{time.monotonic_ns()}"
    with BackgroundNode("actuation", name) as driver:
        states = driver.create_publisher(DriverState, "driver_state", qos.LATCHED_STATE)
        states.publish(DriverState(state=77, reason="\x1b[2J"))
        status = ros_checks.drivers_heard()[f"{name}/actuation"].status
    assert (status.state, status.reason) == ("in state 77", "\ufffd[2J")
