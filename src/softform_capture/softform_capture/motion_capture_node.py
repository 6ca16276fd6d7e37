"""Life-cycle node `motion_capture`: frames of a motion-capture system, however it is connected, become markers."""

from functools import partial
from typing import Any

from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker

from softform_capture.motion_capture.capture_run import CaptureRun
from softform_capture.motion_capture.captured_frame import CapturedFrame, parse_renames
from softform_capture.motion_capture.labelling import Labeller, read_rest_markers
from softform_capture.motion_capture.marker_plausibility import PlausibilityLimits
from softform_capture.motion_capture.ros_frames import FrameTopic, frame_topic
from softform_capture.motion_capture.sources import NETWORK, TOPICS, SourceThread, network_source
from softform_core.errors import SoftformError
from softform_core.paths import DEFAULT_ROBOT
from softform_core.robots import load_robot
from softform_interfaces.msg import MarkerFrame
from softform_ros.conversions import marker_message, stamp_from_nanoseconds
from softform_ros.diagnostics import ERROR, OK, WARN, Health
from softform_ros.frames import transform_message
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter
from softform_ros.qos import CAPTURED_MARKERS, TF
from softform_ros.viewer_markers import captured_spheres

PARAMETERS = (
    Parameter("robot", DEFAULT_ROBOT, "Robot that wears the markers: a name in `config/robots`, or a path."),
    Parameter("system", "marker_frame",
        "Where frames come from: a topic of `MarkerFrame`, `mocap4r2_msgs/Markers` or `PointCloud2`, or a server.",
        choices=(*TOPICS, *NETWORK)),
    Parameter("topic", "mocap/markers", "Topic of the frames, for the systems that have one."),
    Parameter("server", "", "Address of the computer on which Tracker, Nexus, Motive or QTM runs."),
    Parameter("port", 0, "Its port (NatNet: the command port); 0 for the system's own.", 0.0, 65_535.0),
    Parameter("local_address", "0.0.0.0", "NatNet: address of this machine's interface towards the server."),
    Parameter("multicast_group", "239.255.42.99", "NatNet: multicast interface of Motive; empty for unicast."),
    Parameter("data_port", 1511, "NatNet: data port, for multicast.", 1.0, 65_535.0),
    Parameter("reconnect_after", 3.0, "Without a frame for so long a server is connected to anew, s.", 0.2, 3600.0),
    Parameter("rename", [""], "Names of the system and the names to be used: `theirs=ours`, one string for each."),
    Parameter("markers", [""], "Names of the markers on the robot; empty for those of the first frame."),
    Parameter("labels", "system",
        "Who labels: the system; or `nearest`, the node: each point is the marker that was nearest to it last.",
        choices=("system", "nearest")),
    Parameter("rest_markers", "",
        "`nearest`: YAML file of places at rest, `name: [x, y, z]`, m, robot frame; empty for m01, m02, ... in rows."),
    Parameter("reach", 0.015, "`nearest`: farther from where it is expected a point is not that marker, m.",
        0.001, 0.2),
    Parameter("max_residual", 0.002,
        "Base markers further off their places than this (root mean square) align nothing, m.", 1e-5, 0.1),
    Parameter("max_speed", 2.0, "A marker that moves faster has jumped, m/s.", 0.01, 100.0),
    Parameter("max_departure", 0.03, "A marker that moves by so much more than its neighbours has jumped, m.",
        0.001, 1.0),
    Parameter("settle_time", 1.0,
        "A marker that has jumped is believed again after it was seen at its new place for so long, s.", 0.0, 3600.0),
    Parameter("max_rate", 100.0, "Frames that come sooner after the one before are passed over, Hz.", 1.0, 1000.0),
    Parameter("stale_after", 1.0, "Without a frame for this long the node reports an error, s.", 0.1, 86_400.0),
    Parameter("max_gap", 10.0, "A marker that is missing for longer is named, s.", 0.1, 86_400.0),
    Parameter("max_latency", 2.0, "Older frames mean that clocks differ: the node warns, s.", 0.01, 86_400.0),
)  # fmt: skip


