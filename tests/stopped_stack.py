"""Driver and planner under `stop`, on an emulated board that notes whatever would let air in."""

import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
from std_srvs.srv import Trigger

from softform_bringup.lifecycle_manager import BringUpError, LifecycleManager
from softform_bringup.remote_lifecycle import RemoteLifecycleNode
from softform_core.plant import load_plant
from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorCommand, DriverState, TargetPoints
from softform_rig.line_board import Firmware
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease, LeaseRejectedError
from softform_ros.conversions import cloud_from_points
from softform_ros.service_calls import call_driver, call_service

ROBOT = load_robot("membrane")
HELD = np.full(ROBOT.degrees_of_freedom, 3000.0)  # Pa
VENTING_SECONDS = 1.0
LEFT_AFTER_VENTING = 0.15  # kPa
DRIVER, PLANNER = "actuation", "inverse_kinematics"
MODULES = {DRIVER: "softform_actuation.actuation_node", PLANNER: "softform_ik.inverse_kinematics_node"}


class WatchedBoard(Firmware):
    """The emulated board, which notes whatever would let air in while it is guarded."""

    def __init__(self):
        super().__init__(load_plant())
        self.guarded_since, self.breaches, self._line = None, [], b""

    def receive(self, data, now):
        *requests, self._line = (self._line + data).split(b"\r\n")
        super().receive(data, now)
        if self.guarded_since is not None:
            self.breaches += [request for request in requests if request[:2] == b"T=" and float(request[2:]) != 0]
            if b"C" in requests and self._targets.any():  # one that is started at zero targets measures only
                self.breaches.append(b"C")

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
        self.lease = CommandLease(node, ROBOT)
        self.commands = node.create_publisher(ActuatorCommand, "actuator_command", qos.ACTUATOR_COMMAND)
        self.targets = node.create_publisher(*self._topic("target_shape"), qos.TARGET_SHAPE)
        self.features = node.create_publisher(TargetPoints, "target_points", qos.TARGET_SHAPE)
        node.create_subscription(DriverState, "driver_state", self._on_state, qos.LATCHED_STATE)
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
        message = cloud_from_points(np.zeros((1, 3)), "membrane/base_link", DriverState().header.stamp)
        return type(message), name

    def _on_state(self, state):
        self.states.append(state)
        self.lease.note(state)

    def _command_for_ever(self):
        """As greedy as a commander can be: it asks for the lease whenever it has none."""
        while not self._ended.wait(0.05):
            with suppress(LeaseRejectedError):
                self.lease.acquire()
            self.lease.send(HELD)

    def start(self, name):
        words = [sys.executable, "-m", MODULES[name], "--ros-args", "-r", "__ns:=/softform"]
        if name == DRIVER:
            words += ["-p", f"port:={self.folder / 'openpneu'}"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)

    def end(self, name, number):
        self.processes[name].send_signal(number)
        self.processes[name].wait(20.0)

    def call(self, server, kind, name, request, attempts=5):
        """The answer, or None. Asked again each second: what went to a process that was just killed is lost."""
        for _ in range(attempts):
            answer = call_service(self.node, server, kind, name, request, 9.0 if kind is Trigger else 2.0)
            if answer is not None:
                return answer
        return None

    def trigger(self, name):
        if name == "reset":
            return call_driver(self.node, "reset", 30.0)
        return self.call("actuation_stop" if name == "stop" else DRIVER, Trigger, name, Trigger.Request())

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
        channels = ROBOT.devices[0].channels
        self.wait_until(lambda: self.board.pressures()[channels].min() > 1.0, "a reset robot does not move")

    def stop(self):
        answer = self.trigger("stop")
        assert answer is not None and answer.success, answer
        self.board.breaches.clear()
        self.board.guarded_since = time.monotonic()
