"""A virtual rig without ROS: boards or buses on ports, a body that feels them, and devices that look at the body.

The board runs in its own thread on deadlines, and so does every device that looks at the body, so that a slow solve
never delays the stream. They ask the one body for its shape, in turn.
"""

import threading
import time
from collections.abc import Callable

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.periodic import PeriodicThread
from softform_core.robots import Robot
from softform_core.robots.devices import Device
from softform_rig.control import regulate
from softform_rig.emulation import LoadedDevice, SuppliedDevice, SupplyRelay, emulation_of
from softform_rig.fault_kinds import Fault
from softform_rig.fault_schedule import FaultEvent, FaultSchedule
from softform_rig.live_body import LiveBody
from softform_rig.markers import described_markers
from softform_rig.motion_capture import MotionCapture, check_marker_names, faulty_markers
from softform_rig.pseudo_terminal import PseudoTerminal
from softform_rig.reality import Reality
from softform_rig.rig_settings import RigSettings
from softform_rig.surface_scans import LONGEST_WITHOUT_SCAN, OnSurface, SurfaceScans

_PATIENCE = 2.0  # s to wait for a solve in progress when stopping
_LOAD_PERIOD = 0.05  # s
_MOVING = 0.01  # of the range between two scans
_HOST_PATIENCE = 1.5  # s that a driver that is stopped at the same moment may take to vent and close its port

OnMarkers = Callable[[Array, float, int], None]
"""Called from the rig's thread with the captured positions of `cameras.names`, in the system's own frame, m, NaN where
missing, their time, s since the epoch, and the number of the frame."""


