"""The whole virtual rig without ROS: a board on a port, a membrane that feels its pressures, a scanner, motion capture.

The board runs in its own thread on deadlines, and so do scanner and motion capture, so that a slow solve never delays
the stream. Both ask the one membrane for its shape, in turn.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.simulation import solve_equilibrium
from softform_core.units import PA_PER_KPA
from softform_rig.device_pose import DevicePose
from softform_rig.firmware import Firmware, FirmwareKind
from softform_rig.live_membrane import LiveMembrane
from softform_rig.motion_capture import MotionCapture
from softform_rig.periodic import PeriodicThread
from softform_rig.plant import load_plant
from softform_rig.ply_export import export_scan
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_rig.reality import Reality, board_sensors
from softform_rig.scanner import Scanner

Array = NDArray[np.float64]

LONGEST_WITHOUT_SCAN = 2.0  # s
_CHANGED = 2e-4  # m; a surface that moved less is not new to a scanner with as much noise
_COVERAGE = 1.1  # of the robot's half diagonal
_PATIENCE = 2.0  # s to wait for a solve in progress when stopping
_HOST_PATIENCE = 1.5  # s that a driver told to stop at the same moment may take to vent and close its port
_WARM_UP_PRESSURE = 200.0  # Pa


@dataclass(frozen=True)
class RigSettings:
    """Where the rig's devices appear and how they behave.

    Attributes:
        port_link: symbolic link to the board's terminal.
        scan_folder: folder of the scanner's exports.
        registration: pose of the scanner in the robot's frame: x, y, z (m), qx, qy, qz, qw.
        firmware: see `Firmware`.
        seed: of sensor and scanner noise.
        scan_period: s between scans while the shape changes.
        keep_scans: exports to keep.
        mocap_rate: frames of motion capture a second; 0 for none.
    """

    port_link: Path
    scan_folder: Path
    registration: list[float]
    firmware: FirmwareKind = "regulated"
    seed: int = 0
    scan_period: float = 1.0
    keep_scans: int = 100
    mocap_rate: float = 0.0


class VirtualRig:
    """Board, membrane, scanner and motion capture of one reality.

    Attributes:
        scans: Number of scans exported so far.
        marker_frames: Number of frames captured so far.
        cameras: The motion-capture system.
        export_failure: Why the last export failed, or None.
    """

    def __init__(
        self,
        robot: Robot,
        reality: Reality,
        settings: RigSettings,
        on_surface: Callable[[Array, float], None] | None = None,
        on_markers: Callable[[Array, float, int], None] | None = None,
    ) -> None:
        """Build everything and compile what is compiled; nothing is opened yet.

        Args:
            robot: the robot on the rig.
            reality: how it differs from the simulator.
            settings: of the devices.
            on_surface: called from the rig's thread with points of the true surface (n, 3) m and their time, s since
                the epoch, at every scan.
            on_markers: called from the rig's thread with the captured positions of `cameras.names`, in the system's own
                frame, m, NaN where missing, their time, s since the epoch, and the number of the frame.

        Raises:
            SoftformError: If reality, plant or registration do not fit.
        """
        plant = load_plant()
        self.settings = settings
        self.scans = self.marker_frames = 0
        self.export_failure: str | None = None
        self.membrane = LiveMembrane(robot, reality)
        sensors = board_sensors(robot, reality, plant.sensor_noise, settings.seed)
        self.terminal = PseudoTerminal(Firmware(plant, sensors, settings.firmware), settings.port_link)
        radius = _COVERAGE * 0.5 * float(np.linalg.norm(robot.extent))
        pose = DevicePose.from_list(settings.registration)
        self.scanner = Scanner(reality.scanner, pose, radius, settings.seed + 1)
        self._channels = robot.board.channels
        rest = self.membrane.membrane.rest_vertices
        self.cameras = MotionCapture(reality.motion_capture, robot, rest, self.membrane.faces, seed=settings.seed + 2)
        self._on_surface, self._on_markers = on_surface, on_markers
        self._one_at_a_time = threading.Lock()
        self._threads = [PeriodicThread("scanner", settings.scan_period, self.look)]
        if settings.mocap_rate > 0.0:
            self._threads.append(PeriodicThread("motion capture", 1.0 / settings.mocap_rate, self.capture_markers))
        self._scanned: Array | None = None
        self._scanned_at = -np.inf
        self._warm_up(robot)

    def start(self) -> None:
        """Open the port, start scanning and motion capture.

        Raises:
            SoftformError: If the port link cannot be made.
        """
        self.terminal.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop both and close the port once its host has left or a short while is over; harmless if not started."""
        for thread in self._threads:
            thread.stop(_PATIENCE)
        self.terminal.stop(_HOST_PATIENCE)

    @property
    def faults(self) -> list[str]:
        """What is wrong now, in sentences; empty while all is well."""
        found = [self.terminal.failure, *(thread.failure for thread in self._threads)]
        found += [self.membrane.failure, self.export_failure]
        return [fault for fault in found if fault is not None]

    def pressures(self) -> Array:
        """True pressure of each chamber, (k,) Pa gauge."""
        return self.terminal.firmware.pressures()[self._channels] * PA_PER_KPA

    def look(self) -> bool:
        """Bring the membrane up to the pressures of the moment and scan it if that is due; returns whether it was."""
        vertices, captured_at = self._shape(self.membrane.shape)
        now = time.monotonic()
        moved = self._scanned is None or float(np.abs(vertices - self._scanned).max()) > _CHANGED
        if not moved and now - self._scanned_at < LONGEST_WITHOUT_SCAN - 0.5 * self.settings.scan_period:
            return False
        self._scanned, self._scanned_at = vertices, now
        if self._on_surface is not None:
            self._on_surface(surface_points(vertices, self.membrane.faces), captured_at)
        scan = self.scanner.scan(vertices, self.membrane.faces)
        try:
            export_scan(self.settings.scan_folder, scan, captured_at, self.settings.keep_scans)
            self.export_failure = None
            self.scans += 1
        except SoftformError as error:
            self.export_failure = str(error)
        return True

    def capture_markers(self) -> None:
        """Capture the markers on the membrane as it is at the pressures of the moment."""
        vertices, captured_at = self._shape(self.membrane.shape_between_solves)
        positions = self.cameras.capture(vertices, captured_at)
        if self._on_markers is not None:
            self._on_markers(positions, captured_at, self.marker_frames)
        self.marker_frames += 1

    def _shape(self, shape: Callable[[Array], Array]) -> tuple[Array, float]:
        """What a way of asking the membrane says to the pressures of the moment, (V, 3) m, and that moment, s."""
        with self._one_at_a_time:
            now = time.time()
            return shape(self.pressures()), now

    def _warm_up(self, robot: Robot) -> None:
        """Compile before the board runs: compiling holds the interpreter and would stall the stream."""
        pressures = np.full(robot.degrees_of_freedom, _WARM_UP_PRESSURE)
        vertices = solve_equilibrium(self.membrane.membrane, pressures).vertices
        Scanner(self.scanner.description, self.scanner.pose, 0.1, 0).scan(vertices, self.membrane.faces)
        firmware = self.terminal.firmware
        firmware.receive(b"C\r\n", 0.0)
        firmware.advance(0.1)
        firmware.boot(0.1)


_THIRDS = (
    np.array([[7, 1, 1], [1, 7, 1], [1, 1, 7], [5, 2, 2], [2, 5, 2], [2, 2, 5], [4, 4, 1], [4, 1, 4], [1, 4, 4]]) / 9
)
"""Barycentric centres of the nine parts of a triangle whose sides are cut in three."""


def surface_points(vertices: Array, faces: NDArray[np.integer]) -> Array:
    """Dense points on a triangle mesh: its vertices and nine points in each triangle, (V + 9 F, 3) m."""
    inner = np.einsum("bc,fcd->fbd", _THIRDS, vertices[faces])
    return np.concatenate([vertices, inner.reshape(-1, 3)])
