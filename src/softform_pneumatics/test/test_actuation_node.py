"""The node as its own process against a scripted board: life cycle, topics, and every way to be killed in motion."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from std_srvs.srv import Trigger

from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorState, Asked, DriverState
from softform_interfaces.srv import Reset
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease
from softform_ros.service_calls import call_service, wait_until_answered

WaitUntil = Callable[..., None]
NAMESPACE = "/softform"
LARGEST_RESIDENT = 150 * 2**20

COMMANDER_PROGRAM = """
import time
from softform_core.robots import load_robot
from softform_ros.asked import EpochWatch
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease
with BackgroundNode("commander", "/softform") as node:
    lease = CommandLease(node, load_robot("membrane"))
    lease.acquire(EpochWatch(node).asked().epoch)
    while True:
        lease.send([3000.0] * 9)
        time.sleep(0.1)
"""


class Rig:
    """The node's process, and a ROS node that watches it and changes its state."""

    def __init__(self, port: str, folder: Path, *arguments: str) -> None:
        self._background = BackgroundNode("watcher", NAMESPACE)
        self.node = self._background.__enter__()
        self.pressures: list[ActuatorState] = []
        self.ages: list[float] = []
        self.states: list[DriverState] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.node.create_subscription(ActuatorState, "actuator_state", self._on_readings, qos.ACTUATOR_STATE_READER)
        self.node.create_subscription(DriverState, "driver_state", self.states.append, qos.LATCHED_STATE)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self.diagnostics.append, qos.DIAGNOSTICS)
        self.commander: subprocess.Popen[bytes] | None = None
        self._commands_end, self._commanding = threading.Event(), threading.Thread(target=self._command)
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "softform_actuation.actuation_node",
                "--ros-args",
                "-r",
                f"__ns:={NAMESPACE}",
                "-p",
                f"port:={port}",
                "-p",
                "plant:=none",  # the scripted board is none that was identified
                *arguments,
            ],
            env=os.environ | {"SOFTFORM_STATE": str(folder)},
        )

    def _on_readings(self, message: ActuatorState) -> None:
        stamp = message.header.stamp
        self.ages.append(time.time() - stamp.sec - 1e-9 * stamp.nanosec)
        self.pressures.append(message)

    def change_state(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self._call(ChangeState, "actuation/change_state", request).success)

    def call_change_state(self, transition: int) -> None:
        """Without waiting for the answer."""
        client = self.node.create_client(ChangeState, "actuation/change_state")
        assert wait_until_answered(self.node, "actuation", 20.0) and client.wait_for_service(20.0)
        client.call_async(ChangeState.Request(transition=Transition(id=transition)))

    def trigger(self, name: str) -> Any:
        if name == "reset":
            asked = Asked(stamp=self.node.get_clock().now().to_msg(), epoch=self.states[-1].epoch)
            return self._call(Reset, name, Reset.Request(asked=asked))
        return self._call(Trigger, name, Trigger.Request())

    def _call(self, kind: Any, service: str, request: Any) -> Any:
        server = "actuation_stop" if service == "stop" else "actuation"
        answer = call_service(self.node, server, kind, service, request, 60.0)
        assert answer is not None, f"{service} was not answered"
        return answer

    def _command(self) -> None:
        lease = CommandLease(self.node, load_robot("membrane"))
        lease.acquire(self.states[-1].epoch)
        while not self._commands_end.wait(0.1):
            lease.send([3000.0] * 9)

    def command(self) -> None:
        """Command 3 kPa in each chamber from now on, from this process."""
        self._commanding.start()

    def start_commander(self) -> None:
        """Command the same from a process that can be killed."""
        self.commander = subprocess.Popen([sys.executable, "-c", COMMANDER_PROGRAM])

    def close(self) -> None:
        for process in (self.commander, self.process):
            if process is not None:
                process.kill()
                process.wait()
        self._commands_end.set()
        if self._commanding.is_alive():
            self._commanding.join()
        self._background.close()


@pytest.fixture
def rig(scripted_board: Any, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(scripted_board.path, tmp_path)
    yield rig
    rig.close()


@pytest.fixture
def moving_rig(scripted_board: Any, rig: Rig, wait_until: WaitUntil) -> Rig:
    assert rig.change_state(Transition.TRANSITION_CONFIGURE)
    assert rig.change_state(Transition.TRANSITION_ACTIVATE)
    rig.command()
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 2.0), 20.0)
    return rig