class MotionCaptureNode(SoftformLifecycleNode):
    """Publishes every frame of markers in the robot's frame, stamped with the time of capture."""

    def __init__(self) -> None:
        super().__init__("motion_capture", PARAMETERS, hardware_id="motion capture")
        self._publisher = self.create_publisher(MarkerFrame, "captured_markers", CAPTURED_MARKERS)
        self._spheres = self.create_publisher(Marker, "captured_spheres", CAPTURED_MARKERS)
        self._frame_publisher = self.create_publisher(TFMessage, "/tf", TF)
        self._run: CaptureRun | None = None
        self._topic: FrameTopic | None = None
        self._thread: SourceThread | None = None

    def configure(self) -> None:
        """Load the robot, check the parameters, and listen to the topic if the frames come by one."""
        values = self.parameters
        self._robot = load_robot(values["robot"]).in_namespace(self.get_namespace())
        if len(self._robot.base_markers) < 3:
            raise SoftformError(
                f"Robot '{self._robot.name}' describes {len(self._robot.base_markers)} base markers.",
                "Give base_markers in its description: three at least, name and place.",
            )
        self._renames = parse_renames(values["rename"])
        self._rest = read_rest_markers(values["rest_markers"]) if values["rest_markers"] else {}
        if values["system"] in TOPICS:
            if values["server"]:
                raise SoftformError(
                    f"server is '{values['server']}', and frames of system '{values['system']}' come by a topic.",
                    f"Choose the server's system ({', '.join(NETWORK)}), or give no server.",
                )
            self._topic = frame_topic(values["system"])
            frames = self.create_subscription(self._topic.message, values["topic"], self._on_message, CAPTURED_MARKERS)
            self.opened.callback(self.destroy_subscription, frames)
        else:
            network_source(values)  # says now what is missing

    def activate(self) -> None:
        """Start with the next frame; nothing is kept of an earlier run."""
        values = self.parameters
        nearest = values["labels"] == "nearest" or values["system"] == "point_cloud"
        limits = PlausibilityLimits(values["max_speed"], values["max_departure"], values["settle_time"])
        self._run = CaptureRun(
            self._robot,
            values["max_residual"],
            limits,
            self._renames,
            [name for name in values["markers"] if name],
            Labeller(self._robot.base_markers, self._rest, values["max_residual"], values["reach"])
            if nearest
            else None,
            values["stale_after"],
            values["max_gap"],
            values["max_latency"],
            values["max_rate"],
        )
        if self._topic is None:
            take = partial(self._take, self._run)
            self._thread = SourceThread(
                network_source(values), take, values["reconnect_after"], self.get_logger().warning
            )
            self._thread.start()

    def deactivate(self) -> None:
        """Pass frames over, and disconnect."""
        self._run = None
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def cleanup(self) -> None:
        """Leave the topic."""
        self._topic = None

    def health(self) -> Health:
        """Return rate, latency, missing share and alignment of the frames, the connection, and their faults."""
        run, thread = self._run, self._thread
        if run is None:
            return Health(OK, "inactive")
        lost = run.is_silent
        fault, values = run.health()
        values = {"system": self.parameters["system"], **values}
        if thread is not None:
            record = thread.record
            values |= {
                "connected": record.connected,
                "reconnections": record.lost,
                "malformed_packets": thread.malformed,
            }
            if not record.connected:
                fault, lost = record.failure or "connecting", lost or bool(record.failure)
        if not fault:
            return Health(OK, "frames arrive", values)
        return Health(ERROR if lost else WARN, fault, values)

    def _on_message(self, message: Any) -> None:
        run, topic = self._run, self._topic
        if run is None or topic is None:
            return
        try:
            frame = topic.read(message)
        except Exception as error:  # one bad message must not end the node
            self.get_logger().warning(run.reject(error), throttle_duration_sec=5.0)
            return
        self._take(run, frame)

    def _take(self, run: CaptureRun, frame: CapturedFrame) -> None:
        """Take a frame; called by the executor's thread or the source's, never by both."""
        try:
            taken = run.take(frame)
        except SoftformError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=5.0)
            return
        if taken is None or run is not self._run:
            return
        names, believed = taken
        robot, alignment = self._robot, run.stream.alignment
        if alignment is not None:
            place = transform_message(robot.base_frame, robot.frame_of("mocap"), frame.time, alignment)
            self._frame_publisher.publish(TFMessage(transforms=[place]))
        stamp = stamp_from_nanoseconds(frame.captured_at)
        message = marker_message(names, believed, self._robot.base_frame, stamp, frame.number)
        self._publisher.publish(message)
        if self._spheres.get_subscription_count():
            self._spheres.publish(captured_spheres(message))


def main() -> None:
    """Run the node until it is asked to stop."""
    run_node(MotionCaptureNode)


if __name__ == "__main__":
    main()
