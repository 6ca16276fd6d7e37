"""Section `streaming` of `softform bench ik`: a target that moves, followed by the running stack on the virtual rig."""

import time
from dataclasses import dataclass, field

import numpy as np
import psutil
from sensor_msgs.msg import PointCloud2

from softform_core import priority
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.inverse.closest_points import closest_points_on
from softform_core.paths import models_of
from softform_core.robots import load_robot
from softform_core.run_folder import new_run_folder
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ServoState
from softform_launch.launched_stack import LaunchedStack
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import nanoseconds_from_stamp, points_from_cloud
from softform_ros.stack_state import wait_until_active
from softform_studies.ik.ik_prediction import SHIPPED
from softform_studies.streaming.streamed_path import StreamedPath, actuation_path

_S_PER_NS = 1e-9


@dataclass
class StreamingRecord:
    """Record of a stream; stamps are ns since the epoch.

    Attributes:
        sent: Stamp and place on the path of each target that was published.
        states: Reports of the servo after each command.
        surfaces: Stamp and points (N, 3) m of the robot's true surface, as often as the rig looks.
    """

    sent: list[tuple[int, int]] = field(default_factory=list)
    states: list[ServoState] = field(default_factory=list)
    surfaces: list[tuple[int, Array]] = field(default_factory=list)


def punctuality(record: StreamingRecord, since: int) -> dict[str, object]:
    """Return how many deadlines were met, and how long targets took to be answered.

    Args:
        record: Record of the stream.
        since: ns since the epoch; what was before does not count: the robot was on its way to the path.

    Raises:
        SoftformError: If the servo answered nothing.
    """
    states = [one for one in record.states if nanoseconds_from_stamp(one.header.stamp) >= since]
    if len(states) < 2:
        raise SoftformError("The servo reported no commands while targets were streamed.", "See the launch's log.")
    commands = states[-1].commands - states[0].commands
    missed = states[-1].deadlines_missed - states[0].deadlines_missed
    first_answer: dict[int, int] = {}
    for one in states:
        first_answer.setdefault(nanoseconds_from_stamp(one.target), nanoseconds_from_stamp(one.header.stamp))
    published = [stamp for stamp, _ in record.sent if stamp >= since]
    latencies = np.array([first_answer[stamp] - stamp for stamp in published if stamp in first_answer]) * _S_PER_NS
    begun, ended = (nanoseconds_from_stamp(one.header.stamp) for one in (states[0], states[-1]))
    seconds = (ended - begun) * _S_PER_NS
    return {
        "seconds": round(seconds, 1),
        "targets": len(published),
        "targets_answered": round(len(latencies) / max(1, len(published)), 4),
        "commands_per_second": round(commands / seconds, 1),
        "deadline_met": round(1.0 - missed / commands, 4),
        "target_to_command_ms": {
            name: round(float(np.percentile(latencies, share)) * 1e3, 1)
            for name, share in (("p50", 50.0), ("p99", 99.0), ("max", 100.0))
        },
        "tracking_share": round(float(np.mean([one.state == ServoState.TRACKING for one in states])), 4),
        "predicted_error_mm": round(float(np.mean([one.mean_error for one in states])) * MM_PER_M, 3),
    }


def surface_error_mm(surface: Array, target: Array) -> float:
    """Return the mean distance of a surface's points to a target, (N, 3) and (M, 3) m, in mm."""
    return float(closest_points_on(Shape(target)).query(surface * MM_PER_M).distances.mean())


def processor_shares() -> dict[str, float]:
    """Return the use of the processors since this thread's last call, per cent.

    Returns:
        The share `in_use` by all processes, and the share `stolen` by a virtual machine's host.
    """
    shares = psutil.cpu_times_percent()
    stolen = float(getattr(shares, "steal", 0.0))
    idle = shares.idle + getattr(shares, "iowait", 0.0)
    return {"in_use": round(100.0 - idle - stolen, 1), "stolen": stolen}


RATE = 50.0
"""Targets sent per second."""

POINTS = 20_000
ROUND_SECONDS = 12.0
"""Time of one round on the path; its fastest chamber then moves at about a fifth of the slew rate."""

_SEED = 0
_APPROACH_SECONDS = 3.0
_REST_PLACES = 6
_REST_SECONDS = 4.0
_SETTLE_SECONDS = 2.0
"""Time at rest that a place is held, and after which the surface counts as settled, s."""