def is_vented(board: Any) -> bool:
    return not board.runs and bool(abs(board.pressures).max() < 0.1)


def test_a_whole_life(scripted_board: Any, rig: Rig, wait_until: WaitUntil) -> None:
    wait_until(lambda: bool(rig.states) and rig.states[-1].state == DriverState.OFFLINE)
    assert rig.change_state(Transition.TRANSITION_CONFIGURE)
    wait_until(lambda: rig.states[-1].state == DriverState.SAFE)
    assert rig.change_state(Transition.TRANSITION_ACTIVATE)
    wait_until(lambda: len(rig.pressures) > 5)
    assert rig.pressures[-1].name == [f"c{i + 1}" for i in range(9)]
    assert set(rig.pressures[-1].status) == {ActuatorState.SAFE}

    rig.command()
    wait_until(lambda: set(rig.pressures[-1].status) == {ActuatorState.SETTLED}, 20.0)
    assert rig.states[-1].state == DriverState.RUNNING
    assert max(abs(pressure - 3000.0) for pressure in rig.pressures[-1].value) < 100.0
    assert all(age > 0.0 for age in rig.ages)  # stamped when measured, before it was received
    assert psutil.Process(rig.process.pid).memory_info().rss < LARGEST_RESIDENT
    modules = {mapping.path for mapping in psutil.Process(rig.process.pid).memory_maps()}
    assert not any(f"-packages/{name}/" in path for path in modules for name in ("torch", "open3d", "scipy"))
    wait_until(lambda: any(s.name == "/softform/actuation" for m in rig.diagnostics for s in m.status))
    status = [s for m in rig.diagnostics for s in m.status if s.name == "/softform/actuation"][-1]
    assert scripted_board.path in status.hardware_id
    told = {value.key for value in status.values}
    assert {"stream rate (Hz)", "loop period p99 (ms)", "command to wire p99 (ms)", "bytes dropped", "leaks"} <= told

    stopped = rig.trigger("stop")
    assert stopped.success
    wait_until(lambda: is_vented(scripted_board))
    wait_until(lambda: rig.states[-1].state == DriverState.FAULT)
    reset = rig.trigger("reset")
    assert reset.success
    wait_until(lambda: rig.states[-1].state == DriverState.SAFE)
    time.sleep(1.0)  # the commander goes on, and its lease is dead
    assert rig.states[-1].state == DriverState.SAFE and bool(abs(scripted_board.pressures).max() < 0.1)
    assert not rig.states[-1].holder and rig.states[-1].lease > 0

    assert rig.change_state(Transition.TRANSITION_DEACTIVATE)
    assert not scripted_board.runs
    assert rig.change_state(Transition.TRANSITION_CLEANUP)
    wait_until(lambda: rig.states[-1].state == DriverState.OFFLINE)


def test_a_stop_gets_through_while_the_sensors_are_calibrated(
    scripted_board: Any, rig: Rig, wait_until: WaitUntil
) -> None:
    assert rig.change_state(Transition.TRANSITION_CONFIGURE)
    wait_until(lambda: bool(rig.states) and rig.states[-1].state == DriverState.SAFE)
    answers: list[Trigger.Response] = []
    calibrating = threading.Thread(target=lambda: answers.append(rig.trigger("calibrate")))
    calibrating.start()
    wait_until(lambda: scripted_board.stopped and scripted_board.runs, 20.0)
    assert "under way" in rig.trigger("reset").message
    assert rig.trigger("stop").success
    calibrating.join()
    assert not answers[0].success and "interrupted" in answers[0].message
    wait_until(lambda: rig.states[-1].state == DriverState.FAULT)
    assert is_vented(scripted_board)


