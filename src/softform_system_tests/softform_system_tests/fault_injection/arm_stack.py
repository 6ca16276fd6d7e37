"""Two arms that shape an object, launched: the object, its camera and the arms are emulated by nodes of the launch.

Where the joints truly are stands in the log of the arms' wire, thirty times a second, beside what was asked of them.
"""

import contextlib
import threading
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np
import psutil
import yaml
from diagnostic_msgs.msg import DiagnosticStatus

from softform_client.client import GoalFailedError
from softform_client.object_client import ObjectClient
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.paths import config_dir
from softform_core.robots import load_robot
from softform_core.run_folder import own_state
from softform_interfaces.action import ShapeObject
from softform_interfaces.msg import DriverState
from softform_interfaces.srv import InjectFault
from softform_launch.launched_stack import LaunchedStack
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_ros.action_caller import NotConnectedError
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import FAULT_EVENTS, LATCHED_STATE
from softform_ros.service_calls import call_driver, call_service
from softform_ros.stack_state import wait_until_active
from softform_system_tests.fault_injection.stack_processes import nodes_below
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import WireLogReader

NAME = "two_arms"
DRIVER, SHAPER, OBJECT = "actuation", "object_shaper", "object_rig"
BEND = np.array([0.0, 0.0, 0.012, 0.0, -0.3, 0.0, 0.0, 0.0, -0.012, 0.0, 0.3, 0.0])
"""Poses of a target, m and rad; the other way each second time, so that there is always a way to go."""
NARROW, NARROW_JOINT = 0.15, "right_6"
"""A joint that the stack's description lets turn by so little, rad: only a target that twists comes to its end."""

MOVED = 0.01
"""rad by which a joint is on its way."""
_CREEPS = 0.01
"""rad/s below which a joint that is called held may be thought to stand."""
_ORDER_SECONDS = 0.2
"""s by which a message may come late."""
_START_SECONDS, _BACK_SECONDS, _RESET_SECONDS, _ANSWER_SECONDS, _CLIENT_SECONDS = 120.0, 60.0, 25.0, 10.0, 30.0


class Goal(threading.Thread):
    """A goal of `shape_object` in a thread of its own; what became of it is in `result` or `failure`."""

    def __init__(self, poses: Array, iterations: int = 0) -> None:
        super().__init__(name="goal", daemon=True)
        self._poses, self._iterations = poses, iterations
        self.result: ShapeObject.Result | None = None
        self.failure: SoftformError | None = None

    def run(self) -> None:
        """Send it, and wait."""
        try:
            with ObjectClient(NAME, timeout=_CLIENT_SECONDS) as client:
                self.result = client.shape(self._poses, iterations=self._iterations)
        except (GoalFailedError, NotConnectedError) as failure:
            self.failure = failure

    @property
    def told(self) -> str:
        """How it ended, in words."""
        return str(self.failure or (self.result and f"ended: {self.result.ended}") or "it goes on")


