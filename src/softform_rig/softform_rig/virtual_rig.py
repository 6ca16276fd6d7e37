"""A virtual rig without ROS: a board on a port, a body that feels its pressures, motion capture that sees the body.

The board runs in its own thread on deadlines, and so does every device that looks at the body, so that a slow solve
never delays the stream. They ask the one body for its shape, in turn. What the body is, and which other devices look
at it, is the subclasses' matter.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import Robot
from softform_core.units import PA_PER_KPA
from softform_rig.control import regulate
from softform_rig.emulated_board import Sensors
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import Fault
from softform_rig.faulty_markers import check_marker_names, faulty_markers
from softform_rig.firmware import FirmwareKind
from softform_rig.make_board import BoardName, make_board
from softform_rig.motion_capture import MotionCapture
from softform_rig.periodic import PeriodicThread
from softform_rig.plant import load_plant
from softform_rig.pseudo_terminal import PseudoTerminal

Array = NDArray[np.float64]

_PATIENCE = 2.0  # s to wait for a solve in progress when stopping
_HOST_PATIENCE = 1.5  # s that a driver told to stop at the same moment may take to vent and close its port


@dataclass(frozen=True)
class RigSettings:
    """Where the rig's devices appear and how they behave.

    Attributes:
        port_link: symbolic link to the board's terminal.
        scan_folder: folder of the scanner's exports.
        registration: pose of the scanner in the robot's frame: x, y, z (m), qx, qy, qz, qw.
        firmware: see `Firmware`.
        board: see `make_board`.
        seed: of sensor and scanner noise.
        scan_period: s between scans while the shape changes.
        keep_scans: exports to keep.
        mocap_rate: frames of motion capture a second; 0 for none.
        faults: that come by themselves, counted from `start`.
        wire_log: where what arrives on the board's wire is logged; None for nowhere.
    """

    port_link: Path
    scan_folder: Path
    registration: list[float]
    firmware: FirmwareKind = "regulated"
    board: BoardName = "openpneu_a"
    seed: int = 0
    scan_period: float = 1.0
    keep_scans: int = 100
    mocap_rate: float = 0.0
    faults: Sequence[Fault] = ()
    wire_log: Path | None = None


class Body(Protocol):
    """A soft body under the pressures of the moment.

    Attributes:
        failure: Why the last solve failed, or None; the last good shape stays meanwhile.
        solves: Number of solves so far.
        solve_seconds: Time of the last one.
    """

    failure: str | None
    solves: int
    solve_seconds: float

    def shape_between_solves(self, pressures: Array) -> Array:
        """Its shape under true chamber pressures (k,) Pa, for many looks a second."""


OnMarkers = Callable[[Array, float, int], None]
"""Called from the rig's thread with the captured positions of `cameras.names`, in the system's own frame, m, NaN where
missing, their time, s since the epoch, and the number of the frame."""


class VirtualRig:
    """Board, body and motion capture of one reality.

    Attributes:
        scans: Number of scans exported so far.
        marker_frames: Number of frames captured so far.
        body: What feels the pressures.
        cameras: The motion-capture system.
        schedule: Of the faults of all devices; more may be injected at any time.

    Args:
        robot: The robot on the rig.
        sensors: Of the board, `board_sensors`.
        body: What feels the pressures.
        cameras: The motion-capture system around it.
        settings: Of the devices.
        on_markers: What to do with frames of motion capture.

    Raises:
        SoftformError: If the plant cannot be read, or a fault names a marker that is not there.
    """

    scans = 0

    def __init__(
        self,
        robot: Robot,
        sensors: Sensors,
        body: Body,
        cameras: MotionCapture,
        settings: RigSettings,
        on_markers: OnMarkers | None = None,
    ) -> None:
        """Build everything and compile what is compiled; nothing is opened yet."""
        self.settings, self.body, self.cameras = settings, body, cameras
        self.marker_frames = 0
        for fault in settings.faults:
            check_marker_names(fault, cameras.names)
        self.schedule = FaultSchedule(settings.faults)
        firmware = make_board(settings.board, load_plant(), sensors, settings.firmware)
        self.terminal = PseudoTerminal(firmware, settings.port_link, self.schedule, settings.seed, settings.wire_log)
        self._channels = robot.channels
        self._on_markers = on_markers
        self._one_at_a_time = threading.Lock()
        self._threads: list[PeriodicThread] = []
        if settings.mocap_rate > 0.0:
            self.every(1.0 / settings.mocap_rate, "motion capture", self.capture_markers)
        # Compiling holds the interpreter and would stall the stream: it is done before the board runs.
        self._warm_up_board()

    def every(self, period: float, name: str, act: Callable[[], object]) -> None:
        """Let a device act every `period` s while the rig runs."""
        self._threads.append(PeriodicThread(name, period, act))

    def start(self) -> None:
        """Open the port, start the devices.

        Raises:
            SoftformError: If the port link cannot be made.
        """
        self.schedule.begin()
        self.terminal.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop them and close the port once its host has left or a short while is over; harmless if not started."""
        for thread in self._threads:
            thread.stop(_PATIENCE)
        self.terminal.stop(_HOST_PATIENCE)

    def inject(self, fault: Fault) -> None:
        """Let something go wrong; its start counts from now.

        Raises:
            SoftformError: If it names a marker that is not there.
        """
        check_marker_names(fault, self.cameras.names)
        self.schedule.inject(fault)

    @property
    def devices(self) -> str:
        """What looks at the body, in words."""
        rate = self.settings.mocap_rate
        return f"motion capture at {rate:g} Hz" if rate else "no motion capture"

    @property
    def faults(self) -> list[str]:
        """What is wrong now, in sentences; empty while all is well."""
        found = [self.terminal.failure, *(thread.failure for thread in self._threads), self.body.failure]
        return [fault for fault in found if fault is not None]

    def pressures(self) -> Array:
        """True pressure of each chamber, (k,) Pa gauge."""
        return self.terminal.firmware.pressures()[self._channels] * PA_PER_KPA

    def capture_markers(self) -> None:
        """Capture the markers on the body as it is at the pressures of the moment."""
        shape, captured_at = self.look_at(self.body.shape_between_solves)
        positions = faulty_markers(self.cameras.capture(shape, captured_at), self.cameras.names, self.schedule)
        if self._on_markers is not None and positions is not None:
            self._on_markers(positions, captured_at, self.marker_frames)
        self.marker_frames += 1

    def look_at(self, shape: Callable[[Array], Array]) -> tuple[Array, float]:
        """What a way of asking the body says to the pressures of the moment, and that moment, s since the epoch."""
        with self._one_at_a_time:
            now = time.time()
            return shape(self.pressures()), now

    def _warm_up_board(self) -> None:
        regulate(np.zeros(1), np.zeros(1), 0.0, np.zeros(1), np.zeros(1), np.zeros(1, dtype=bool))
        self.terminal.firmware.advance(0.1)
        self.terminal.firmware.boot(0.1)