class VirtualRig:
    """Boards or buses, body, motion capture and, of a robot with a surface, a scanner; of one reality.

    Attributes:
        marker_frames: Number of frames captured so far.
        body: The simulated body.
        cameras: The motion-capture system.
        scanning: The scanner; None without a surface.
        quantity: Quantity of the actuators, and its unit.
        schedule: Schedule of the faults of capture devices, and of the board or bus if there is only one.
        terminals: Ports of boards or buses, in the order of the description.

    Args:
        robot: The robot on the rig.
        reality: Differences from the simulator.
        settings: Settings of the devices.
        on_surface: Called with the true surface at every scan.
        on_markers: Called with frames of motion capture.

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
        worn = described_markers(robot, self.body, described.placement_error, seed)
        self.cameras = MotionCapture(described, worn, robot.base_markers, self.body.rest, seed)
        self.marker_frames = 0
        for fault in settings.faults:
            check_marker_names(fault, self.cameras.names)
        self._robot = robot
        self._moving = _MOVING * (robot.actuator_max - robot.actuator_min)
        self._looked_at = np.zeros(len(robot.actuators))
        planned = [(self._place_of(fault), fault) for fault in settings.faults]
        names = [""] if len(robot.devices) == 1 else ["", *(device.name for device in robot.devices)]
        self._schedules = {name: FaultSchedule([fault for place, fault in planned if place == name]) for name in names}
        self.schedule = self._schedules[""]
        self.terminals = [self._terminal(device, reality) for device in robot.devices]
        relays = [terminal.firmware for terminal in self.terminals if isinstance(terminal.firmware, SupplyRelay)]
        for terminal in self.terminals:
            if isinstance(terminal.firmware, SuppliedDevice):
                terminal.firmware.is_supplied = lambda: all(relay.is_closed for relay in relays)
        self.quantity = f"{robot.quantity if len(set(robot.actuator_quantities)) == 1 else 'value'}s ({robot.unit})"
        self._on_markers = on_markers
        self._one_at_a_time = threading.Lock()
        self._threads: list[PeriodicThread] = []
        if settings.mocap_rate > 0.0:
            self._every(1.0 / settings.mocap_rate, "motion capture", self.capture_markers)
        buses = [(d, t.firmware) for d, t in zip(robot.devices, self.terminals, strict=True)]
        self._motors = [(robot.served_by(device), bus) for device, bus in buses if isinstance(bus, LoadedDevice)]
        if self._motors:
            self._every(_LOAD_PERIOD, "load of the motors", self._load)
        self.scanning: SurfaceScans | None = None
        if robot.surfaces:
            of_surface = reality.scanner, self.body.faces, settings, self.schedule, on_surface
            self.scanning = SurfaceScans(robot, *of_surface)
            self._every(settings.scan_period, "scanner", self.look)
        # Compiling holds the interpreter and would stall the stream: it is done before the board runs.
        self._warm_up_boards()
        self.body.warm_up(self.cameras.positions if self.scanning is None else self.scanning.warm_up)
        if self._motors:
            self._load()

    def start(self) -> None:
        """Open the port, start the devices.

        Raises:
            SoftformError: If a port's link cannot be made; no port is left open then.
        """
        for schedule in self._schedules.values():
            schedule.begin()
        try:
            for terminal in self.terminals:
                terminal.start()
        except SoftformError:
            self.stop()
            raise
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop them and close the port once its host has left or a short while is over; harmless if not started."""
        for thread in self._threads:
            thread.stop(_PATIENCE)
        for terminal in self.terminals:
            terminal.stop(_HOST_PATIENCE)

    def inject(self, fault: Fault) -> None:
        """Let something go wrong; its start counts from now.

        Raises:
            SoftformError: If it names a marker that is not there or, of several devices, none that is.
        """
        check_marker_names(fault, self.cameras.names)
        self._schedules[self._place_of(fault)].inject(fault)

    def clear_faults(self) -> None:
        """End all faults now, and drop those to come."""
        for schedule in self._schedules.values():
            schedule.clear()

    def fault_events(self) -> list[FaultEvent]:
        """What has happened to faults since the last call, in order of time."""
        events = [event for schedule in self._schedules.values() for event in schedule.events()]
        return sorted(events, key=lambda event: event.time)

    @property
    def faults_on(self) -> list[Fault]:
        """Faults that last and are on now."""
        return [fault for schedule in self._schedules.values() for fault in schedule.all_on()]

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
        found = [*(terminal.failure for terminal in self.terminals), *(thread.failure for thread in self._threads)]
        found.append(self.body.failure)
        found += [] if self.scanning is None else [self.scanning.failure]
        return [fault for fault in found if fault is not None]

    def actuator_values(self) -> Array:
        """True value of each actuator, (k,) in its unit."""
        values = np.empty(len(self._robot.actuators))
        for device, terminal in zip(self._robot.devices, self.terminals, strict=True):
            values[self._robot.served_by(device)] = terminal.firmware.actuator_values(device.channels)
        return values

    def look(self) -> bool:
        """Scan the body at the present actuator values if that is due; returns whether it was scanned.

        A body whose solve once took longer than scans may be apart is not looked at while it moves: what is waited for
        is its shape at rest, which would come a solve later.
        """
        values = self.actuator_values()
        is_moving, self._looked_at = bool((np.abs(values - self._looked_at) > self._moving).any()), values
        if self.body.slowest_solve > LONGEST_WITHOUT_SCAN and is_moving:
            return False
        return self.scanning is not None and self.scanning.look(*self._look_at(self.body.shape_between_solves))

    def capture_markers(self) -> None:
        """Capture the markers on the body at the present actuator values."""
        shape, captured_at = self._look_at(self.body.shape_between_solves)
        positions = faulty_markers(self.cameras.capture(shape, captured_at), self.cameras.names, self.schedule)
        if self._on_markers is not None and positions is not None:
            self._on_markers(positions, captured_at, self.marker_frames)
        self.marker_frames += 1

    def _look_at(self, shape: Callable[[Array], Array]) -> tuple[Array, float]:
        """Result of a query of the body at the present actuator values, and their time, s since the epoch."""
        with self._one_at_a_time:
            now = time.time()
            return shape(self.actuator_values()), now

    def _load(self) -> None:
        """Let the motors feel their tendons."""
        self._look_at(self.body.shape)
        loads = self.body.tendon_loads()
        for served, bus in self._motors:
            bus.loads = None if loads is None else loads.of(served)

    def _every(self, period: float, name: str, act: Callable[[], object]) -> None:
        """Let a device act every `period` s while the rig runs."""
        self._threads.append(PeriodicThread(name, period, act))

    def _terminal(self, device: Device, reality: Reality) -> PseudoTerminal:
        """The port of one device; of several each has its name behind that of port, and of the wire's log."""
        settings, several = self.settings, len(self._robot.devices) > 1
        emulation = emulation_of(self._robot, device)
        behind = f"_{device.name}" if several else ""
        return PseudoTerminal(
            emulation.make(self._robot, device, reality.errors_of(emulation), settings),
            settings.port_link.with_name(settings.port_link.name + behind),
            self._schedules[device.name if several else ""],
            settings.seed,
            settings.wire_log and settings.wire_log.with_name(settings.wire_log.name + behind),
            device.channels,
        )

    def _place_of(self, fault: Fault) -> str:
        """The schedule of a fault: that of one of several devices, or the common one."""
        names = [device.name for device in self._robot.devices]
        if fault.kind.device in ("motion capture", "scanner") or (len(names) == 1 and fault.device in ("", *names)):
            return ""
        if fault.device not in names:
            raise SoftformError(
                f"'{fault}' does not say which device fails.", f"Write {' or '.join(f'{n}/' for n in names)} before it."
            )
        return fault.device

    def _warm_up_boards(self) -> None:
        regulate(np.zeros(1), np.zeros(1), 0.0, np.zeros(1), np.zeros(1), np.zeros(1, dtype=bool))
        for terminal in self.terminals:
            terminal.firmware.advance(0.1)
            terminal.firmware.boot(0.1)
