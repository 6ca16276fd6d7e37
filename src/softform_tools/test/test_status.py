"""The status of stacks that are well, at fault, half dead, elsewhere, or not there."""

import json
import os
import re
import threading
import time
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode

from softform_interfaces.msg import ActuatorState, DriverState
from softform_recording.record import background_recording
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.diagnostics import ERROR, OK, DiagnosticsPublisher, Health
from softform_tools import doctor
from softform_tools.cli_status import status as status_command
from softform_tools.status.observer import StackObserver
from softform_tools.status.screen import screen
from softform_tools.status.stack_status import (
    DiskStatus,
    DriverStatus,
    NodeStatus,
    RecorderStatus,
    StackStatus,
    TopicStatus,
    nothing_runs,
)

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
    waiting = replace(WELL, driver=DriverStatus("safe", "ready"))
    assert "lease     nobody holds it" in click.unstyle(screen(waiting, 100))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"driver": DriverStatus("fault", "c3 leaks; call reset")}, "driver is at fault: c3 leaks"),
        ({"driver": DriverStatus("offline", "no board")}, "driver is offline: no board"),
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


def test_a_warning_is_shown_and_is_no_trouble():
    warned = replace(WELL, nodes=(NodeStatus("scanner", "active", "WARN", "few points"),))
    assert not warned.troubles and "few points" in screen(warned, 100)


def test_lines_fit_the_terminal():
    long = replace(WELL, nodes=(NodeStatus("scanner", "active", "WARN", 30 * "few points\n"),))
    lines = [line for line in click.unstyle(screen(long, 60)).splitlines() if "few" in line]
    assert len(lines) == 1 and len(lines[0]) <= 60


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
        states.publish(
            DriverState(state=DriverState.RUNNING, reason="follows commands", holder="planner", held_for=7.0)
        )
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
        states.publish(DriverState(state=DriverState.FAULT, reason="the board is gone"))
        hangs.set()
        spinning.join()
        wait_for(lambda: "scanner does not answer" in observer.status().troubles)
        wait_for(lambda: "actuation: the board is gone" in observer.status().troubles)
        assert "the driver is at fault: the board is gone" in observer.status().troubles
        # A new participant may see the observer, which is in the root, before it sees the others.
        wait_for(lambda: f"--namespace {name}" in str(CliRunner().invoke(status_command, NOWHERE).exception))
        scanner.destroy_node()
