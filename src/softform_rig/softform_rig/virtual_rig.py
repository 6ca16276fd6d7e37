"""A virtual rig without ROS: a board on a port, a body that feels its pressures, and devices that look at the body.

The board runs in its own thread on deadlines, and so does every device that looks at the body, so that a slow solve
never delays the stream. They ask the one body for its shape, in turn.
"""

import threading
import time
from collections.abc import Callable

import numpy as np

from softform_core.arrays import Array
from softform_core.periodic import PeriodicThread
from softform_core.robots import Robot
from softform_rig.control import regulate
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import Fault
from softform_rig.faulty_markers import check_marker_names, faulty_markers
from softform_rig.live_body import LiveBody
from softform_rig.make_device import make_device
from softform_rig.markers import worn_markers
from softform_rig.motion_capture import MotionCapture
from softform_rig.motor_bus import MotorBus
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_rig.reality import Reality
from softform_rig.rig_settings import RigSettings
from softform_rig.surface_scans import OnSurface, SurfaceScans

_PATIENCE = 2.0  # s to wait for a solve in progress when stopping
_LOAD_PERIOD = 0.05  # s
_HOST_PATIENCE = 1.5  # s that a driver that is stopped at the same moment may take to vent and close its port

OnMarkers = Callable[[Array, float, int], None]
"""Called from the rig's thread with the captured positions of `cameras.names`, in the system's own frame, m, NaN where
missing, their time, s since the epoch, and the number of the frame."""


class VirtualRig:
    """Board, body, motion capture and, of a robot with a surface, a scanner; of one reality.

    Attributes:
        marker_frames: Number of frames captured so far.
        body: What feels the pressures.
        cameras: The motion-capture system.
        scanning: The scanner; None without a surface.
        quantity: What the actuators give, and its unit.
        schedule: Of the faults of all devices; more may be injected at any time.

    Args:
        robot: The robot on the rig.
        reality: How it differs from the simulator.
        settings: Of the devices.
        on_surface: What to do with the true surface at every scan.
        on_markers: What to do with frames of motion capture.

    Raises:
        SoftformError: If reality, plant or registration do not fit, or a fault names a marker that is not there.
    """

    def __init__(
        self,
        robot: Robot,
        reality: Reality,
        settings: RigSettings,
        on_surface: OnSurface | None = None,
        on_markers: OnMarkers | None = None,
    ) -> None:
        """Build everything and compile what is compiled; nothing is opened yet."""
        self.settings, self.body = settings, LiveBody(robot, reality)
        described, seed = reality.motion_capture, settings.seed + 2
        worn = worn_markers(robot, self.body, described.placement_error, seed)
        self.cameras = MotionCapture(described, worn, robot.base_markers, self.body.rest, seed)
        self.marker_frames = 0
        for fault in settings.faults:
            check_marker_names(fault, self.cameras.names)
        self.schedule = FaultSchedule(settings.faults)
        firmware = make_device(robot, reality, settings)
        self.terminal = PseudoTerminal(firmware, settings.port_link, self.schedule, settings.seed, settings.wire_log)
        self._channels = robot.channels
        self.quantity = f"{robot.quantity}s ({robot.unit})"
        self._on_markers = on_markers
        self._one_at_a_time = threading.Lock()
        self._threads: list[PeriodicThread] = []
        if settings.mocap_rate > 0.0:
            self._every(1.0 / settings.mocap_rate, "motion capture", self.capture_markers)
        if isinstance(firmware, MotorBus):
            self._every(_LOAD_PERIOD, "load of the motors", lambda: self._load(firmware))
        self.scanning: SurfaceScans | None = None
        if robot.surfaces:
            of_surface = reality.scanner, self.body.faces, settings, self.schedule, on_surface
            self.scanning = SurfaceScans(robot, *of_surface)
            self._every(settings.scan_period, "scanner", self.look)
        # Compiling holds the interpreter and would stall the stream: it is done before the board runs.
        self._warm_up_board()
        self.body.warm_up(self.cameras.positions if self.scanning is None else self.scanning.warm_up)
        if isinstance(firmware, MotorBus):
            self._load(firmware)

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
        cameras = f"motion capture at {rate:g} Hz" if rate else "no motion capture"
        return cameras if self.scanning is None else f"scans in {self.settings.scan_folder}, {cameras}"

    @property
    def scans(self) -> int:
        """Scans exported so far."""
        return 0 if self.scanning is None else self.scanning.count

    @property
    def faults(self) -> list[str]:
        """What is wrong now, in sentences; empty while all is well."""
        found = [self.terminal.failure, *(thread.failure for thread in self._threads), self.body.failure]
        found += [] if self.scanning is None else [self.scanning.failure]
        return [fault for fault in found if fault is not None]

    def actuator_values(self) -> Array:
        """True value of each actuator, (k,) in its unit."""
        return self.terminal.firmware.actuator_values(self._channels)

    def look(self) -> bool:
        """Bring the body up to the pressures of the moment and scan it if that is due; returns whether it was."""
        return self.scanning is not None and self.scanning.look(*self._look_at(self.body.shape))

    def capture_markers(self) -> None:
        """Capture the markers on the body as it is at the pressures of the moment."""
        shape, captured_at = self._look_at(self.body.shape_between_solves)
        positions = faulty_markers(self.cameras.capture(shape, captured_at), self.cameras.names, self.schedule)
        if self._on_markers is not None and positions is not None:
            self._on_markers(positions, captured_at, self.marker_frames)
        self.marker_frames += 1

    def _look_at(self, shape: Callable[[Array], Array]) -> tuple[Array, float]:
        """What a way of asking the body says to the pressures of the moment, and that moment, s since the epoch."""
        with self._one_at_a_time:
            now = time.time()
            return shape(self.actuator_values()), now

    def _load(self, motors: MotorBus) -> None:
        """Let the motors feel their tendons."""
        self._look_at(self.body.shape)
        motors.loads = self.body.tendon_loads()

    def _every(self, period: float, name: str, act: Callable[[], object]) -> None:
        """Let a device act every `period` s while the rig runs."""
        self._threads.append(PeriodicThread(name, period, act))

    def _warm_up_board(self) -> None:
        regulate(np.zeros(1), np.zeros(1), 0.0, np.zeros(1), np.zeros(1), np.zeros(1, dtype=bool))
        self.terminal.firmware.advance(0.1)
        self.terminal.firmware.boot(0.1)
