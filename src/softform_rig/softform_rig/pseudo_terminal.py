"""Serve the emulated board on a pseudo-terminal, behind a symbolic link where a driver expects its serial port.

The rate of the line is not simulated. Opening the port restarts a board that does so; closing it does not
stop the board, which has no watchdog. What the host does not read is lost, as on a real line.
"""

import contextlib
import logging
import os
import select
import threading
import time
import tty
from collections.abc import Sequence
from pathlib import Path

from softform_core import priority
from softform_core.claims import ClaimedError, claim
from softform_core.errors import SoftformError
from softform_rig.control import CONTROL_RATE
from softform_rig.emulation import EmulatedDevice
from softform_rig.fault_schedule import FaultSchedule
from softform_rig.faults import parse_fault
from softform_rig.faulty_board import FaultyBoard
from softform_rig.wire_log_writer import WireLogWriter

_log = logging.getLogger(__name__)

_STOOD_STILL_SECONDS = 0.3  # late; after half a second without an answer a driver takes the board for deaf
_CHUNK = 4096
_LEAVING_POLL = 0.02  # s
_PULLED_POLL = 0.005  # s
_PULLED_SECONDS = 10.0


class PseudoTerminal:
    """A board on a pseudo-terminal with a thread of its own.

    Args:
        firmware: the board.
        link: path of the symbolic link to make; a link that is there is replaced, anything else is rejected.
        schedule: Schedule of the faults of board, line and air; none by default.
        seed: Seed of the losses of a faulty line.
        wire_log: where what arrives is logged, and the true values of `channels`; nowhere if not given.
        channels: Channels of the board whose actuators are the robot's.
    """

    def __init__(
        self,
        firmware: EmulatedDevice,
        link: Path,
        schedule: FaultSchedule | None = None,
        seed: int = 0,
        wire_log: Path | None = None,
        channels: Sequence[int] = (),
    ) -> None:
        self.firmware, self._channels = firmware, list(channels)
        self.board = FaultyBoard(firmware, schedule, seed)
        self.link = link
        self._wire = WireLogWriter(wire_log)
        self.failure: str | None = None
        self._master: int | None = None
        self._device = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def connected(self) -> bool:
        """Whether a host has the port open."""
        master = self._master
        return master is not None and not _hung_up(master)

    def start(self) -> None:
        """Open the terminal, make the link, start serving.

        Raises:
            SoftformError: If the link cannot be made, or another rig of this machine serves it.
        """
        if self._thread is not None:
            raise SoftformError(f"The board at {self.link} is served already.", "Stop it first.")
        try:
            held = claim(f"port {self.link.absolute()}", 0)
        except ClaimedError as error:
            raise SoftformError(
                f"Another rig serves {self.link} ({error.holder}).",
                "End that one, or give this one another port_link (of a launch: another run_dir).",
            ) from error
        with held:
            self._plug_in()
            self._held = held.dup()
        self._stop.clear()
        self._thread = threading.Thread(target=self._serve, name="openpneu-board", daemon=True)
        self._thread.start()

    def stop(self, patience: float = 0.0) -> None:
        """Stop serving, close the terminal (the host sees a disconnect), remove the link. Harmless if not started.

        Args:
            patience: s to go on serving a host that still has the port open: a driver that is asked to stop at the same
                moment wants an answer to its last request, to vent.
        """
        deadline = time.monotonic() + patience
        while self.connected and time.monotonic() < deadline:
            time.sleep(_LEAVING_POLL)
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._held.close()
        self._unplug()

    def pull_cable(self) -> None:
        """Disconnect, by the fault of that name; returns once the port is gone. The board keeps its power.

        Raises:
            SoftformError: If the port stays.
        """
        self.board.schedule.inject(parse_fault("disconnect"))
        deadline = time.monotonic() + _PULLED_SECONDS
        while self.link.is_symlink():
            if time.monotonic() > deadline:
                raise SoftformError(f"The port {self.link} is still there.", "Start the terminal before.")
            time.sleep(_PULLED_POLL)

    def plug_in(self) -> None:
        """End all faults: the port comes back."""
        self.board.schedule.clear()

    def _plug_in(self) -> None:
        """Open a terminal and make the link.

        Raises:
            SoftformError: If the link cannot be made; then there is no terminal either.
        """
        master, slave = os.openpty()
        tty.setraw(slave)
        self._device = os.ttyname(slave)
        os.close(slave)  # from here on a hang-up of the master tells that no host has the port open
        os.set_blocking(master, False)
        try:
            _replace_link(self.link, self._device)
        except SoftformError:
            os.close(master)
            raise
        self._master = master

    def _unplug(self) -> None:
        """Remove the link and close the terminal: the host sees a disconnect."""
        with contextlib.suppress(OSError):
            if os.readlink(self.link) == self._device:
                self.link.unlink()
        if self._master is not None:
            os.close(self._master)
            self._master = None

    def _serve(self) -> None:
        priority.ask_for_priority(priority.EMULATED_BOARD)
        tick = 1.0 / CONTROL_RATE
        deadline = time.monotonic()
        was_open = False
        try:
            while not self._stop.is_set():
                deadline = max(deadline + tick, time.monotonic() - 1.0)
                self._follow_plug()
                is_open = self.connected
                if is_open != was_open:
                    self._wire.note_port(is_open)
                if is_open and not was_open and self.firmware.boots_on_open:
                    self.board.boot(time.monotonic())
                was_open = is_open
                self._exchange(deadline, is_open)
                late = time.monotonic() - deadline
                if late > _STOOD_STILL_SECONDS:
                    _log.warning(
                        "the emulated board at %s stood still for %.1f s, which its driver may take for a fault: this "
                        "computer does too much else",
                        self.link,
                        late,
                    )
        except Exception as error:  # a dead board thread must be seen by the node, not only in a traceback
            self.failure = f"{type(error).__name__}: {error}"
            raise

    def _follow_plug(self) -> None:
        """Pull the plug or put it back as the schedule of faults has it; the board keeps its power meanwhile."""
        pulled = self.board.schedule.on("disconnect")
        if pulled and self._master is not None:
            self._unplug()
            for fault in pulled:
                self.board.schedule.shows(fault)
        elif not pulled and self._master is None:
            self._plug_in()

    def _exchange(self, deadline: float, is_open: bool) -> None:
        while (left := deadline - time.monotonic()) > 0.0:
            if not is_open or self._master is None:
                self._stop.wait(left)
                break
            if not select.select([self._master], [], [], left)[0]:
                break
            try:
                data = os.read(self._master, _CHUNK)
            except OSError:  # the host closed the port
                is_open = False
                continue
            now = time.monotonic()
            self._wire.hear(data, now)
            self.board.receive(data, now)
            self._send(self.board.take_output())
        self.board.advance(now := time.monotonic())
        if self._channels:
            self._wire.note_values(now, self.firmware.actuator_values(self._channels))
        output = self.board.take_output()
        if is_open:
            self._send(output)

    def _send(self, output: bytes) -> None:
        if not output or self._master is None:
            return
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._master, output)


def _hung_up(master: int) -> bool:
    poll = select.poll()
    poll.register(master, 0)
    return any(event & (select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))


def _replace_link(link: Path, device: str) -> None:
    if os.path.lexists(link) and not link.is_symlink():
        raise SoftformError(f"{link} exists and is not a link.", "Give the rig another port_link.")
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        fresh = link.with_name(f".{link.name}.{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        fresh.symlink_to(device)
        fresh.replace(link)
    except OSError as error:
        raise SoftformError(f"The port link {link} cannot be made: {error}.", "Give a writable port_link.") from error