class ArmStack:
    """Runs while the `with` block lasts, and writes into an existing folder.

    Args:
        folder: Where it writes.

    Attributes:
        robot: The arms.
        wire: Log of what arrives at their controller, and of true joint values.
        state: What the driver said last.
    """

    def __init__(self, folder: Path) -> None:
        described = yaml.safe_load((config_dir() / "arms" / f"{NAME}.yaml").read_text(encoding="utf-8"))
        self._folder, self._file = folder, folder / f"{NAME}.yaml"
        joint = load_robot(config_dir() / "arms" / f"{NAME}.yaml").actuators.index(NARROW_JOINT)
        described["actuators"]["minimum"][joint], described["actuators"]["maximum"][joint] = -NARROW, NARROW
        self._file.write_text(yaml.safe_dump(described), encoding="utf-8")
        self.robot = load_robot(self._file)
        self.wire = WireLogReader(folder / f"{NAME}.wire")
        self.state = DriverState()
        self._turn = 1.0
        self._events: list[tuple[str, str, float]] = []
        self._held_reports: list[tuple[float, str]] = []
        self._launch: LaunchedStack | None = None

    def __enter__(self) -> "ArmStack":
        """Launch, and wait until the arms hold."""
        enter_domain_of_its_own()
        self._background = BackgroundNode("operator", NAME)
        self._node = self._background.__enter__()
        self._node.create_subscription(DriverState, "driver_state", self._note_state, LATCHED_STATE)
        self._node.create_subscription(DiagnosticStatus, "rig/fault_events", self._note_event, FAULT_EVENTS)
        try:
            self.bring_back()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """End everything."""
        if self._launch is not None:
            self._launch.stop()
        self._background.__exit__(*error)

    def process(self, name: str) -> psutil.Process:
        """Of a node.

        Raises:
            SoftformError: If it does not run.
        """
        if (found := self._nodes().get(name)) is None:
            raise SoftformError(f"The node '{name}' does not run.", f"See {self._log}.")
        return found

    @property
    def has_driver(self) -> bool:
        """Whether a driver runs."""
        return DRIVER in self._nodes()

    @property
    def is_braked(self) -> bool:
        """Whether the last thing that the controller's brakes were asked for is to close."""
        asked = [one.text[:1] for one in self.wire.events(0.0) if one.side == "host" and one.text[:2] in ("D*", "H*")]
        return asked[-1:] == ["H"]

    def goal(self, iterations: int = 0) -> Goal:
        """A goal that bends the object, not begun."""
        self._turn = -self._turn
        return Goal(self._turn * BEND, iterations)

    def is_on_its_way(self, goal: Goal, seconds: float) -> bool:
        """Begin a goal, and wait until the joints truly move; returns whether they did."""
        began = time.monotonic()
        before = [one.values for one in self.wire.true_values(began - 1.0)]
        goal.start()
        if not before:
            return False

        def moves() -> bool:
            now = self.wire.true_values(time.monotonic() - 1.0)
            return bool(now) and float(np.abs(now[-1].values - before[-1]).max()) > MOVED

        wait_for(lambda: moves() or not goal.is_alive(), seconds)
        return goal.is_alive() and moves()

    def inject(self, fault: str) -> float:
        """Let something go wrong with the arms; returns when it began, s of `time.monotonic`.

        Raises:
            SoftformError: If the rig does not, or does not show it.
        """
        began = time.monotonic()
        self._call("rig", fault)
        kind = fault.partition("+")[0]

        def moments() -> list[float]:
            return [at for name, event, at in self._events if name.startswith(kind) and event == "shows" and at > began]

        if not wait_for(lambda: bool(moments()), _ANSWER_SECONDS):
            raise SoftformError(f"The rig did not show '{fault}'.", f"See {self._log}.")
        return moments()[0]

    def spoil(self, fault: str) -> None:
        """Let something go wrong with the object or its camera, from the next picture on.

        Raises:
            SoftformError: If the object's rig does not.
        """
        self._call(OBJECT, fault)

    def _call(self, server: str, fault: str) -> None:
        request = InjectFault.Request(fault=fault)
        answer = call_service(self._node, server, InjectFault, f"{server}/inject_fault", request, _ANSWER_SECONDS)
        if answer is None or not answer.success:
            said = "no answer" if answer is None else answer.message
            raise SoftformError(f"'{server}' does not inject '{fault}': {said}", f"See {self._log}.")

    def take_false_reports(self, blind: Collection[int] = ()) -> list[str]:
        """Return and forget what was said of arms that are held though a joint moved; there are no blind ones."""
        reports, self._held_reports = self._held_reports, []
        found = []
        samples = self.wire.true_values(reports[0][0] - 1.0) if reports else []
        times = np.array([one.time for one in samples])
        for at, what in reports:
            first, last = np.searchsorted(times, (at - _ORDER_SECONDS, at))
            values = np.array([one.values for one in samples[first:last]])
            if len(values) < 3:
                continue
            speeds = np.abs(np.diff(values, axis=0)).max(axis=1) / np.diff(times[first:last])
            if (speeds > _CREEPS).all():
                found.append(f"'{what}' at {speeds[-1]:.2f} rad/s")
        return found

    def bring_back(self) -> None:
        """Start what is gone, end all faults, reset what is at fault, and wait until the arms hold.

        Raises:
            SoftformError: If they do not come back.
        """
        deadline = time.monotonic() + _BACK_SECONDS
        if not self._nodes().keys() >= {DRIVER, SHAPER, OBJECT}:
            self.relaunch()
        self._call("rig", "clear")
        self.spoil("clear")
        while not wait_for(lambda: self.state.state == DriverState.HOLDING, 1.0):
            if time.monotonic() > deadline:
                raise SoftformError(f"The arms did not come back: {self.state.reason}", f"See {self._log}.")
            if self.state.state == DriverState.FAULT:
                call_driver(self._node, "reset", _RESET_SECONDS)

    def relaunch(self) -> None:
        """End the launch if it runs, start it anew, and wait until it is up.

        Raises:
            SoftformError: If it does not come up.
        """
        if self._launch is not None:
            self._launch.stop()
        self.state = DriverState()
        arguments = {
            "namespace": NAME, "robot": str(self._file), "run_dir": str(self._folder / NAME),
            "wire_log": str(self._folder / f"{NAME}.wire"), "console": "false",
        }  # fmt: skip
        (self._folder / NAME).mkdir(exist_ok=True)
        with self._log.open("ab") as log:
            launch = self._launch = LaunchedStack("shaping", arguments, log, own_state(self._folder))
            launch.__enter__()
        wait_until_active(NAME, _START_SECONDS, lambda: launch.exit_code is not None)

    def _nodes(self) -> dict[str, psutil.Process]:
        if self._launch is None or self._launch.process is None or self._launch.exit_code is not None:
            return {}
        with contextlib.suppress(psutil.NoSuchProcess):
            return nodes_below(psutil.Process(self._launch.process.pid))
        return {}

    @property
    def _log(self) -> Path:
        return self._folder / f"{NAME}.log"

    def _note_state(self, message: DriverState) -> None:
        self.state = message
        if message.state in (DriverState.HOLDING, DriverState.SAFE):
            self._held_reports.append((time.monotonic(), f"state {message.state}: {message.reason}"))

    def _note_event(self, message: DiagnosticStatus) -> None:
        self._events.append((message.name, message.message, float(message.values[0].value)))
