"""Under `stop` nothing but `reset` lets air in again: a state machine on the real driver and inverse-kinematics nodes.

The oracle is the emulated board: requests that arrive on its wire, and the true pressures of its channels.
`SOFTFORM_STOP_EXAMPLES=200 ./softform test tests/test_stop_reset.py` runs it long, each time with other sequences.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from std_srvs.srv import Trigger

from softform_bringup.lifecycle_manager import BringUpError, LifecycleManager, State, Step
from softform_bringup.remote_lifecycle import RemoteLifecycleNode
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_ik.reach.goal import Mode, ReachGoal
from softform_ik.reach.messages import goal_to_message
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import ChamberPressures, DriverState
from softform_rig.firmware import Firmware
from softform_rig.plant import load_plant
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import cloud_from_points

EXAMPLES = int(os.environ.get("SOFTFORM_STOP_EXAMPLES", "0"))
SHORT_EXAMPLES, SHORT_STEPS = 3, 6
ROBOT = load_robot("membrane")
HELD = 3000.0  # Pa
VENTING_SECONDS = 1.0
LEFT_AFTER_VENTING = 0.15  # kPa
STALE = np.full(ROBOT.degrees_of_freedom, HELD)
ODD_PRESSURES = {
    "nan": STALE * np.nan,
    "too high": STALE * 1e3,
    "too few": STALE[:3],
    "zero": STALE * 0.0,
    "the range's top": np.asarray(ROBOT.pressure_max),
}
DRIVER, PLANNER = "pneumatics", "inverse_kinematics"
MODULES = {DRIVER: "softform_pneumatics.pneumatics_node", PLANNER: "softform_ik.inverse_kinematics_node"}


class WatchedBoard(Firmware):
    """The emulated board, which notes whatever would let air in while it is guarded."""

    def __init__(self):
        super().__init__(load_plant())
        self.guarded_since, self.breaches, self._line = None, [], b""

    def receive(self, data, now):
        *requests, self._line = (self._line + data).split(b"\r\n")
        if self.guarded_since is not None:
            self.breaches += [
                request for request in requests if request == b"C" or (request[:2] == b"T=" and float(request[2:]) != 0)
            ]
        super().receive(data, now)

    def advance(self, now):
        super().advance(now)
        guarded = self.guarded_since
        if guarded is not None and now > guarded + VENTING_SECONDS:
            highest = float(np.abs(self.pressures()).max())
            if highest > LEFT_AFTER_VENTING:
                self.breaches.append(f"{highest:.2f} kPa")


class Stack:
    """Driver and planner in processes of their own, and a commander that never tires."""

    def __init__(self, folder):
        self.folder = folder
        self.board = WatchedBoard()
        self.terminal = PseudoTerminal(self.board, folder / "openpneu")
        self.processes, self.states = {}, []
        self._background = BackgroundNode("stop_reset", "/softform")
        self._ended = threading.Event()

    def __enter__(self):
        self.terminal.start()
        for name in MODULES:
            self.start(name)
        node = self.node = self._background.__enter__()
        self.commands = node.create_publisher(ChamberPressures, "pressure_command", qos.PRESSURE_COMMAND)
        self.targets = node.create_publisher(*self._topic("target_shape"), qos.TARGET_SHAPE)
        node.create_subscription(DriverState, "driver_state", self.states.append, qos.LATCHED_STATE)
        self._clients = {}
        self.remote = {
            name: RemoteLifecycleNode(node, name, lambda reporter: "it says so", lambda: False) for name in MODULES
        }
        self._commander = threading.Thread(target=self._command_for_ever, daemon=True)
        self._commander.start()
        return self

    def __exit__(self, *error):
        self._ended.set()
        self._commander.join()
        self._background.__exit__(*error)
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.terminal.stop(1.0)

    @staticmethod
    def _topic(name):
        message = cloud_from_points(np.zeros((1, 3)), "base_link", DriverState().header.stamp)
        return type(message), name

    def _command_for_ever(self):
        while not self._ended.wait(0.05):
            self.commands.publish(ChamberPressures(name=ROBOT.chambers, pressure=STALE.tolist()))

    def start(self, name):
        words = [sys.executable, "-m", MODULES[name], "--ros-args", "-r", "__ns:=/softform"]
        if name == DRIVER:
            words += ["-p", f"port:={self.folder / 'openpneu'}"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)

    def end(self, name, number):
        self.processes[name].send_signal(number)
        self.processes[name].wait(20.0)

    def call(self, kind, name, request, attempts=5):
        """The answer, or None. Asked again each second: what went to a process that was just killed is lost."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        client, answered = self._clients[name], threading.Event()
        for _ in range(attempts):
            if client.wait_for_service(1.0):
                future = client.call_async(request)
                future.add_done_callback(lambda _: answered.set())
                if answered.wait(8.0 if kind is Trigger else 1.0):
                    return future.result()
        return None

    def trigger(self, name):
        return self.call(Trigger, name, Trigger.Request())

    def bring_up(self, name):
        """Configure and activate as far as the node lets itself be."""
        with suppress(BringUpError):
            LifecycleManager([self.remote[name]], lambda line: None, 20.0, 20.0, lambda: False).bring_up()

    def wait_until(self, condition, what, seconds=20.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {self.states[-1:]}\n{self.log(DRIVER)[-3000:]}"
            time.sleep(0.01)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def pressurise(self):
        """Back from whatever was done: with `reset`, the commander moves the robot."""
        self.board.guarded_since = None
        if self.terminal._master is None:
            self.terminal.start()
        if self.processes[DRIVER].poll() is not None:
            self.start(DRIVER)
        self.bring_up(DRIVER)
        answer = self.trigger("reset")
        assert answer is not None and answer.success, f"{answer}\n{self.log(DRIVER)[-3000:]}"
        self.bring_up(DRIVER)
        channels = ROBOT.board.channels
        self.wait_until(lambda: self.board.pressures()[channels].min() > 1.0, "a reset robot does not move")

    def stop(self):
        answer = self.trigger("stop")
        assert answer is not None and answer.success, answer
        self.board.breaches.clear()
        self.board.guarded_since = time.monotonic()


@pytest.fixture(scope="module")
def stack(ros_domain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTFORM_RUNS", str(folder))
        with Stack(folder) as running:
            yield running


def test_no_restart_forgets_a_stop(stack):
    stack.pressurise()
    stack.stop()
    stack.end(DRIVER, signal.SIGKILL)
    stack.start(DRIVER)
    stack.bring_up(DRIVER)
    assert stack.remote[DRIVER].state(5.0) == State.ACTIVE  # a driver that is not up proves nothing
    time.sleep(VENTING_SECONDS)
    assert not stack.board.breaches


class Stopped(RuleBasedStateMachine):
    """What people, planners and accidents do to a stack that is stopped."""

    stack: Stack

    @initialize()
    def stop_in_motion(self):
        self.stack.pressurise()
        self.stack.stop()

    @rule(number=st.sampled_from([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]), up=st.booleans())
    def restart_the_driver(self, number, up):
        self.stack.end(DRIVER, number)
        self.stack.start(DRIVER)
        if up:
            self.stack.bring_up(DRIVER)

    @rule(step=st.sampled_from([Step.DEACTIVATE, Step.ACTIVATE, Step.CLEANUP, Step.CONFIGURE]))
    def change_its_state(self, step):
        self.stack.remote[DRIVER].change(step, 5.0)

    @rule()
    def bring_it_up(self):
        self.stack.bring_up(DRIVER)

    @rule()
    def kill_its_guardian(self):
        for child in psutil.Process(self.stack.processes[DRIVER].pid).children():
            child.kill()

    @rule(seconds=st.sampled_from([0.1, 1.0]))
    def hang_it(self, seconds):
        self.stack.processes[DRIVER].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.stack.processes[DRIVER].send_signal(signal.SIGCONT)

    @rule()
    def stop_again(self):
        self.stack.trigger("stop")

    @rule(pressures=st.sampled_from(sorted(ODD_PRESSURES)))
    def command_something_odd(self, pressures):
        values = ODD_PRESSURES[pressures]
        message = ChamberPressures(name=ROBOT.chambers[: len(values)], pressure=values.tolist())
        for _ in range(5):
            self.stack.commands.publish(message)
            time.sleep(0.01)

    @rule(name=st.sampled_from(["command_timeout", "follow_timeout", "stream_timeout"]))
    def set_a_parameter(self, name):
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=10.0)
        request = SetParameters.Request(parameters=[ParameterMessage(name=name, value=value)])
        self.stack.call(SetParameters, f"{DRIVER}/set_parameters", request)

    @rule()
    def restart_the_board(self):
        self.stack.board.boot(time.monotonic())

    @rule(seconds=st.sampled_from([0.1, 1.5]))
    def pull_the_cable_and_plug_it_in(self, seconds):
        self.stack.terminal.stop()
        time.sleep(seconds)
        self.stack.terminal.start()

    @rule(mode=st.sampled_from([Mode.PLAN_AND_MOVE, Mode.CLOSED_LOOP]))
    def ask_for_a_shape(self, mode):
        self.stack.bring_up(PLANNER)
        target = ReachGoal(random_target(ROBOT, seed=1), mode, max_time=1.0)
        message = goal_to_message(target, "base_link", self.stack.node.get_clock().now().to_msg())
        request = ReachShape.Impl.SendGoalService.Request(goal=message)
        request.goal_id.uuid = np.random.default_rng().integers(0, 256, 16, dtype=np.uint8)
        self.stack.call(ReachShape.Impl.SendGoalService, "reach_shape/_action/send_goal", request)
        time.sleep(0.5)

    @rule()
    def stream_shapes(self):
        self.stack.bring_up(PLANNER)
        points = random_target(ROBOT, seed=2).points
        for _ in range(10):
            self.stack.targets.publish(
                cloud_from_points(points, "base_link", self.stack.node.get_clock().now().to_msg())
            )
            time.sleep(0.02)

    @invariant()
    def nothing_lets_air_in(self):
        time.sleep(0.2)
        assert not self.stack.board.breaches

    def teardown(self):
        time.sleep(VENTING_SECONDS)
        self.nothing_lets_air_in()


def test_under_stop_nothing_but_reset_pressurises(stack):
    Stopped.stack = stack
    thorough = EXAMPLES > 0
    run_state_machine_as_test(
        Stopped,
        settings=settings(
            max_examples=EXAMPLES or SHORT_EXAMPLES,
            stateful_step_count=30 if thorough else SHORT_STEPS,
            derandomize=not thorough,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink] if thorough else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    stack.pressurise()
