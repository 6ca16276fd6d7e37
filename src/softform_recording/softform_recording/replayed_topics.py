"""What of a bag is replayed, and as what: parts of a rotated recording, topics, types, quality of service."""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.qos import QoSProfile
from rosbags.interfaces import Connection, ConnectionExtRosbag2, Qos
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.errors import ReaderError

from softform_core.errors import SoftformError
from softform_recording.earlier_messages import conversion_of
from softform_recording.message_definitions import is_of_todays_form
from softform_recording.parts import part_folders
from softform_recording.qos_profiles import writer_of
from softform_recording.salvage import is_closed, salvage_bag

COMMANDS = ("actuator_command", "stop", "reset")
"""Last parts of the names of topics that move hardware, or let it move; those of actions do, too."""


@dataclass(frozen=True)
class ReplayedTopic:
    """One topic as it is replayed."""

    name: str
    message_class: Any
    qos: QoSProfile
    messages: int


def is_command(topic: str) -> bool:
    """Whether messages of a topic command hardware."""
    return "/_action/" in topic or topic.rsplit("/", 1)[-1] in COMMANDS


def bag_parts(bag: Path) -> list[Path]:
    """The folder of a bag (or .mcap file) and those in which it went on, in order; what a crash left is salvaged.

    Raises:
        SoftformError: If there is no bag, or one that is being recorded.
    """
    folder = bag.parent if bag.suffix == ".mcap" else bag
    if not folder.is_dir():
        raise SoftformError(f"There is no bag {bag}.", "Recordings of launches are in runs/live/bags.")
    parts = part_folders(folder)
    if len(parts) > 1 and not is_closed(parts[-1]) and _is_empty(parts[-1]):
        parts.pop()  # made just before the end: nothing came to be in it
    for part in parts:
        if not is_closed(part):
            salvage_bag(part)
    return parts


def _is_empty(part: Path) -> bool:
    return not any(file.stat().st_size for file in part.glob("*.mcap"))


class OpenRecording:
    """The bags of one recording, open for reading while the `with` block lasts."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self._parts = list(parts)
        self.left_out: dict[str, str] = {}

    def __enter__(self) -> "OpenRecording":
        """Open the bags.

        Raises:
            SoftformError: If one cannot be read.
        """
        self._stack = ExitStack()
        try:
            self._readers = [self._stack.enter_context(Reader(part)) for part in self._parts]
        except (ReaderError, OSError, ValueError) as error:
            self._stack.close()
            raise SoftformError(f"A bag cannot be read: {error}", "Give the folder of a recording.") from error
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def seconds(self) -> float:
        """From the first message to the last, s."""
        filled = [reader for reader in self._readers if reader.message_count]
        return max(0.0, (filled[-1].end_time - filled[0].start_time) * 1e-9) if filled else 0.0

    def topics(self, wanted: Sequence[str], with_commands: bool) -> list[ReplayedTopic]:
        """Choose what is replayed; `left_out` says why the rest is not.

        Args:
            wanted: Full names, or their last parts; none is all.
            with_commands: Whether topics that command hardware are among them.

        Raises:
            SoftformError: If a wanted topic is not in the bag, is a command that was not asked for, or was recorded
                with another definition of its messages than is installed.
        """
        connections: dict[str, list[Connection]] = {}
        for reader in self._readers:
            for connection in reader.connections:
                connections.setdefault(connection.topic, []).append(connection)
        for name in wanted:
            if not any(_is_named(topic, name) for topic in connections):
                raise SoftformError(
                    f"No topic of the bag is named {name}.", f"It has {', '.join(sorted(connections)) or 'none'}."
                )
        chosen = []
        for topic, recorded in sorted(connections.items()):
            asked = any(_is_named(topic, name) for name in wanted)
            if wanted and not asked:
                continue
            if is_command(topic) and not with_commands:
                if asked:
                    raise SoftformError(
                        f"{topic} commands hardware.", "Add --commands if you are sure; no driver may run then."
                    )
                self.left_out[topic] = "it commands hardware (--commands)"
                continue
            try:
                chosen.append(_replayed(topic, recorded, self._parts[0]))
            except SoftformError as error:
                if asked:
                    raise
                self.left_out[topic] = str(error)
        return chosen

    def messages(self, topics: Sequence[ReplayedTopic]) -> Iterator[tuple[str, int, bytes]]:
        """Topic, time (ns) and CDR bytes of every message of some topics, in the order of the recording."""
        names = {topic.name for topic in topics}
        for reader in self._readers:
            chosen = [connection for connection in reader.connections if connection.topic in names]
            if chosen:  # no connection would mean all
                for connection, moment, message in reader.messages(connections=chosen):
                    yield connection.topic, moment, bytes(message)


def _is_named(topic: str, name: str) -> bool:
    return topic == name or topic.endswith(f"/{name.strip('/')}")


def _replayed(topic: str, recorded: Sequence[Connection], bag: Path) -> ReplayedTopic:
    message_type = recorded[0].msgtype
    if not is_of_todays_form(message_type, recorded[0].digest):
        convertible = conversion_of(topic, message_type) is not None
        raise SoftformError(
            f"{topic} was recorded with another definition of {message_type} than is installed.",
            f"Convert it: ./softform convert {bag}"
            if convertible
            else "Replay it with the version of Softform that recorded it.",
        )
    package, _, name = message_type.split("/")
    try:
        message_class = getattr(importlib.import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError) as error:
        raise SoftformError(
            f"The messages of {topic} ({message_type}) are not installed.", "Install their package."
        ) from error
    offered: list[Qos] = []
    for connection in recorded:
        assert isinstance(connection.ext, ConnectionExtRosbag2)
        offered += connection.ext.offered_qos_profiles
    return ReplayedTopic(topic, message_class, writer_of(offered), sum(one.msgcount for one in recorded))
