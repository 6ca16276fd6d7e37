"""Finding out which board is on a port, and making the one that is asked for."""

from collections.abc import Callable, Sequence

from softform_actuation.device import DeviceError, never
from softform_actuation.serial_link import SerialLink
from softform_pneumatics.boards import protocol_a, protocol_b, protocol_binary
from softform_pneumatics.boards.ascii_board import ATTEMPTS, BOOT_SECONDS, REPLY_SECONDS, first_attempts
from softform_pneumatics.boards.binary_board import HIGHEST_PRESSURE, BinaryBoard
from softform_pneumatics.boards.interface import PressureBoard
from softform_pneumatics.boards.lines import BAUD_RATE
from softform_pneumatics.boards.openpneu_a import OpenPneuBoardA
from softform_pneumatics.boards.openpneu_b import OpenPneuBoardB

AUTO, PROTOCOL_A, PROTOCOL_B, BINARY = "auto", "openpneu_a", "openpneu_b", "binary"
BOARDS = (AUTO, PROTOCOL_A, PROTOCOL_B, BINARY)


def make_board(
    kind: str,
    port: str,
    channels: Sequence[int],
    vent_threshold: float,
    highest_pressure: float = HIGHEST_PRESSURE,
    interrupted: Callable[[], bool] = never,
) -> PressureBoard:
    """Return the board of this kind on `port`, closed; `auto` opens the port to find out, and leaves it open.

    Args:
        kind: One of `BOARDS`.
        port: The port.
        channels: Channels of the robot's chambers.
        vent_threshold: Excess over the target at which a channel is vented, Pa, where that can be set.
        highest_pressure: Pa; beyond it a board that watches over that vents by itself.
        interrupted: Gives up once it says so.

    Raises:
        PortError: If the port has to be opened and cannot be.
        DeviceError: If no known board is there, or no board is called so.
    """
    if kind not in BOARDS:
        raise DeviceError(f"There is no board '{kind}'.", f"Known: {', '.join(BOARDS)} (docs/boards.md).")
    link = SerialLink(port)
    if kind == AUTO:
        try:
            kind = identify(link, interrupted=interrupted)
        except BaseException:
            link.close(emergency=False)
            raise
    boards: dict[str, Callable[[], PressureBoard]] = {
        PROTOCOL_A: lambda: OpenPneuBoardA(link, vent_threshold),
        PROTOCOL_B: lambda: OpenPneuBoardB(link, channels),
        BINARY: lambda: BinaryBoard(link, channels, highest_pressure),
    }
    return boards[kind]()


def identify(link: SerialLink, boot_seconds: float = BOOT_SECONDS, interrupted: Callable[[], bool] = never) -> str:
    """Return which kind of board is on the link, which is left open at that board's speed.

    Only `AT` and WHO are sent, which the other kinds take for nothing they know.

    Raises:
        PortError: If the port cannot be opened.
        DeviceError: If no known board is there.
    """
    link.open(BAUD_RATE)
    kind = _listen(link, boot_seconds, interrupted) or _ask_alive(link, first_attempts(boot_seconds), interrupted)
    if kind is not None:
        return kind
    seen = link.first_bytes
    link.close(emergency=False)
    link.open(protocol_binary.BAUD_RATE)
    if _ask_who(link):
        return BINARY
    seen = (seen + link.first_bytes)[:64]
    if not seen:
        raise DeviceError(
            f"Nothing answers on {link.path} at {BAUD_RATE} or {protocol_binary.BAUD_RATE} baud.",
            "Check the board's power and cable, and that 'port' names the right device.",
        )
    raise DeviceError(
        f"What is on {link.path} does not speak any protocol that is known ({', '.join(BOARDS[1:])}); its first bytes "
        f"are {seen!r}.",
        "Check that 'port' names the board; docs/boards.md says what each board speaks.",
    )


def _listen(link: SerialLink, seconds: float, interrupted: Callable[[], bool]) -> str | None:
    stream = protocol_a.StreamParser()
    booted = link.clock.now() + seconds
    while (remaining := booted - link.clock.now()) > 0.0 and not interrupted():
        if any(isinstance(message, protocol_a.StreamLine) for message in stream.feed(link.receive(remaining))):
            # A driver that died left it holding pressure.
            link.write(protocol_a.VENT_REQUEST)
            return PROTOCOL_A
    return None


def _ask_alive(link: SerialLink, attempts: int, interrupted: Callable[[], bool]) -> str | None:
    stream, replies = protocol_a.StreamParser(), protocol_b.ReplyParser()
    for _ in range(attempts):
        if interrupted():
            raise DeviceError(f"Opening {link.path} was interrupted.", "Configure again if that is meant.")
        link.write(protocol_a.ALIVE_REQUEST)
        deadline = link.clock.now() + REPLY_SECONDS
        while (remaining := deadline - link.clock.now()) > 0.0:
            data = link.receive(remaining)
            if protocol_a.Reply(protocol_a.ReplyKind.ALIVE) in stream.feed(data):
                return PROTOCOL_A
            if protocol_b.Reply(protocol_b.ReplyKind.DONE) in replies.feed(data):
                return PROTOCOL_B
    return None


def _ask_who(link: SerialLink) -> bool:
    parser = protocol_binary.PacketParser()
    for attempt in range(ATTEMPTS):
        for module in range(1, protocol_binary.MOST_MODULES + 1):
            link.write(protocol_binary.request(module, protocol_binary.Command.WHO, attempt))
            deadline = link.clock.now() + REPLY_SECONDS / protocol_binary.MOST_MODULES
            while (remaining := deadline - link.clock.now()) > 0.0:
                for answer in parser.feed(link.receive(remaining)):
                    if answer.command is protocol_binary.Command.WHO and answer.words[0] == protocol_binary.MARK:
                        return True
    return False
