"""The node that records topics of the stack into a bag."""

import importlib
import time
from datetime import datetime
from functools import partial
from pathlib import Path

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

from softform_bringup.bag_recorder import BagRecorder, RecordingStoppedError
from softform_core.errors import SoftformError
from softform_core.paths import runs_dir
from softform_ros.diagnostics import ERROR, OK, DiagnosticsPublisher, Health
from softform_ros.lifecycle import run_node
from softform_ros.parameters import Parameter, declare_parameters, read_parameters

PARAMETERS = (
    Parameter("topics", [""], "Topics to record, relative to the namespace or absolute."),
    Parameter("bag", "", "Bag folder, which must not exist; by default DATE-TIME in parent_folder."),
    Parameter("parent_folder", "", "Where such folders are made; by default `bags` in the folder of runs."),
    Parameter("largest_bag", 4096, "Size after which the recording goes on in a new folder, MB; 0: never.", 0, 1 << 20),
)
FLUSH_PERIOD = 1.0  # s; a crash loses no more than this
DISCOVERY_PERIOD = 0.2  # s between two looks for topics that are not there yet
QUEUE_DEPTH = 100


class BagRecorderNode(Node):
    """Subscribes to each topic when its first publisher appears, with the quality of service that it offers."""

    def __init__(self) -> None:
        """Open the bag and look for the topics."""
        super().__init__("bag_recorder")
        self._recorder: BagRecorder | None = None
        declare_parameters(self, PARAMETERS)
        parameters = read_parameters(self, PARAMETERS)
        self._failure = ""
        self._awaited = {self.resolve_topic_name(topic) for topic in parameters["topics"] if topic}
        parent = Path(parameters["parent_folder"] or runs_dir() / "bags")
        folder = Path(parameters["bag"] or parent / datetime.now().strftime("%Y-%m-%d-%H-%M-%S"))
        self._recorder = BagRecorder(folder, parameters["largest_bag"] * 1_000_000)
        self.get_logger().info(f"recording {len(self._awaited)} topics into {folder}")
        self._diagnostics = DiagnosticsPublisher(self, str(folder), self._health)
        self._timers_kept = [
            self.create_timer(DISCOVERY_PERIOD, self._discover),
            self.create_timer(FLUSH_PERIOD, self._flush),
        ]
        self._discover()

    def destroy_node(self) -> None:
        """Close the bag, then the node."""
        if self._recorder:
            try:
                self._recorder.close()
                self.get_logger().info(f"{self._recorder.message_count} messages are in {self._recorder.folder}")
            except RecordingStoppedError as error:
                self.get_logger().error(str(error))
        super().destroy_node()

    def _discover(self) -> None:
        if not self._awaited or self._failure:
            return
        known = dict(self.get_topic_names_and_types())
        for topic in sorted(self._awaited & known.keys()):
            publishers = self.get_publishers_info_by_topic(topic)
            if not publishers:
                continue
            self._awaited.remove(topic)
            try:
                self._subscribe(topic, known[topic][0], publishers)
            except (SoftformError, ImportError, AttributeError) as error:
                self.get_logger().error(f"{topic} is not recorded: {error}")

    def _subscribe(self, topic: str, message_type: str, publishers: list[TopicEndpointInfo]) -> None:
        assert self._recorder
        package, _, name = message_type.split("/")
        message_class = getattr(importlib.import_module(f"{package}.msg"), name)
        offered = [publisher.qos_profile for publisher in publishers]
        self._recorder.add_topic(topic, message_type, [_as_rosbags_qos(qos) for qos in offered])
        # The strictest profile that every publisher can serve.
        reliable = all(qos.reliability == ReliabilityPolicy.RELIABLE for qos in offered)
        latched = all(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL for qos in offered)
        qos = QoSProfile(
            depth=QUEUE_DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )
        self.create_subscription(message_class, topic, partial(self._record, topic), qos, raw=True)
        self.get_logger().info(f"recording {topic} ({message_type})")

    def _record(self, topic: str, message: bytes) -> None:
        assert self._recorder
        try:
            self._recorder.write(topic, time.time_ns(), message)
        except RecordingStoppedError as error:
            self._fail(error)

    def _flush(self) -> None:
        assert self._recorder
        try:
            self._recorder.flush()
        except SoftformError as error:
            self._fail(error)

    def _fail(self, error: SoftformError) -> None:
        self._failure = str(error)
        self.get_logger().error(self._failure)
        self._diagnostics.publish()

    def _health(self) -> Health:
        assert self._recorder
        values = {"bag": self._recorder.folder, "messages": self._recorder.message_count}
        if self._failure:
            return Health(ERROR, self._failure, values)
        return Health(OK, "recording", {**values, "awaited": ", ".join(sorted(self._awaited))})


def _as_rosbags_qos(qos: QoSProfile) -> Qos:
    def seconds(duration: object) -> QosTime:
        return QosTime(*divmod(int(getattr(duration, "nanoseconds", 0)), 1_000_000_000))

    return Qos(
        QosHistory[qos.history.name],
        qos.depth,
        QosReliability[qos.reliability.name],
        QosDurability[qos.durability.name],
        seconds(qos.deadline),
        seconds(qos.lifespan),
        QosLiveliness[qos.liveliness.name],
        seconds(qos.liveliness_lease_duration),
        qos.avoid_ros_namespace_conventions,
    )


def main() -> None:
    """Record until SIGINT or SIGTERM."""
    run_node(BagRecorderNode)
