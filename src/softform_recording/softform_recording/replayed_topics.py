"""Select what of a bag is replayed, and as what: parts of a rotated recording, topics, types, quality of service."""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rclpy.qos import QoSProfile
from rosbags.interfaces import Connection, ConnectionExtRosbag2, Qos
from rosbags.rosbag2 import Reader

from softform_core.errors import SoftformError
from softform_recording.bag_reading import reading, whole_messages
from softform_recording.message_definitions import is_of_todays_form
from softform_recording.qos_profiles import writer_of

COMMANDS = ("actuator_command", "stop", "reset")
"""Last parts of the names of topics that move hardware or let it move; topics of actions do, too."""


@dataclass(frozen=True)
class ReplayedTopic:
    """One topic as it is replayed."""

    name: str
    message_class: Any
    qos: QoSProfile
    messages: int


def is_command(topic: str) -> bool:
    """Return whether messages of a topic command hardware."""
    return "/_action/" in topic or topic.rsplit("/", 1)[-1] in COMMANDS


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
        self._readers: list[Reader] = []
        try:
            for part in self._parts:
                with reading(part):
                    self._readers.append(self._stack.enter_context(Reader(part)))
        except SoftformError:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def seconds(self) -> float:
        """Time from the first message to the last, s."""
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
                chosen.append(_replayed(topic, recorded))
            except SoftformError as error:
                if asked:
                    raise
                self.left_out[topic] = str(error)
        return chosen

    def messages(self, topics: Sequence[ReplayedTopic]) -> Iterator[tuple[str, int, bytes]]:
        """Yield the topic, time (ns) and CDR bytes of every message of some topics, in the order of the recording.

        Raises:
            SoftformError: For the reasons of `whole_messages`.
        """
        names = {topic.name for topic in topics}
        for part, reader in zip(self._parts, self._readers, strict=True):
            chosen = [connection for connection in reader.connections if connection.topic in names]
            for connection, moment, message in whole_messages(part, reader, chosen):
                yield connection.topic, moment, message


def _is_named(topic: str, name: str) -> bool:
    return topic == name or topic.endswith(f"/{name.strip('/')}")


def _replayed(topic: str, recorded: Sequence[Connection]) -> ReplayedTopic:
    message_type = recorded[0].msgtype
    if not all(map(is_of_todays_form, recorded)):
        raise SoftformError(
            f"{topic} was recorded with another definition of {message_type} than is installed.",
            "Replay it with the version of Softform that recorded it.",
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
