"""Records topics of a running stack: subscribes as publishers appear, stamps on a steady clock, counts what is lost."""

import importlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rclpy.validate_topic_name import validate_topic_name

from softform_core.errors import SoftformError
from softform_recording.bag_recorder import BagRecorder
from softform_recording.qos_profiles import as_offered, reader_of
from softform_recording.write_queue import WriteQueue
from softform_ros.diagnostics import ERROR, OK, WARN, Health
from softform_ros.timers import create_steady_timer


class SequenceGaps:
    """Follows the numbers of a topic's publishers, of which each counts its own messages from 1.

    A message does not say whose it is, so a number belongs to the publisher whose last one it follows. With one
    publisher the count is exact; with several it is if little is lost.
    """

    def __init__(self) -> None:
        self._last: list[int] = []  # of each publisher, the one that was silent longest first
        self.lost = 0

    def note(self, number: int, count_publishers: Callable[[], int]) -> int:
        """Take the publication number of a message that arrived; how many are found missing by it."""
        if number - 1 in self._last:
            self._follow(number - 1, number)
            return 0
        publishers = max(count_publishers(), 1)
        earlier = [last for last in self._last if last < number]
        if not earlier or len(self._last) < publishers:  # a publisher that was not heard before, or begins anew
            self._last = [*self._last, number][-publishers:]
            return 0
        nearest = max(earlier)
        self._follow(nearest, number)
        missing = number - nearest - 1
        self.lost += missing
        return missing

    def _follow(self, last: int, number: int) -> None:
        self._last.remove(last)
        self._last.append(number)


DISCOVERY_PERIOD = 0.2
"""Time between two looks for topics that do not exist yet, s."""

LOOK_AGAIN_PERIOD = 2.0
"""Time between two looks for further publishers of recorded topics, s."""


@dataclass(frozen=True)
class RecordingCounts:
    """State of a recording.

    Attributes:
        topics: Topics with a publisher.
        received: Messages that arrived.
        written: Messages in the bags; those that wait are not yet among them.
        waiting_bytes: Bytes of messages that wait for the disk.
        dropped: Messages that arrived and will not be in the bags.
        lost: Messages that were published, by their numbers, and did not arrive.
        failure: Reason why recording ended early; empty while it goes well.
    """

    topics: int
    received: int
    written: int
    waiting_bytes: int
    dropped: int
    lost: int
    failure: str

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.shortcomings

    @property
    def shortcomings(self) -> str:
        """What is missing from the recording; empty if nothing is."""
        dropped = f"{self.dropped} messages were dropped: the disk does not keep up" if self.dropped else ""
        lost = f"{self.lost} messages did not arrive: the machine is overloaded" if self.lost else ""
        return "; ".join(part for part in (self.failure or dropped, lost) if part)


