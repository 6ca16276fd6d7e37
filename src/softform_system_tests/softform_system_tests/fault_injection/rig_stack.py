"""The whole launched stack on the virtual rig, in motion, into which faults are injected."""

import os
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np
import psutil

from softform_bringup.lifecycle_manager import BringUpError, LifecycleManager
from softform_bringup.remote_lifecycle import RemoteLifecycleNode
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.run_folder import own_state
from softform_interfaces.msg import DriverState
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_system_tests.fault_injection import commander
from softform_system_tests.fault_injection.shifted_clock import ShiftedClock
from softform_system_tests.fault_injection.stack_processes import StackProcesses
from softform_system_tests.fault_injection.stack_watch import StackWatch, wait_for
from softform_system_tests.fault_injection.truth import WireLogReader, false_reports

NAMESPACE = "softform"
LIFECYCLE_NODES = (
    "bag_recorder",
    "rig",
    "actuation",
    "scanner",
    "motion_capture",
    "shape_predictor",
    "inverse_kinematics",
    "motion_planner",
    "collector",
)
"""In the order of bringing up."""

MANAGER, RECORDER, DRIVER, RIG = "bringup_manager", "bag_recorder", "actuation", "rig"
COMMANDER = "commander"
"""Node that keeps the robot moving."""

_BACK_SECONDS = 90.0
_STEP_SECONDS = 60.0
_RESET_SECONDS = 25.0
_LOOK_SECONDS = 1.0
_MOVING_SHARE = 0.3  # of the range; the commander stays above 0.4
_FRESH_SECONDS = 0.5