def test_kill_9_of_the_commander_vents_and_a_pulled_cable_is_a_fault(
    scripted_board: Any, rig: Rig, wait_until: WaitUntil
) -> None:
    assert rig.change_state(Transition.TRANSITION_CONFIGURE)
    assert rig.change_state(Transition.TRANSITION_ACTIVATE)
    rig.start_commander()
    assert rig.commander is not None
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 2.0), 20.0)
    before = time.monotonic()
    rig.commander.kill()
    rig.commander.wait()
    wait_until(lambda: scripted_board.requests_since(before, "V") >= 1)
    wait_until(lambda: bool(abs(scripted_board.pressures).max() < 0.1))
    wait_until(lambda: "no command of 'commander' came" in rig.states[-1].reason)

    wait_until(lambda: scripted_board.runs)
    rig.command()
    wait_until(lambda: bool(scripted_board.pressures[:9].min() > 1.0))
    scripted_board.unplug()
    wait_until(lambda: rig.states[-1].state == DriverState.FAULT)
    assert "is lost" in rig.states[-1].reason
    response = rig.trigger("reset")
    assert not response.success and response.message
    assert rig.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_motion_vents_and_leaves_no_process(
    scripted_board: Any, moving_rig: Rig, wait_until: WaitUntil, number: signal.Signals
) -> None:
    children = psutil.Process(moving_rig.process.pid).children()
    moving_rig.process.send_signal(number)
    assert moving_rig.process.wait(10.0) == 0
    wait_until(lambda: is_vented(scripted_board))
    assert children and not any(child.is_running() for child in children)


def test_kill_9_of_the_node_in_motion_vents(scripted_board: Any, moving_rig: Rig, wait_until: WaitUntil) -> None:
    children = psutil.Process(moving_rig.process.pid).children()
    moving_rig.process.kill()
    wait_until(lambda: is_vented(scripted_board))
    wait_until(lambda: not any(child.is_running() for child in children))


def test_a_robot_that_the_board_cannot_drive_is_rejected(scripted_board: Any, rig: Rig, wait_until: WaitUntil) -> None:
    scripted_board.behave_as_shipped()
    assert rig.change_state(Transition.TRANSITION_CONFIGURE)
    assert not any(text.startswith("T=") for _, text in scripted_board.requests)  # configuring moves no air
    assert not rig.change_state(Transition.TRANSITION_ACTIVATE)
    wait_until(lambda: any("of the 9 independent chambers" in s.message for m in rig.diagnostics for s in m.status))
    assert not scripted_board.runs


def test_simulated_time_is_rejected(scripted_board: Any, tmp_path: Path, wait_until: WaitUntil) -> None:
    rig = Rig(scripted_board.path, tmp_path, "-p", "use_sim_time:=true")
    try:
        assert not rig.change_state(Transition.TRANSITION_CONFIGURE)
        wait_until(lambda: any("use_sim_time" in s.message for m in rig.diagnostics for s in m.status))
    finally:
        rig.close()


@pytest.mark.parametrize("how", ["stop", "SIGINT"])
def test_a_stop_and_a_signal_act_at_once_while_the_chambers_are_tested(
    scripted_board: Any, rig: Rig, wait_until: WaitUntil, how: str
) -> None:
    assert rig.change_state(Transition.TRANSITION_CONFIGURE)
    scripted_board.regulates[:] = False  # so that the test takes its time
    rig.call_change_state(Transition.TRANSITION_ACTIVATE)
    wait_until(lambda: scripted_board.runs, 20.0)
    before = time.monotonic()
    if how == "stop":
        assert rig.trigger("stop").success
    else:
        rig.process.send_signal(getattr(signal, how))
    wait_until(lambda: scripted_board.requests_since(before, "V") >= 1, 1.5)
    wait_until(lambda: is_vented(scripted_board))
    if how == "stop":
        wait_until(lambda: rig.states[-1].state == DriverState.FAULT)
    else:
        assert rig.process.wait(10.0) == 0


@pytest.mark.parametrize("how", ["stop", "SIGTERM"])
def test_a_stop_and_a_signal_act_at_once_while_a_silent_board_is_opened(
    scripted_board: Any, rig: Rig, wait_until: WaitUntil, how: str
) -> None:
    scripted_board.silent = True
    rig.call_change_state(Transition.TRANSITION_CONFIGURE)
    wait_until(lambda: bool(scripted_board.requests), 20.0)
    before = time.monotonic()
    if how == "stop":
        answer = rig.trigger("stop")
        assert answer.success and "moves nothing" in answer.message
        assert time.monotonic() - before < 2.0
        scripted_board.silent = False
        wait_until(lambda: any("interrupted" in s.message for m in rig.diagnostics for s in m.status), 20.0)
        assert rig.change_state(Transition.TRANSITION_CONFIGURE)
        wait_until(lambda: rig.states[-1].state == DriverState.FAULT and "Latched before" in rig.states[-1].reason)
    else:
        rig.process.terminate()
        assert rig.process.wait(10.0) == 0
        assert time.monotonic() - before < 4.0
