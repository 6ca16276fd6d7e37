"""Section `streaming` of `softform bench ik`: a target that moves, followed by the running stack on the virtual rig."""

import time

import numpy as np
import psutil
from sensor_msgs.msg import PointCloud2

from softform_core import priority
from softform_core.errors import SoftformError
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.paths import models_of
from softform_core.robots import load_robot
from softform_core.run_folder import new_run_folder
from softform_interfaces.msg import ServoState
from softform_launch.launched_stack import LaunchedStack
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import nanoseconds_from_stamp, points_from_cloud
from softform_ros.stack_state import wait_until_active
from softform_studies.ik.ik_prediction import SHIPPED
from softform_studies.streaming.streamed_path import StreamedPath, actuation_path
from softform_studies.streaming.streaming_record import (
    StateSeen,
    StreamingRecord,
    Surface,
    punctuality,
    surface_error_mm,
)


def processor_shares() -> dict[str, float]:
    """Per cent of the processors' time since this thread's last call.

    Returns:
        What all there is had `in_use`, and what the host of a virtual machine had `stolen`.
    """
    shares = psutil.cpu_times_percent()
    stolen = float(getattr(shares, "steal", 0.0))
    idle = shares.idle + getattr(shares, "iowait", 0.0)
    return {"in_use": round(100.0 - idle - stolen, 1), "stolen": stolen}


RATE = 50.0
"""Targets a second."""

POINTS = 20_000
ROUND_SECONDS = 12.0
"""Time of one round on the path; its fastest chamber then moves at about a fifth of the slew rate."""

_SEED = 0
_APPROACH_SECONDS = 3.0
_REST_PLACES = 6
_REST_SECONDS = 4.0
_SETTLE_SECONDS = 2.0
"""At rest: how long a place is held, and after what time the surface counts as settled."""

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
        node.create_subscription(ServoState, "servo_state", self._on_state, qos.SERVO_STATE)
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

    def _on_state(self, message: ServoState) -> None:
        self.record.states.append(
            StateSeen(
                nanoseconds_from_stamp(message.header.stamp),
                nanoseconds_from_stamp(message.target),
                message.state,
                message.mean_error,
                message.commands,
                message.deadlines_missed,
            )
        )

    def _on_surface(self, message: PointCloud2) -> None:
        stamp = nanoseconds_from_stamp(message.header.stamp)
        self.record.surfaces.append(Surface(stamp, points_from_cloud(message)))


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
        settled = [one for one in record.surfaces if one.stamp > moved + _SETTLE_SECONDS * 1e9]
        at_rest += [surface_error_mm(one.points, path.shapes[int(place)]) for one in settled[-1:]]
        end = place
    moving = [one for one in record.surfaces if since + _APPROACH_SECONDS * 1e9 < one.stamp < until]
    if not moving or not at_rest:
        raise SoftformError("The rig reported no surface while targets were streamed.", "See the launch's log.")
    tracking = []
    for one in moving:
        place = max((sent for sent in record.sent if sent[0] <= one.stamp), key=lambda sent: sent[0])[1]
        tracking.append(surface_error_mm(one.points, path.shapes[place % len(path)]))
    return {
        **figures,
        "measured_error_mm": round(float(np.mean(tracking)), 3),
        "quasi_static_error_mm": round(float(np.mean(at_rest)), 3),
        "surfaces": len(tracking),
        "processor": processor,
    }
