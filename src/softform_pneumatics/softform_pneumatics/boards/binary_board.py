"""Modules of four channels on one RS-485 bus, with a watchdog of their own: the binary board of docs/boards.md."""

import collections
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from softform_actuation.device import DeviceError, DeviceLostError, never
from softform_actuation.serial_link import SerialLink
from softform_core.arrays import Array
from softform_core.units import PA_PER_KPA
from softform_pneumatics.boards import protocol_binary as protocol
from softform_pneumatics.boards.interface import Measurement, PressureBoard
from softform_pneumatics.boards.protocol_binary import CHANNELS_OF_A_MODULE, Answer, Command, PacketParser, Status

WATCHDOG_SECONDS = 0.5
HIGHEST_PRESSURE = 689.0 * PA_PER_KPA
_REPLY_SECONDS = 0.04
_DEAF_SECONDS = 0.4
_ATTEMPTS = 5
_OBSERVING_SECONDS = 0.03


class BinaryBoard(PressureBoard):
    """The modules that a robot's channels lie on. They hold no vacuum; another firmware than OpenPneu's regulates.

    Channel n is valve n mod 4 of module 1 + n div 4. A module that measures more than `highest_pressure` (Pa) vents by
    itself.
    """

    baud_rate = protocol.BAUD_RATE
    emergency = protocol.request(protocol.ALL_MODULES, Command.VENT, 0)

    def __init__(self, link: SerialLink, channels: Sequence[int], highest_pressure: float = HIGHEST_PRESSURE) -> None:
        self._pairs = sorted({channel // 2 for channel in channels})
        self._modules = sorted({1 + pair // 2 for pair in self._pairs})
        count = CHANNELS_OF_A_MODULE * min(self._modules[-1], protocol.MOST_MODULES)
        self._parser = PacketParser()
        super().__init__(link, self._parser, np.zeros(count), np.full(count, HIGHEST_PRESSURE))
        self._highest_pressure = min(highest_pressure, HIGHEST_PRESSURE)
        self._sequences = itertools.cycle(range(256))
        self._answers: collections.deque[Answer] = collections.deque(maxlen=64)
        self._targets = np.zeros(count)
        self._pressures = np.zeros(count)
        self._first_pair = 0  # at which the next round of targets begins
        self._fresh: set[int] = set()  # pairs that have answered since the last measurement
        self._firmware: dict[int, str] = {}  # of each module
        self._observes = False
        self._deaf_since: dict[int, float] = {}

    @property
    def identity(self) -> str:
        """Which modules, on which port."""
        modules = ", ".join(f"{module}{self._firmware.get(module, '')}" for module in self._modules)
        return f"binary board (modules {modules}) on {self._link.path}"

    def _shake_hands(self, interrupted: Callable[[], bool]) -> None:
        for module in self._modules:
            self._ask_who(module)

    def _ask_who(self, module: int) -> None:
        try:
            answer = self._request(module, Command.WHO)
        except DeviceLostError:
            raise
        except DeviceError as error:
            raise DeviceError(
                f"Module {module} does not answer on {self._link.path} at {protocol.BAUD_RATE} baud; the first bytes "
                f"from there are {self._link.first_bytes!r}.",
                "Check power, wiring and address of the module, and the parameters 'port' and 'board'.",
            ) from error
        if (answer.argument, answer.words[0]) != (protocol.DEFINITION, protocol.MARK):
            raise DeviceError(
                f"Module {module} on {self._link.path} answers WHO with version {answer.argument} and mark "
                f"{answer.words[0]:#06x}.",
                f"This driver is for version {protocol.DEFINITION} and mark {protocol.MARK:#06x}.",
            )
        self._firmware[module] = f" with firmware {answer.words[1] >> 8}.{answer.words[1] & 0xFF}"

    def start(self, targets: Array) -> None:
        """Set watchdogs, highest pressures and targets (channels,) Pa, then regulate."""
        limits = (round(1000.0 * WATCHDOG_SECONDS), protocol.word_of_pressure(self._highest_pressure))
        with self._vented_if_it_fails():
            self._observes = False
            self._targets = targets.copy()
            self._deaf_since.clear()
            for module in self._modules:
                if self._request(module, Command.CONFIGURE, words=limits).words != limits:
                    raise DeviceError(f"Module {module} does not take its limits.", "Check its firmware.")
            for pair in self._pairs:
                self._request(1 + pair // 2, Command.SET, pair % 2, self._words(targets, pair))
            self._is_vented = False
            self._first_pair, self._fresh = 0, set()
            for module in self._modules:
                if not self._request(module, Command.START).status & Status.RUNNING:
                    raise DeviceError(f"Module {module} does not start.", "Check its supply and firmware.")
            self._measurements.clear()

    def set_targets(self, targets: Array, interrupted: Callable[[], bool] = never) -> bool:
        """Send the targets of every pair, and take the measured pressures from the answers; see `PressureBoard`.

        Raises:
            DeviceError: If a module vented by itself, booted, rejected a target, has a bad sensor, or has not answered
                for as long as its watchdog waits.
        """
        started = self.clock.now()
        self._targets = np.where(np.isnan(targets), self._targets, targets)
        complete = True
        first = self._first_pair
        for position in (*range(first, len(self._pairs)), *range(first)):
            pair = self._pairs[position]
            if interrupted():
                self._first_pair = position  # what was left comes first the next time
                return False
            module = 1 + pair // 2
            answer = self._ask(module, Command.SET, pair % 2, self._words(self._targets, pair))
            if answer is None:
                complete = False
                self._count_as_deaf(module, started)
                continue
            self._deaf_since.pop(module, None)
            self._require_running(answer)
            self._keep(pair, answer)
            self._fresh.add(pair)
            if len(self._fresh) == len(self._pairs):
                self._fresh.clear()
                self._measurements.append(Measurement(self._pressures.copy(), started))
        return complete

    def observe(self) -> None:
        """Ask for pressures from now on, without regulating."""
        self._measurements.clear()
        self._observes = True

    def vent(self) -> bool:
        """Vent all modules at once, then ask each until it says that it does not regulate.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        self._observes = False
        self._link.write(protocol.request(protocol.ALL_MODULES, Command.VENT, next(self._sequences)))
        try:
            answers = [self._request(module, Command.VENT) for module in self._modules]
        except DeviceLostError:
            raise
        except DeviceError:
            return False
        self._is_vented = not any(answer.status & Status.RUNNING for answer in answers)
        return self._is_vented

    def _gather(self, deadline: float) -> None:
        if self._observes and self._read_all():
            self._receive(_OBSERVING_SECONDS)
        else:
            self._receive(deadline - self.clock.now())

    def measure(self) -> dict[int, float]:
        """Ask for all pressures.

        Raises:
            DeviceError: If a module does not answer, or regulates although it was vented.
        """
        readings: dict[int, float] = {}
        for pair in self._pairs:
            answer = self._request(1 + pair // 2, Command.READ, pair % 2)
            if answer.status & Status.RUNNING:
                self._is_vented = False
                raise DeviceError(f"{self.identity} regulates although it was vented.", "Cut its power and check it.")
            for channel, word in zip((2 * pair, 2 * pair + 1), answer.words, strict=True):
                readings[channel] = protocol.pressure_of_word(word)
        return readings

    def _words(self, targets: Array, pair: int) -> tuple[int, int]:
        first, second = (protocol.word_of_pressure(float(target)) for target in targets[2 * pair : 2 * pair + 2])
        return first, second

    def _read_all(self) -> bool:
        started = self.clock.now()
        for pair in self._pairs:
            answer = self._ask(1 + pair // 2, Command.READ, pair % 2)
            if answer is None:
                return False
            self._keep(pair, answer)
        self._measurements.append(Measurement(self._pressures.copy(), started))
        return True

    def _keep(self, pair: int, answer: Answer) -> None:
        pressures = [protocol.pressure_of_word(word) for word in answer.words]
        if answer.status & Status.SENSOR_FAULT or not np.isfinite(pressures).all():
            raise DeviceError(f"A sensor of module {answer.module} has no valid reading.", "Check it, then reset.")
        self._pressures[2 * pair : 2 * pair + 2] = pressures

    def _require_running(self, answer: Answer) -> None:
        status = answer.status
        if status & Status.RUNNING and not status & Status.REFUSED:
            return
        if status & Status.TRIPPED:
            what = "vented by itself: its watchdog ran out, or a channel measured too high a pressure"
        elif status & Status.BOOTED:
            what = "has booted"
        elif status & Status.REFUSED:
            what = "rejected a target"
        else:
            what = "does not regulate"
        raise DeviceError(f"Module {answer.module} of {self.identity} {what}.", "Check power and wiring, then reset.")

    def _count_as_deaf(self, module: int, moment: float) -> None:
        since = self._deaf_since.setdefault(module, moment)
        if self.clock.now() - since > _DEAF_SECONDS:
            self._deaf_since.clear()
            raise DeviceError(f"Module {module} of {self.identity} does not answer.", "Check power and wiring.")

    def _request(self, module: int, command: Command, argument: int = 0, words: tuple[int, int] = (0, 0)) -> Answer:
        for _ in range(_ATTEMPTS):
            answer = self._ask(module, command, argument, words)
            if answer is not None:
                if command is not Command.WHO and answer.status & Status.REFUSED:
                    self._rejected_requests += 1
                    raise DeviceError(f"Module {module} rejected {command.name}.", "Check its firmware and supply.")
                return answer
        raise DeviceError(f"Module {module} does not answer {command.name}.", "Check power and wiring.")

    def _ask(self, module: int, command: Command, argument: int = 0, words: tuple[int, int] = (0, 0)) -> Answer | None:
        """Send once and return the module's answer; None if it does not come in time."""
        sequence = next(self._sequences)
        self._answers.clear()
        self._link.write(protocol.request(module, command, sequence, argument, words))
        deadline = self.clock.now() + _REPLY_SECONDS
        while (remaining := deadline - self.clock.now()) > 0.0:
            self._receive(remaining)
            while self._answers:
                answer = self._answers.popleft()
                if (answer.module, answer.command, answer.sequence) == (module, command, sequence):
                    return answer
        self._unanswered_requests += 1
        return None

    def _receive(self, timeout: float) -> None:
        self._answers.extend(self._parser.feed(self._link.receive(timeout)))