class RigStack:
    """Runs while the `with` block lasts.

    Attributes:
        robot: Robot on the rig.
        folder: Folder of the run's files.
        watch: State reported by the stack.
        wire: Log of the requests that arrive at the board.
        clock: Clock of all its processes.
        processes: Processes of the stack.
        commander: The process that keeps the robot moving.
    """

    def __init__(self, robot: Robot, folder: Path) -> None:
        self.robot, self.folder = robot, folder
        self.wire = WireLogReader(folder / "wire.log")
        self.watch = StackWatch(NAMESPACE)
        enter_domain_of_its_own()
        self.clock = ShiftedClock(folder)
        self.processes = StackProcesses(
            NAMESPACE, folder, {**os.environ, **self.clock.environment, **own_state(folder)}, self.arguments
        )
        self.commander: subprocess.Popen[bytes] | None = None
        self._bags = sum(1 for _ in folder.glob("bags/*"))  # of a run that is resumed

    def __enter__(self) -> "RigStack":
        """Launch, and wait until the robot moves."""
        self._start_watching()
        try:
            self.bring_back()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """End everything."""
        if self.commander is not None:
            self.silence_commander()
        self.processes.end()
        self.watch.__exit__(*error)

    def _start_watching(self) -> None:
        self.watch.__enter__()
        self._remote = {
            name: RemoteLifecycleNode(self.watch.node, name, self.watch.message, lambda: False)
            for name in LIFECYCLE_NODES
        }

    def arguments(self) -> dict[str, str]:
        """Launch arguments."""
        return {
            "robot": self.robot.name,
            "run_dir": str(self.folder),
            "wire_log": str(self.folder / "wire.log"),
            "motion_capture": "true",
            "sim_to_real": "none",
            "record": "true",
            "bag": str(self.bag),
        }

    def take_false_reports(self, blind: Collection[int] = ()) -> list[str]:
        """Return and forget what was said of safety though it was not true; see `false_reports`."""
        reports, self.watch.safe_reports = self.watch.safe_reports, []
        return false_reports(self.robot, reports, self.wire, blind)

    @property
    def bag(self) -> Path:
        """Where the recorder writes, or wrote last."""
        return self.folder / "bags" / f"{self._bags:03d}"

    def required(self, name: str) -> psutil.Process:
        """The process of a node.

        Raises:
            SoftformError: If it does not run.
        """
        process = self.processes.node(name)
        if process is None:
            raise SoftformError(f"The node '{name}' does not run.", f"See {self.folder / 'launch.log'}.")
        return process

    def life_cycle(self, name: str) -> RemoteLifecycleNode:
        """A node, to be led through its transitions."""
        return self._remote[name]

    def bring_back(self) -> None:
        """Start what is gone, reset what is at fault, and wait until the robot moves.

        Raises:
            SoftformError: If it does not come back.
        """
        if not self.processes.has_launch:
            self.relaunch()
        self.watch.clear_faults()
        deadline = time.monotonic() + _BACK_SECONDS
        while not wait_for(self._moves, _LOOK_SECONDS) or self._missing():
            self.replace_what_is_gone()
            self.bring_up(DRIVER)  # a stop may have interrupted its activation
            self.keep_commanding()
            if self.watch.driver_state == DriverState.FAULT:
                self.watch.trigger("reset", _RESET_SECONDS)
            if time.monotonic() > deadline:
                raise SoftformError(
                    f"The stack did not come back: {self.watch.driver_reason}", f"See {self.folder / 'launch.log'}."
                )

    def relaunch(self) -> None:
        """End the launch if it runs, and start it anew.

        Raises:
            SoftformError: If it does not come up.
        """
        self._bags += 1
        self.processes.relaunch()
        self.watch.forget_recording()

    def start_over(self) -> None:
        """End and start anew all that ran, commander and watch too, so that nothing goes by the time of day before.

        Raises:
            SoftformError: If it does not come up.
        """
        if self.commander is not None:
            self.silence_commander()
        self.processes.end()
        self.watch.__exit__(None, None, None)
        reports, self.watch = self.watch.safe_reports, StackWatch(NAMESPACE)
        self.watch.safe_reports = reports
        self._start_watching()
        self.relaunch()

    def keep_commanding(self) -> None:
        """Start the commander if it is gone."""
        if self.commander is None or self.commander.poll() is not None:
            self.commander = self.start_commander(0.4, 0.8)

    def start_commander(self, lowest: float, highest: float, name: str = COMMANDER) -> subprocess.Popen[bytes]:
        """A process that asks for the lease and commands values between two shares of the robot's range."""
        words = [sys.executable, "-m", commander.__name__, self.robot.name, str(lowest), str(highest), name]
        return self.processes.start(words)

    def silence_commander(self) -> float:
        """Kill it; returns when, s of `time.monotonic`."""
        assert self.commander is not None
        moment = time.monotonic()
        self.commander.kill()
        self.commander.wait()
        return moment

    def _moves(self) -> bool:
        watch, lowest = self.watch, _MOVING_SHARE * self.robot.actuator_max
        return bool(
            watch.driver_state == DriverState.RUNNING
            and watch.lease[0] == COMMANDER  # not one that a fault has left, and that is about to be vented
            and self.commander is not None
            and self.commander.poll() is None
            and watch.values is not None
            and time.monotonic() - watch.values_at < _FRESH_SECONDS
            and np.all(watch.values > lowest)
        )

    def _missing(self) -> list[str]:
        running = self.processes.nodes()
        return [name for name in LIFECYCLE_NODES if name not in running]

    def replace_what_is_gone(self) -> None:
        """Start what is gone and bring it up; nothing is reset.

        Raises:
            SoftformError: If it does not come up.
        """
        missing = self._missing()
        self._bags += RECORDER in missing
        for name in missing:
            self.processes.replace(name)
        if RECORDER in missing:
            self.watch.forget_recording()
        self.bring_up(*(name for name in LIFECYCLE_NODES if name in missing))

    def bring_up(self, *names: str) -> None:
        """Configure and activate nodes that run.

        Raises:
            SoftformError: If one does not come up.
        """
        nodes = [self._remote[name] for name in names]
        try:
            LifecycleManager(nodes, lambda line: None, _STEP_SECONDS, _STEP_SECONDS, lambda: False).bring_up()
        except BringUpError as error:
            raise SoftformError(f"After a fault, {error}", f"See {self.folder / 'launch.log'}.") from error
