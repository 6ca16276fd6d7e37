"""The virtual rig of a membrane: beside motion capture, a scanner that exports what it sees of the sheet."""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_core.bodies.membrane.equilibrium import solve_equilibrium
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_rig.device_pose import DevicePose
from softform_rig.faulty_scans import export_faulty_scan
from softform_rig.live_membrane import LiveMembrane
from softform_rig.markers import MARKERS, glue_markers, marker_layout
from softform_rig.motion_capture import MotionCapture
from softform_rig.plant import load_plant
from softform_rig.reality import Reality, board_sensors
from softform_rig.scanner import Scanner
from softform_rig.virtual_rig import OnMarkers, RigSettings, VirtualRig

Array = NDArray[np.float64]

LONGEST_WITHOUT_SCAN = 2.0  # s
_CHANGED = 2e-4  # m; a surface that moved less is not new to a scanner with as much noise
_COVERAGE = 1.1  # of the robot's half diagonal
_WARM_UP_PRESSURE = 200.0  # Pa


class MembraneRig(VirtualRig):
    """Board, membrane, scanner and motion capture of one reality.

    Attributes:
        membrane: The live membrane.
        export_failure: Why the last export failed, or None.

    Args:
        robot: The robot on the rig.
        reality: How it differs from the simulator.
        settings: Of the devices.
        on_surface: Called from the rig's thread with points of the true surface (n, 3) m and their time, s since the
            epoch, at every scan.
        on_markers: What to do with frames of motion capture.

    Raises:
        SoftformError: If reality, plant or registration do not fit.
    """

    def __init__(
        self,
        robot: Robot,
        reality: Reality,
        settings: RigSettings,
        on_surface: Callable[[Array, float], None] | None = None,
        on_markers: OnMarkers | None = None,
    ) -> None:
        """Build everything and compile what is compiled; nothing is opened yet."""
        self.membrane = LiveMembrane(robot, reality)
        rest, described = self.membrane.membrane.rest_vertices, reality.motion_capture
        places, seed = marker_layout(robot, MARKERS), settings.seed + 2
        glued = glue_markers(rest, self.membrane.faces, places, described.placement_error, seed)
        cameras = MotionCapture(described, glued, robot.base_markers, rest, seed)
        pose = DevicePose.from_list(settings.registration)
        radius = _COVERAGE * 0.5 * float(np.linalg.norm(robot.extent))
        self.scanner = Scanner(reality.scanner, pose, radius, settings.seed + 1)
        self.export_failure: str | None = None
        self._on_surface = on_surface
        self._scanned: Array | None = None
        self._scanned_at = -np.inf
        sensors = board_sensors(robot, reality, load_plant().sensor_noise, settings.seed)
        super().__init__(robot, sensors, self.membrane, cameras, settings, on_markers)
        self.every(settings.scan_period, "scanner", self.look)
        self._warm_up(robot)

    @property
    def devices(self) -> str:
        """As `VirtualRig.devices`."""
        return f"scans in {self.settings.scan_folder}, {super().devices}"

    @property
    def faults(self) -> list[str]:
        """What is wrong now, in sentences; empty while all is well."""
        return super().faults + ([self.export_failure] if self.export_failure is not None else [])

    def look(self) -> bool:
        """Bring the membrane up to the pressures of the moment and scan it if that is due; returns whether it was."""
        vertices, captured_at = self.look_at(self.membrane.shape)
        now = time.monotonic()
        moved = self._scanned is None or float(np.abs(vertices - self._scanned).max()) > _CHANGED
        if not moved and now - self._scanned_at < LONGEST_WITHOUT_SCAN - 0.5 * self.settings.scan_period:
            return False
        self._scanned, self._scanned_at = vertices, now
        if self._on_surface is not None:
            self._on_surface(surface_points(vertices, self.membrane.faces), captured_at)
        scan = self.scanner.scan(vertices, self.membrane.faces)
        try:
            folder, keep = self.settings.scan_folder, self.settings.keep_scans
            export_faulty_scan(folder, scan, captured_at, keep, self.schedule)
            self.export_failure = None
            self.scans += 1
        except SoftformError as error:
            self.export_failure = str(error)
        return True

    def _warm_up(self, robot: Robot) -> None:
        """Compile solver and scanner before the board runs, as `VirtualRig` does."""
        pressures = np.full(len(robot.actuators), _WARM_UP_PRESSURE)
        vertices = solve_equilibrium(self.membrane.membrane, pressures).vertices
        Scanner(self.scanner.description, self.scanner.pose, 0.1, 0).scan(vertices, self.membrane.faces)


_THIRDS = (
    np.array([[7, 1, 1], [1, 7, 1], [1, 1, 7], [5, 2, 2], [2, 5, 2], [2, 2, 5], [4, 4, 1], [4, 1, 4], [1, 4, 4]]) / 9
)
"""Barycentric centres of the nine parts of a triangle whose sides are cut in three."""


def surface_points(vertices: Array, faces: NDArray[np.integer]) -> Array:
    """Dense points on a triangle mesh: its vertices and nine points in each triangle, (V + 9 F, 3) m."""
    inner = np.einsum("bc,fcd->fbd", _THIRDS, vertices[faces])
    return np.concatenate([vertices, inner.reshape(-1, 3)])
