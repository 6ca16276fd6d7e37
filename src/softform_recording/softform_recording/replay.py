"""Replays a recording into ROS as it was heard: the same topics, types, profiles, bytes, order and intervals."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher

from softform_core.errors import SoftformError
from softform_recording.replayed_topics import ReplayedTopic, is_command

JOINING_SECONDS = 3.0
"""Longest wait, s, for existing subscribers to join before the first message."""

_GRACE_SECONDS = 0.5
"""Time by which a reader may see this publisher later than it is seen, s; messages before that are lost to it."""

_LOOK_PERIOD = 0.2
_DRIVER_STATE = "softform_interfaces/msg/DriverState"
_NS_PER_S = 1_000_000_000

TimedMessage = tuple[str, int, bytes]


@dataclass(frozen=True)
class Replayed:
    """Number of replayed messages, largest delay, s, and whether the replay came to its end."""

    messages: int
    latest: float
    finished: bool


def check_no_driver(node: Node) -> None:
    """Check that no driver runs: a replay says what a driver, or a commander, would say.

    Raises:
        SoftformError: If another node announces itself as a driver, in whatever state it is.
    """
    for topic, types in node.get_topic_names_and_types():
        if _DRIVER_STATE not in types:
            continue
        for one in node.get_publishers_info_by_topic(topic):
            if one.node_name != node.get_name():
                name = f"{one.node_namespace.rstrip('/')}/{one.node_name}"
                raise SoftformError(
                    f"A driver is there: {name} publishes {topic}. Beside it nothing is replayed, so that no recorded "
                    "value or command is taken for a live one.",
                    "Stop that stack, or replay in another ROS_DOMAIN_ID with `./softform launch replay`.",
                )


def is_published_elsewhere(node: Node, topic: str) -> bool:
    """Return whether another node publishes a topic."""
    return any(one.node_name != node.get_name() for one in node.get_publishers_info_by_topic(topic))


class Player:
    """Publishes messages of a recording.

    Args:
        node: Publishes; something else spins it.
        topics: Topics to replay.
        on_left: Takes the name of a topic that is replayed no more, because a node came that publishes it; None replays
            it beside that node.
    """

    def __init__(self, node: Node, topics: Sequence[ReplayedTopic], on_left: Callable[[str], None] | None) -> None:
        """Open the publishers and let the readers that are there join."""
        self._node, self._on_left = node, on_left
        self._left: set[str] = set()
        self._publishers: dict[str, Publisher] = {
            topic.name: node.create_publisher(topic.message_class, topic.name, topic.qos) for topic in topics
        }
        deadline = time.monotonic() + JOINING_SECONDS
        while time.monotonic() < deadline and not self._has_all_readers():
            time.sleep(_LOOK_PERIOD)
        time.sleep(_GRACE_SECONDS)
        self._readers_of_commands = {
            name: publisher.get_subscription_count() for name, publisher in self._publishers.items() if is_command(name)
        }

    def _has_all_readers(self) -> bool:
        return all(
            publisher.get_subscription_count() >= self._node.count_subscribers(name)
            for name, publisher in self._publishers.items()
        )

    def _leave_to_others(self) -> None:
        """Leave topics to nodes that publish them and came, or were found, only now."""
        for topic in self._publishers.keys() - self._left:
            if self._on_left is not None and is_published_elsewhere(self._node, topic):
                self._left.add(topic)
                self._on_left(topic)

    def _reject_new_readers_of_commands(self, topic: str) -> None:
        """Reject new readers of commands: a driver may be heard as one before it is heard as a driver."""
        if self._publishers[topic].get_subscription_count() > self._readers_of_commands.get(topic, sys.maxsize):
            check_no_driver(self._node)
            raise SoftformError(
                f"A new reader of {topic} came: it may be a driver. The replay ends.",
                "Start the subscribers of the commands before the replay.",
            )

    def play(
        self,
        messages: Iterable[TimedMessage],
        rate: float,
        stopped: threading.Event,
        tell: Callable[[float, int], None],
    ) -> Replayed:
        """Publish each message when its time has come on the steady clock.

        Args:
            messages: Messages in order; times in ns.
            rate: Times as fast as recorded.
            stopped: Ends the replay.
            tell: Takes the seconds of the recording that have been replayed, and the count of messages.

        Raises:
            SoftformError: If a driver comes, or anything that reads replayed commands: nothing more is published then.
        """
        count, latest, first, began = 0, 0.0, None, time.monotonic_ns()
        next_look = time.monotonic()
        for topic, moment, message in messages:
            first = moment if first is None else first
            due = began + (moment - first) / rate
            while not stopped.is_set():
                if time.monotonic() >= next_look:
                    check_no_driver(self._node)
                    self._leave_to_others()
                    tell((moment - first) / _NS_PER_S, count)
                    next_look = time.monotonic() + _LOOK_PERIOD
                left = (due - time.monotonic_ns()) / _NS_PER_S
                if left <= 0.0:
                    break
                stopped.wait(min(left, _LOOK_PERIOD))
            if stopped.is_set():
                return Replayed(count, latest, False)
            if topic in self._left:
                continue
            self._reject_new_readers_of_commands(topic)
            self._publishers[topic].publish(message)
            latest = max(latest, (time.monotonic_ns() - due) / _NS_PER_S)
            count += 1
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(Duration(seconds=1))
        return Replayed(count, latest, True)