class TopicRecorder:
    """Records until `close`; the node is spun by something else.

    Messages are stamped with the time at which they were received, on a clock that starts at the time of day and is
    steady from then on: a clock that is set meanwhile changes neither order nor intervals.

    Args:
        node: Subscribes; its log tells what is recorded and what is lost.
        topics: Relative to the node's namespace, or absolute; empty ones are passed over.
        folder: Bag folder; this and the last two as `BagRecorder` takes them.

    Attributes:
        awaited: Topics without a publisher so far.
        rejected: Reasons why topics are not recorded, by name.

    Raises:
        SoftformError: If the bag cannot be begun, or a topic has no name that ROS takes.
    """

    def __init__(
        self, node: Node, topics: Iterable[str], folder: Path, largest_bag: int = 0, longest_bag: float = 0.0
    ) -> None:
        named = [topic for topic in topics if topic]
        try:
            for topic in named:
                validate_topic_name(topic)
        except InvalidTopicNameException as error:
            raise SoftformError(f"'{topic}' is no name of a topic.", "Use letters, digits, _ and /.") from error
        self.awaited = {node.resolve_topic_name(topic) for topic in named}
        self.rejected: dict[str, str] = {}
        self._node, self._recorder = node, BagRecorder(folder, largest_bag, longest_bag)
        self._queue = WriteQueue(self._recorder)
        self._clock_offset = time.time_ns() - time.monotonic_ns()
        self._gaps: dict[str, SequenceGaps] = {}
        self._subscribed: dict[str, tuple[Subscription, QoSProfile, str]] = {}
        self._look_again_at = time.monotonic() + LOOK_AGAIN_PERIOD
        self._timer = create_steady_timer(node, DISCOVERY_PERIOD, self._discover)

    @property
    def folders(self) -> list[Path]:
        """Bag folders written so far."""
        return list(self._recorder.folders)

    @property
    def counts(self) -> RecordingCounts:
        """State of the recording."""
        queue = self._queue
        return RecordingCounts(
            topics=len(self._subscribed),
            received=queue.received.total(),
            written=queue.written,
            waiting_bytes=queue.waiting_bytes,
            dropped=queue.dropped.total(),
            lost=sum(gaps.lost for gaps in self._gaps.values()),
            failure="" if queue.failure is None else str(queue.failure),
        )

    def health(self) -> Health:
        """Return the state of the recording, for diagnostics."""
        counts = self.counts
        values = {
            "bag": self.folders[-1],
            "messages": counts.written,
            "received": counts.received,
            "dropped": counts.dropped,
            "lost before arrival": counts.lost,
            "waiting for the disk, bytes": counts.waiting_bytes,
            "awaited": ", ".join(sorted(self.awaited)),
            "rejected": ", ".join(sorted(self.rejected)),
        }
        missing = counts.shortcomings
        if self.rejected:
            reasons = sorted(self.rejected.items())
            rejected = "; ".join(f"{topic} is not recorded: {reason}" for topic, reason in reasons)
            return Health(ERROR, f"{rejected}; {missing}" if missing else rejected, values)
        level = ERROR if counts.failure else WARN if missing else OK
        return Health(level, missing or "recording", values)

    def close(self) -> RecordingCounts:
        """Record no more, write what waits, close the bag; to be called once nothing spins the node."""
        self._node.destroy_timer(self._timer)
        for subscription, _, _ in self._subscribed.values():
            self._node.destroy_subscription(subscription)
        self._recorder.note("softform.lost", str(self.counts.lost))
        self._queue.close()
        return self.counts

    def _discover(self) -> None:
        self._recorder.note("softform.lost", str(self.counts.lost))  # with each bag that is closed
        if time.monotonic() >= self._look_again_at:
            self._look_again_at = time.monotonic() + LOOK_AGAIN_PERIOD
            for topic in sorted(self._subscribed):
                self._keep_up(topic, self._node.get_publishers_info_by_topic(topic))
        if not self.awaited:
            return
        known = dict(self._node.get_topic_names_and_types())
        for topic in sorted(self.awaited & known.keys()):
            publishers = self._node.get_publishers_info_by_topic(topic)
            if not publishers:
                continue
            self.awaited.remove(topic)
            try:
                self._subscribe(topic, known[topic][0], publishers)
            except Exception as error:  # whatever one type is like, the other topics are recorded
                self.rejected[topic] = str(error) if isinstance(error, SoftformError) else repr(error)
                self._node.get_logger().error(f"{topic} is not recorded: {error}")

    def _subscribe(self, topic: str, message_type: str, publishers: list[TopicEndpointInfo]) -> None:
        package, _, name = message_type.split("/")
        message_class = getattr(importlib.import_module(f"{package}.msg"), name)
        offered = [publisher.qos_profile for publisher in publishers]
        type_hash = str(publishers[0].topic_type_hash)
        self._queue.add_topic(topic, message_type, [as_offered(profile) for profile in offered], type_hash)
        self._gaps[topic] = SequenceGaps()
        profile = reader_of(offered)
        self._subscribed[topic] = self._subscription(message_class, topic, profile), profile, type_hash
        self._node.get_logger().info(f"recording {topic} ({message_type})")

    def _subscription(self, message_class: Any, topic: str, profile: QoSProfile) -> Subscription:
        return self._node.create_subscription(message_class, topic, partial(self._record, topic), profile, raw=True)

    def _keep_up(self, topic: str, publishers: list[TopicEndpointInfo]) -> None:
        """Hear publishers that came later, too: they may offer less than those before, or another type."""
        subscription, profile, type_hash = self._subscribed[topic]
        weaker = reader_of([profile, *(publisher.qos_profile for publisher in publishers)])
        if (weaker.reliability, weaker.durability) != (profile.reliability, profile.durability):
            self._node.destroy_subscription(subscription)
            self._subscribed[topic] = self._subscription(subscription.msg_type, topic, weaker), weaker, type_hash
            self._node.get_logger().info(f"{topic} has a publisher now that offers less: it is heard, too")
        others = {str(publisher.topic_type_hash) for publisher in publishers} - {type_hash}
        if any(one.startswith("RIHS") for one in others) and topic not in self.rejected:
            self.rejected[topic] = "a publisher has another definition of its messages than is installed here"
            self._node.get_logger().error(f"{topic}: {self.rejected[topic]}; what it sends cannot be read")

    def _record(self, topic: str, message: bytes, information: dict[str, int | None]) -> None:
        # The middleware stamps the arrival, this callback may come later; both by the time of day.
        age = time.time_ns() - (information["received_timestamp"] or time.time_ns())
        steady = time.monotonic_ns() + self._clock_offset
        if not self._queue.put(topic, steady - max(0, age), message):
            self._node.get_logger().error(
                f"messages of {topic} are dropped: {self._queue.failure or 'the disk does not keep up'}",
                throttle_duration_sec=5.0,
            )
        number = information["publication_sequence_number"]
        if number is not None:
            missing = self._gaps[topic].note(number, partial(self._node.count_publishers, topic))
            if missing:
                self._node.get_logger().error(
                    f"{missing} messages of {topic} did not arrive; is this machine overloaded?",
                    throttle_duration_sec=5.0,
                )
