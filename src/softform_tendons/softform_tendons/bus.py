"""Requests to the motors of one bus, and their answers."""

from collections.abc import Callable, Sequence

from softform_actuation.device import DeviceError
from softform_actuation.serial_link import SerialLink
from softform_tendons import protocol
from softform_tendons.protocol import Status, StatusReader
from softform_tendons.registers import HARDWARE_ERROR

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

    def read_all(self, motors: Sequence[int], address: int, length: int) -> dict[int, Status]:
        """Registers of all motors that answer.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        answers = self._ask(protocol.sync_read(motors, address, length), len(motors))
        return {answer.motor: answer for answer in answers if len(answer.parameters) == length}

    def hardware_error(self, motor: int) -> int:
        """Why a motor has shut down; 0 if it has not, or does not answer.

        Raises:
            DeviceLostError: If the connection is gone.
        """
        answers = self._ask(protocol.read(motor, HARDWARE_ERROR, 1), 1)
        return answers[0].parameters[0] if answers and answers[0].parameters else 0

    def set(self, motor: int, address: int, data: bytes) -> None:
        """Set registers of one motor, which has to acknowledge.

        Raises:
            DeviceLostError: If the connection is gone.
            DeviceError: If it does not answer, or rejects them.
        """
        for _ in range(_TRIES):
            answers = self._ask(protocol.write(motor, address, data), 1)
            if answers and answers[0].motor == motor:
                if answers[0].is_rejection:
                    raise DeviceError(
                        f"Motor {motor} rejects the value {data.hex()} of register {address} "
                        f"(error {answers[0].error & ~protocol.ALERT}).",
                        "Check its model and its operating mode.",
                    )
                return
        raise DeviceError(f"Motor {motor} does not answer.", "Check its plugs and its supply.")

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
