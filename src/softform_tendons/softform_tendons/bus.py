"""Requests to the motors of one bus, and their answers."""

from collections.abc import Callable, Collection, Mapping, Sequence

from softform_actuation.device import DeviceError
from softform_actuation.serial_link import SerialLink
from softform_tendons import protocol
from softform_tendons.protocol import Status, StatusReader
from softform_tendons.registers import Register, amiss, block, decoded

ANSWER_SECONDS = 0.04
"""How long an answer may take: the latency timer of a USB adapter is 16 ms."""

_TRIES = 3

_SEARCH_SECONDS = 1.5
"""How long motors that do not answer are searched for: a busy machine may stop a process for tenths of a second."""


class Bus:
    """Motors on one line.

    Args:
        line: Serial line; it must be open while the bus is used.
    """

    def __init__(self, line: SerialLink) -> None:
        self._line = line
        self._reader = StatusReader()

    @property
    def damaged(self) -> int:
        """Number of answers so far that arrived damaged."""
        return self._reader.damaged

    def send(self, packet: bytes) -> None:
        """Send a packet that gets no reply.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        self._line.write(packet)

    def find(self, motors: Sequence[int], interrupted: Callable[[], bool]) -> tuple[dict[int, int], list[int]]:
        """Model numbers of the motors that answer, and the ids of those whose answers arrive damaged.

        Raises:
            DeviceLostError: If the connection is gone.
            DeviceError: If interrupted.
        """
        models: dict[int, int] = {}
        damaged: set[int] = set()
        missing, rounds, end = list(motors), 0, self._line.clock.now() + _SEARCH_SECONDS
        while missing and (rounds < _TRIES or self._line.clock.now() < end):
            rounds += 1
            for motor in missing:
                if interrupted():
                    raise DeviceError("The search for motors was interrupted.", "Configure the driver again.")
                before = self.damaged
                answers = self._ask(protocol.ping(motor), 1)
                if len(answers) == 1 and answers[0].motor == motor and len(answers[0].parameters) == 3:
                    models[motor] = int.from_bytes(answers[0].parameters[:2], "little")
                elif self.damaged > before:
                    damaged.add(motor)
            missing = [motor for motor in motors if motor not in models]
        return models, [motor for motor in missing if motor in damaged]

    def read(
        self, motors: Collection[int], registers: Sequence[Register], tries: int = 1
    ) -> dict[int, dict[Register, int]]:
        """Registers of all motors that answer; those that do not are asked again, up to `tries` times in all.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        begin, length = block(registers)
        found: dict[int, dict[Register, int]] = {}
        for _ in range(tries):
            if missing := [motor for motor in motors if motor not in found]:
                answers = self._ask(protocol.sync_read(missing, begin, length), len(missing))
                found |= {a.motor: decoded(a.parameters, registers) for a in answers if len(a.parameters) == length}
        return found

    def ensure(self, wanted: Mapping[int, Mapping[Register, int]]) -> dict[int, str]:
        """Set registers of motors and read them back, until all are as wanted; a few times.

        They are written in their order; only those that differ are.

        Returns:
            What is left of the motors that have not taken theirs, in words: empty if all is well.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        registers = tuple(dict.fromkeys(register for values in wanted.values() for register in values))
        left: dict[int, str] = {}
        for attempt in range(_TRIES + 1 if wanted else 0):
            found = self.read(wanted, registers)
            left = {m: what for m, values in wanted.items() if (what := amiss(found.get(m, {}), values))}
            if not left or attempt == _TRIES:
                break
            for one in registers:
                wrong = [m for m in left if one in wanted[m] and found.get(m, {}).get(one) != wanted[m][one]]
                if wrong:
                    self.send(protocol.sync_write([(m, one.encoded(wanted[m][one])) for m in wrong], one.address))
        return left

    def require(self, wanted: Mapping[int, Mapping[Register, int]]) -> None:
        """As `ensure`.

        Raises:
            DeviceLostError: If the connection is gone.
            DeviceError: If a motor has not taken what was wanted.
        """
        if left := self.ensure(wanted):
            told = "; ".join(f"motor {motor} has {what}" for motor, what in left.items())
            raise DeviceError(
                f"Motors do not take what they are told: {told}.", "Check their plugs, their supply and their model."
            )

    def _ask(self, packet: bytes, answers: int) -> list[Status]:
        """Send a request and collect its answers; what is left of earlier ones is dropped."""
        clock = self._line.clock
        while self._line.receive(0.0):
            pass
        self._reader.forget()
        self._line.write(packet)
        found: list[Status] = []
        deadline = clock.now() + ANSWER_SECONDS
        while len(found) < answers and (left := deadline - clock.now()) > 0.0:
            data = self._line.receive(left)
            fresh = self._reader.feed(data)
            if fresh:
                deadline = clock.now() + ANSWER_SECONDS
            found += fresh
        return found
