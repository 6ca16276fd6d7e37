"""A driver and one who commands it, launched; board or bus and body are of this program, and true to the ms."""

import contextlib
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.paths import config_dir
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
from softform_system_tests.fault_injection.commander import RATE, swing
from softform_system_tests.fault_injection.stack_processes import nodes_below
from softform_system_tests.fault_injection.stack_watch import wait_for
from softform_system_tests.fault_injection.truth import WireLogReader, false_reports, is_at_rest

_LOWEST, _HIGHEST = 0.4, 0.8  # of the range of each degree of freedom
_NEAR = 0.1  # of an actuator's range
_START_SECONDS = 90.0
_BACK_SECONDS = 60.0
_RESET_SECONDS = 25.0
_NO_SCANS = 1e6  # s between two


class DrivenStack:
    """Runs while the `with` block lasts, and writes into an existing folder.

    Args:
        folder: Where it writes.
        name: Of its namespace and files.
        robot: Robot of `config/robots`.
        settings: What the settings of its device have that is not in its description.
        devices: Devices that its description lacks.

    Attributes:
        robot: The robot.
        rig: The rig, in this process.
        wire: Log of what arrives at its first device, and of true values.
        state: What the driver said last.
        shares: Of the range of each degree of freedom, between which it is led.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        robot: str,
        settings: Mapping[str, Any] | None = None,
        devices: Collection[Mapping[str, Any]] = (),
    ) -> None:
        described = yaml.safe_load((config_dir() / "robots" / f"{robot}.yaml").read_text(encoding="utf-8"))
        described["devices"][0].setdefault("settings", {}).update(settings or {})
        described["devices"] += [dict(device) for device in devices]
        self._folder, self._name, self._file = folder, name, folder / f"{name}.yaml"
        self._file.write_text(yaml.safe_dump(described), encoding="utf-8")
        self.robot = load_robot(self._file)
        log = folder / f"{name}.wire"
        self.rig = VirtualRig(
            self.robot,
            load_reality("default", self.robot),
            RigSettings(folder / name, folder / "scans", REGISTRATION, scan_period=_NO_SCANS, wire_log=log),
        )
        first = self.robot.devices[0].name
        self.wire = WireLogReader(log.with_name(f"{log.name}_{first}") if len(self.robot.devices) > 1 else log)
        self._may_hold = (settings or {}).get("safe_action") == "hold"
        self.state = DriverState()
        self.shares = _LOWEST, _HIGHEST
        self._safe_reports: list[tuple[float, str]] = []
        self._launch: LaunchedStack | None = None
        self._ends = threading.Event()
        self._commander = threading.Thread(target=self._command, name="commander", daemon=True)

    def __enter__(self) -> "DrivenStack":
        """Start the rig, launch, and wait until the robot moves."""
        enter_domain_of_its_own()
        self._background = BackgroundNode("commander", self._name)
        self._node = self._background.__enter__()
        self._lease = CommandLease(self._node, self.robot)
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
        """By how much the actuator that is furthest from safe truly is above its safe value, in the robot's unit."""
        return float((self.rig.actuator_values() - self.robot.safe).max())

    @property
    def is_at_rest(self) -> bool:
        """Whether all actuators truly are."""
        return is_at_rest(self.robot, self.rig.actuator_values())

    def take_false_reports(self, blind: Collection[int] = ()) -> list[str]:
        """Return and forget what was said of safety though it was not true; see `false_reports`."""
        reports, self._safe_reports = self._safe_reports, []
        return false_reports(self.robot, reports, self.wire, blind)

    @property
    def driver(self) -> psutil.Process:
        """The driver's process.

        Raises:
            SoftformError: If it does not run.
        """
        if (driver := self._driver) is None:
            raise SoftformError(f"The driver of '{self._name}' does not run.", f"See {self._log}.")
        return driver

    @property
    def _driver(self) -> psutil.Process | None:
        if self._launch is None or self._launch.process is None or self._launch.exit_code is not None:
            return None
        return nodes_below(psutil.Process(self._launch.process.pid)).get("actuation")

    def pull(self) -> float:
        """Pull all plugs; returns when they are out, s of `time.monotonic`."""
        for terminal in self.rig.terminals:
            terminal.pull_cable()
        return time.monotonic()

    def first_request(self, since: float, seconds: float) -> float | None:
        """When the first device was asked to make safe after `since`, s of `time.monotonic`; None if it was not."""

        def found() -> list[float]:
            return [at for at in list(self.rig.terminals[0].board.vent_times) if at > since]

        wait_for(lambda: bool(found()), seconds)
        return next(iter(found()), None)

    def stop(self) -> bool | None:
        """Call `stop`; returns whether it succeeded, None without an answer."""
        answer = call_driver(self._node, "stop", _RESET_SECONDS)
        if answer is not None and answer.success and not self._may_hold:
            self._safe_reports.append((time.monotonic(), f"stop: {answer.message}"))
        return None if answer is None else bool(answer.success)

    def reset(self) -> None:
        """Call `reset`."""
        call_driver(self._node, "reset", _RESET_SECONDS)

    def bring_back(self) -> None:
        """Start what is gone, reset what is at fault, and wait until the robot moves.

        Raises:
            SoftformError: If it does not come back.
        """
        self.rig.clear_faults()
        self.shares = _LOWEST, _HIGHEST
        deadline = time.monotonic() + _BACK_SECONDS
        while not wait_for(self._moves, 1.0):
            if time.monotonic() > deadline:
                raise SoftformError(f"'{self._name}' did not come back: {self.state.reason}", f"See {self._log}.")
            if self._driver is None:
                with contextlib.suppress(SoftformError):  # a starved board is rejected now and then
                    self.relaunch()
            if self.state.state == DriverState.FAULT:
                self.reset()

    def relaunch(self) -> None:
        """End the launch if it runs, start it anew, and wait until it is up.

        Raises:
            SoftformError: If it does not come up.
        """
        launch = self.start_anew()
        wait_until_active(self._name, _START_SECONDS, lambda: launch.exit_code is not None)

    def start_anew(self) -> LaunchedStack:
        """End the launch if it runs, and start it anew."""
        if self._launch is not None:
            self._launch.stop()
        arguments = {"robot": str(self._file), "port": str(self._folder / self._name), "namespace": self._name}
        with self._log.open("ab") as log:
            self._launch = LaunchedStack("driver", arguments, log, own_state(self._folder))
            return self._launch.__enter__()

    @property
    def _log(self) -> Path:
        return self._folder / f"{self._name}.log"

    def _moves(self) -> bool:
        off = np.abs(self.rig.actuator_values() - self._goal())
        follows = bool((off < _NEAR * (self.robot.actuator_max - self.robot.actuator_min)).all())
        return self.state.state == DriverState.RUNNING and not self.is_at_rest and follows

    def _note_state(self, message: DriverState) -> None:
        self.state = message
        if message.state == DriverState.SAFE or (message.at_rest and all(message.at_rest)):
            self._safe_reports.append((time.monotonic(), f"state {message.state}: {message.reason}"))
        self._lease.note(message)

    def _command(self) -> None:
        """Move round and round; greedy: without a lease it asks for one, whatever happened."""
        while not self._ends.wait(1.0 / RATE):
            if not self._lease.is_held:
                with contextlib.suppress(LeaseRejectedError):
                    self._lease.acquire()
            self._lease.send(self._goal())

    def _goal(self) -> Array:
        return swing(self.robot, *self.shares, time.monotonic())
