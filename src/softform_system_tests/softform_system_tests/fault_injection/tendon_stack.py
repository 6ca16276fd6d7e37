"""A driver of tendon motors and one who commands it, launched; bus and rod are of this program, and true to the ms."""

import contextlib
import math
import threading
import time
from pathlib import Path

import numpy as np
import psutil

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.run_folder import own_state
from softform_interfaces.msg import DriverState
from softform_launch.launched_stack import LaunchedStack
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_rig.parameters import REGISTRATION
from softform_rig.reality import load_reality
from softform_rig.rig_settings import RigSettings
from softform_rig.virtual_rig import VirtualRig
from softform_ros.background_node import BackgroundNode
from softform_ros.command_lease import CommandLease, LeaseRejectedError
from softform_ros.qos import LATCHED_STATE
from softform_ros.service_calls import call_driver
from softform_ros.stack_state import wait_until_active
from softform_system_tests.fault_injection.stack_processes import nodes_below
from softform_system_tests.fault_injection.stack_watch import wait_for

SPACE = "tendons"
_RATE = 20.0
_PERIOD_SECONDS = 6.0
_BEND = 0.004  # m
_PULLED = 0.001  # m: by so much some tendon is tighter than safe while the robot moves
SLACK = 5e-4  # m: so near to the safe pull a tendon is slack; drums, homes and backlash of the reality
_START_SECONDS = 90.0
_BACK_SECONDS = 60.0
_RESET_SECONDS = 25.0


class TendonStack:
    """Runs while the `with` block lasts, and writes into an existing folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._robot = folder, load_robot("tendon_rod")
        reality = load_reality("default", self._robot)
        self.rig = VirtualRig(self._robot, reality, RigSettings(folder / "bus", folder / "scans", REGISTRATION))
        self.state = DriverState()
        self._launch: LaunchedStack | None = None
        self._ends = threading.Event()
        self._commander = threading.Thread(target=self._command, name="commander", daemon=True)

    def __enter__(self) -> "TendonStack":
        """Start the bus, launch, and wait until the robot moves."""
        enter_domain_of_its_own()
        self._background = BackgroundNode("commander", SPACE)
        self._node = self._background.__enter__()
        self._lease = CommandLease(self._node, self._robot.actuators, self._robot.unit)
        self._node.create_subscription(DriverState, "driver_state", self._note_state, LATCHED_STATE)
        self.rig.start()
        self._commander.start()
        try:
            self.bring_back()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """End everything."""
        self._ends.set()
        self._commander.join()
        if self._launch is not None:
            self._launch.stop()
        self.rig.stop()
        self._background.__exit__(*error)

    @property
    def tightest(self) -> float:
        """By how much the tightest tendon truly is tighter than at its safe pull, m."""
        return float((self.rig.actuator_values() - self._robot.safe).max())

    @property
    def driver(self) -> psutil.Process:
        """The driver's process.

        Raises:
            SoftformError: If it does not run.
        """
        nodes = {}
        if self._launch is not None and self._launch.process is not None and self._launch.exit_code is None:
            nodes = nodes_below(psutil.Process(self._launch.process.pid))
        if "actuation" not in nodes:
            raise SoftformError("The driver of the tendons does not run.", f"See {self._log}.")
        return nodes["actuation"]

    def pull(self) -> float:
        """Pull the bus's plug; returns when it is out, s of `time.monotonic`."""
        self.rig.terminals[0].pull_cable()
        return time.monotonic()

    def first_request(self, since: float, seconds: float) -> float | None:
        """When the first request to slacken came on the wire after `since`, s of `time.monotonic`; None without one."""

        def found() -> list[float]:
            return [at for at in list(self.rig.terminals[0].board.vent_times) if at > since]

        wait_for(lambda: bool(found()), seconds)
        return next(iter(found()), None)

    def bring_back(self) -> None:
        """Start what is gone, reset what is at fault, and wait until the robot moves.

        Raises:
            SoftformError: If it does not come back.
        """
        self.rig.clear_faults()
        deadline = time.monotonic() + _BACK_SECONDS
        while not wait_for(self._moves, 1.0):
            try:
                assert self.driver
            except SoftformError:
                self.relaunch()
            if self.state.state == DriverState.FAULT:
                call_driver(self._node, "reset", _RESET_SECONDS)
            if time.monotonic() > deadline:
                raise SoftformError(f"The tendons did not come back: {self.state.reason}", f"See {self._log}.")

    def relaunch(self) -> None:
        """End the launch if it runs, start it anew, and wait until it is up.

        Raises:
            SoftformError: If it does not come up.
        """
        launch = self.start_anew()
        wait_until_active(SPACE, _START_SECONDS, lambda: launch.exit_code is not None)

    def start_anew(self) -> LaunchedStack:
        """End the launch if it runs, and start it anew."""
        if self._launch is not None:
            self._launch.stop()
        arguments = {"robot": self._robot.name, "port": str(self._folder / "bus"), "namespace": SPACE}
        with self._log.open("ab") as log:
            self._launch = LaunchedStack("driver", arguments, log, own_state(self._folder))
            return self._launch.__enter__()

    @property
    def _log(self) -> Path:
        return self._folder / "tendons.log"

    def _moves(self) -> bool:
        return self.state.state == DriverState.RUNNING and self.tightest > _PULLED

    def _note_state(self, message: DriverState) -> None:
        self.state = message
        self._lease.note(message)

    def _command(self) -> None:
        """Bend the rod round and round; greedy: without a lease it asks for one, whatever happened."""
        while not self._ends.wait(1.0 / _RATE):
            if not self._lease.is_held:
                with contextlib.suppress(LeaseRejectedError):
                    self._lease.acquire()
            angle = 2.0 * math.pi * time.monotonic() / _PERIOD_SECONDS
            self._lease.send(self._robot.actuators_of(_bend(angle)))


def _bend(angle: float) -> Array:
    """Actuation (3,) m that bends the rod to a side."""
    return np.array([_BEND * math.cos(angle), _BEND * math.sin(angle), 0.001])