_START_TIMEOUT = 90.0


class Controller:
    """Publishes targets on deadlines and keeps what the stack tells, while the `with` block lasts."""

    def __init__(self, namespace: str, path: StreamedPath) -> None:
        self._background = BackgroundNode("streaming_bench", namespace)
        self._path = path
        self.record = StreamingRecord()

    def __enter__(self) -> "Controller":
        """Open the topics."""
        node = self._background.__enter__()
        self._node = node
        self._targets = node.create_publisher(PointCloud2, "target_shape", qos.TARGET_SHAPE)
        node.create_subscription(ServoState, "servo_state", self.record.states.append, qos.SERVO_STATE)
        node.create_subscription(PointCloud2, "rig/true_surface", self._on_surface, qos.TRUE_SURFACE)
        return self

    def __exit__(self, *error: object) -> None:
        self._background.__exit__(*error)

    def stream(self, seconds: float, place: float, pace: float) -> float:
        """Publish targets at `RATE` from a place on the path, `pace` places a target; return where it ended."""
        priority.ask_for_priority(priority.STREAM)
        started, count = time.monotonic(), round(seconds * RATE)
        for index in range(count):
            time.sleep(max(0.0, started + index / RATE - time.monotonic()))
            here = int(place + index * pace)
            stamp = self._node.get_clock().now().to_msg()
            self.record.sent.append((nanoseconds_from_stamp(stamp), here))
            self._targets.publish(self._path.message(here, stamp))
        return place + count * pace

    def _on_surface(self, message: PointCloud2) -> None:
        self.record.surfaces.append((nanoseconds_from_stamp(message.header.stamp), points_from_cloud(message)))


def streaming(seconds: float = 60.0) -> dict[str, object]:
    """Streaming servo on the running stack for some seconds: deadlines, latency, tracking error beside the optimum."""
    robot = load_robot("membrane")
    model = str(models_of(robot.name) / SHIPPED)
    models = LivePipeline(robot, sim_to_real=model)
    path = StreamedPath(
        models.current, actuation_path(robot, round(ROUND_SECONDS * RATE), _SEED), POINTS, robot.base_frame
    )
    folder = new_run_folder("bench-streaming")
    enter_domain_of_its_own()
    arguments = {"robot": robot.name, "run_dir": str(folder), "sim_to_real": model}
    with (folder / "launch.log").open("wb") as log, LaunchedStack("softform", arguments, output=log) as stack:
        try:
            wait_until_active("softform", _START_TIMEOUT, lambda: stack.exit_code is not None)
            with Controller("/softform", path) as controller:
                return {"points": path.shapes.shape[1], **_measure(controller, path, seconds)}
        except SoftformError as error:
            raise SoftformError(str(error), f"See {folder / 'launch.log'}.") from error


def _measure(controller: Controller, path: StreamedPath, seconds: float) -> dict[str, object]:
    record = controller.record
    controller.stream(_APPROACH_SECONDS, 0.0, 0.0)
    processor_shares()  # the next call measures from here
    since = time.time_ns()
    end = controller.stream(seconds, 0.0, 1.0)
    until, processor = time.time_ns(), processor_shares()
    figures = punctuality(record, since)
    at_rest = []
    for place in np.linspace(0, len(path), _REST_PLACES, endpoint=False):
        # By way of the path, as the stream came there, then at rest.
        end = controller.stream(2.0, end, (place - end % len(path)) / (2.0 * RATE))
        moved = time.time_ns()
        controller.stream(_REST_SECONDS, place, 0.0)
        settled = [points for stamp, points in record.surfaces if stamp > moved + _SETTLE_SECONDS * 1e9]
        at_rest += [surface_error_mm(points, path.shapes[int(place)]) for points in settled[-1:]]
        end = place
    moving = [one for one in record.surfaces if since + _APPROACH_SECONDS * 1e9 < one[0] < until]
    if not moving or not at_rest:
        raise SoftformError("The rig reported no surface while targets were streamed.", "See the launch's log.")
    tracking = []
    for seen, points in moving:
        place = max(sent for sent in record.sent if sent[0] <= seen)[1]
        tracking.append(surface_error_mm(points, path.shapes[place % len(path)]))
    return {
        **figures,
        "measured_error_mm": round(float(np.mean(tracking)), 3),
        "quasi_static_error_mm": round(float(np.mean(at_rest)), 3),
        "surfaces": len(tracking),
        "processor": processor,
    }
