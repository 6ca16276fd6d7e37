"""A scripted board: it answers, streams and misbehaves as a test tells it to."""

import contextlib
import os
import select
import threading
import time
import tty

import numpy as np

from softform_actuation.clock import Clock


class ScriptedBoard:
    """Ten channels with first-order dynamics, and switches for everything that may go wrong."""

    TICK = 0.01
    TIME_CONSTANT = 0.03

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.targets = np.zeros(10)  # kPa
        self.pressures = np.zeros(10)  # kPa
        self.regulates = np.ones(10, dtype=bool)
        self.leaks = np.zeros(10, dtype=bool)
        self.overshoots: dict[int, float] = {}  # channel -> kPa, whatever its target
        self.offsets = np.zeros(10)  # kPa, of the sensors
        self.steady_error = 0.0  # kPa that an inflated chamber stays below its target
        self.shown_as: dict[int, float] = {}  # channel -> kPa that its sensor shows, whatever its pressure
        self.stopped = False  # by PP, until the next T=
        self.paired = False
        self.runs = False
        self.silent = False  # no reply at all
        self.stalls = False  # no stream line
        self.ignores_vent = False
        self.lose_targets = 0  # how many T= to lose
        self.address = b"OpenPneu2.0"
        self.greeting = b""  # sent again and again, as another device would
        self.noise = b""  # put before each stream line
        self.threshold = 2.0
        self.channel = 0
        self.requests: list[tuple[float, str]] = []

    def say(self, data: bytes) -> None:
        """Send these bytes, whatever else it does."""
        raise NotImplementedError

    def _send(self, data: bytes) -> None:
        if not self.silent:
            self.say(data)

    def _answer(self, line: bytes) -> None:
        text = line.decode("latin-1")
        self.requests.append((self._clock.now(), text.rstrip("\r")))
        if not text.endswith("\r"):
            self._send(b"Error end check\r\n")
            return
        request, _, value = text.rstrip("\r").partition("=")
        match request:
            case "AT":
                self._send(b"OK;Successful\r\n")
            case "AT+VERSION":
                self._send(b"Version 2.0OK\r\n")
            case "AT+ADDRESS":
                self._send(self.address + b"\r\n")
            case "AT+PRESSURE":
                self._send(b"%.2f\r\n" % self.pressures[0])
            case "SC":
                self.channel = int(value)
                self._send(b"Global Channel is %d\r\n" % self.channel)
            case "T":
                if self.lose_targets > 0:
                    self.lose_targets -= 1
                    return
                self.targets[self.channel] = float(value)
                self.stopped = False
                if self.paired:
                    self.targets[self.channel ^ 1] = float(value)
            case "ST":
                self.threshold = float(value)
                self._send(b"Global Threshold is %.2f\r\n" % self.threshold)
            case "C":
                self.runs = True
                self._send(b"Timer Starts...\r\n")
            case "PP":
                self.stopped = True
            case "V":
                if not self.ignores_vent:
                    self.runs = False
                    self._send(b"Timer Pauses...\r\nStop All Motors\r\n")
            case _:
                self._send(b"Error command\r\n")

    def _regulate(self) -> None:
        # It regulates what its sensors show.
        reached = self.targets - self.offsets - np.where(self.targets > self.steady_error, self.steady_error, 0.0)
        wanted = np.where(self.regulates & ~self.leaks, reached, 0.0)
        goal = wanted if self.runs and not self.stopped else np.zeros(10)
        for channel, pressure in self.overshoots.items():
            goal[channel] = pressure if self.runs else 0.0
        self.pressures += (goal - self.pressures) * self.TICK / self.TIME_CONSTANT
        if self.greeting:
            self._send(self.greeting)
        if self.runs and not self.stalls:
            shown = np.repeat(self.pressures[::2], 2) if self.paired else self.pressures + self.offsets
            for channel, pressure in self.shown_as.items():
                shown[channel] = pressure
            self._send(self.noise + b"T" + ",".join(f"{p:.2f}" for p in shown).encode() + b";\r\n")

    def behave_as_shipped(self) -> None:
        """Targets and sensors in pairs; only channels 2 and 3 regulate."""
        self.paired = True
        self.regulates[:] = False
        self.regulates[2:4] = True

    def requests_since(self, moment: float, text: str) -> int:
        """Count requests equal to `text` that came after `moment`, s of its clock."""
        return sum(when >= moment and request == text for when, request in list(self.requests))


class TerminalBoard(ScriptedBoard, threading.Thread):
    """On a real pseudo-terminal, in real time."""

    def __init__(self) -> None:
        ScriptedBoard.__init__(self, Clock())
        threading.Thread.__init__(self, daemon=True)
        self._master, slave = os.openpty()
        tty.setraw(self._master)
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave: int | None = slave
        self._ended = threading.Event()

    def run(self) -> None:
        pending = b""
        next_tick = time.monotonic()
        while not self._ended.is_set():
            try:
                ready, _, _ = select.select([self._master], [], [], max(0.0, next_tick - time.monotonic()))
                if ready:
                    pending += os.read(self._master, 4096)
                    *lines, pending = pending.split(b"\n")
                    for line in lines:
                        self._answer(line)
                if time.monotonic() >= next_tick:
                    next_tick += self.TICK
                    self._regulate()
            except OSError:
                return

    def say(self, data: bytes) -> None:
        os.write(self._master, data)

    def unplug(self) -> None:
        """Hang the terminal up, as a pulled cable does."""
        self._ended.set()
        self.join(2.0)
        for descriptor in (self._master, self._slave):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._slave = None
