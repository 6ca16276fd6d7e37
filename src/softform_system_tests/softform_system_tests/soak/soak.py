"""The whole stack for a long time, commanded at 50 Hz: does it leak, stay punctual, and record everything?"""

import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import psutil
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2
from tqdm import tqdm

from softform_core import priority
from softform_core.errors import SoftformError
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.robots import load_robot
from softform_core.run_folder import own_state
from softform_interfaces.msg import ActuatorCommand, DriverState
from softform_launch.ros_domains import enter_domain_of_its_own
from softform_recording.parts import part_folders
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import nanoseconds_from_stamp
from softform_studies.streaming.bench_streaming import ROUND_SECONDS, processor_shares
from softform_studies.streaming.streamed_path import StreamedPath, actuation_path
from softform_system_tests.fault_injection.stack_processes import StackProcesses
from softform_system_tests.fault_injection.stored_data import readable_messages
from softform_system_tests.soak.resources import Usage, trends, usage

RATE = 50.0
"""Commands a second: targets stream at this rate, and the servo answers each with a command."""

POINTS = 1000
WARM_UP_SHARE, WARM_UP_SECONDS = 0.2, 120.0
"""At the beginning of the run what does not count: a fifth, and two minutes of a run that is twice as long."""

_NAMESPACE = "softform"
_LOOK_SECONDS = 5.0
_APPROACH_SECONDS = 5.0
_SILENT_SECONDS = 5.0
_MS_PER_NS = 1e-6


class SignsOfLife:
    """Whether the stack still does what it is soaked for; a robot that vents, rightly, no longer does.

    Attributes:
        commanded_at: When a command came last, s of `time.monotonic`.
        recorder_health_at: When the recorder last reported.
    """

    def __init__(self) -> None:
        self.commanded_at = self.recorder_health_at = 0.0
        self._has_begun, self._stopped = False, ""

    def begin(self) -> None:
        """Judge from now on."""
        self.commanded_at = self.recorder_health_at = time.monotonic()
        self._has_begun = True

    def note_driver(self, state: int, reason: str) -> None:
        """Take the driver's state."""
        if state == DriverState.FAULT or (self._has_begun and state != DriverState.RUNNING):
            self._stopped = self._stopped or reason

    def trouble(self, now: float) -> str:
        """What does not go on at `now`, s; empty if all does."""
        if self._stopped:
            return f"the driver stopped: {self._stopped}"
        if now - self.commanded_at > _SILENT_SECONDS:
            return f"no command came for {now - self.commanded_at:.0f} s"
        if now - self.recorder_health_at > _SILENT_SECONDS:
            return f"the recorder reported nothing for {now - self.recorder_health_at:.0f} s"
        return ""


class _Planner:
    """Streams targets on deadlines from a thread, and notes the stamps of the commands that they lead to."""

    def __init__(self, node: Node, path: StreamedPath) -> None:
        self._path = path
        self._clock = node.get_clock()
        self._targets = node.create_publisher(PointCloud2, "target_shape", qos.TARGET_SHAPE)
        self.stamps: list[int] = []
        self.recorder: dict[str, str] = {}
        self.signs = SignsOfLife()
        node.create_subscription(ActuatorCommand, "actuator_command", self._on_command, qos.ACTUATOR_COMMAND_LOG)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.DIAGNOSTICS)
        node.create_subscription(DriverState, "driver_state", self._on_driver_state, qos.LATCHED_STATE)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._stream, name="soak", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stream no more."""
        self._ended.set()
        self._thread.join()

    def _stream(self) -> None:
        priority.ask_for_priority(priority.STREAM)
        deadline, place = time.monotonic(), 0
        while not self._ended.wait(max(0.0, deadline - time.monotonic())):
            self._targets.publish(self._path.message(place, self._clock.now().to_msg()))
            place += 1
            deadline += 1.0 / RATE

    def _on_command(self, message: ActuatorCommand) -> None:
        self.signs.commanded_at = time.monotonic()
        self.stamps.append(nanoseconds_from_stamp(message.header.stamp))

    def _on_driver_state(self, message: DriverState) -> None:
        self.signs.note_driver(message.state, message.reason)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == f"/{_NAMESPACE}/bag_recorder":
                self.signs.recorder_health_at = time.monotonic()
                self.recorder = {pair.key: pair.value for pair in status.values}


def soak(minutes: float, folder: Path, say: Callable[[str], None]) -> dict[str, object]:
    """Run the stack and measure.

    The minutes count once the stack is up; of the run's files in the folder a complete recording is removed.

    Returns:
        Trends of each node's memory, threads and file descriptors, period of the commands, and what the recorder lost.

    Raises:
        SoftformError: If the stack does not come up, a node ends or falls silent meanwhile, or the driver stops.
    """
    robot = load_robot("membrane")
    path = StreamedPath(
        LivePipeline(robot, sim_to_real="none").current,
        actuation_path(robot, round(ROUND_SECONDS * RATE), 0),
        POINTS,
        robot.base_frame,
    )
    enter_domain_of_its_own()
    bag = folder / "bag"
    arguments = {"run_dir": str(folder), "record": "true", "bag": str(bag), "motion_capture": "true"}
    arguments["sim_to_real"] = "none"
    stack = StackProcesses(_NAMESPACE, folder, {**os.environ, **own_state(folder)}, lambda: arguments)
    say(f"launching the stack; its log is {folder / 'launch.log'}")
    try:
        stack.relaunch()
        with BackgroundNode("soak", f"/{_NAMESPACE}") as node, closing(_Planner(node, path)) as planner:
            time.sleep(_APPROACH_SECONDS)
            planner.stamps.clear()
            planner.signs.begin()
            processor_shares()  # the next call measures from here
            samples = _watch(stack, planner, 60.0 * minutes)
            processor = processor_shares()
            planner.close()
            time.sleep(2.0)  # the recorder tells once a second what it has
    finally:
        stack.end()
    return {
        "minutes": minutes,
        **_growth(samples, 60.0 * minutes),
        "command_period_ms": _periods(planner.stamps),
        "processor": processor,
        "recorder": _recording(planner.recorder, bag),
    }


def _watch(stack: StackProcesses, planner: _Planner, seconds: float) -> dict[str, list[Usage]]:
    nodes = stack.nodes()
    samples: dict[str, list[Usage]] = {name: [] for name in nodes}
    started = time.monotonic()
    with tqdm(total=round(seconds), unit="s", desc="bench soak") as bar:
        while (elapsed := time.monotonic() - started) < seconds:
            for name, process in nodes.items():
                try:
                    samples[name].append(usage(process, elapsed))
                except psutil.NoSuchProcess as error:
                    raise SoftformError(f"The node '{name}' ended after {elapsed:.0f} s.", "See its log.") from error
            _require_life(planner, elapsed)
            bar.update(round(elapsed) - bar.n)
            time.sleep(min(_LOOK_SECONDS, max(0.1, seconds / 20.0)))
    _require_life(planner, seconds)
    return samples


def _require_life(planner: _Planner, elapsed: float) -> None:
    if trouble := planner.signs.trouble(time.monotonic()):
        raise SoftformError(f"After {elapsed:.0f} s {trouble.removesuffix('.')}.", "See the launch's log.")


def _growth(samples: dict[str, list[Usage]], seconds: float) -> dict[str, object]:
    warm_up = max(WARM_UP_SHARE * seconds, min(WARM_UP_SECONDS, 0.5 * seconds))
    found = trends(samples, warm_up)
    growing = [f"{quantity} of {name}" for name, each in found.items() for quantity, line in each.items() if line.grows]
    return {
        "growing": growing,
        "nodes": {name: {key: line.as_dict() for key, line in each.items()} for name, each in found.items()},
    }


def _periods(stamps: list[int]) -> dict[str, object]:
    periods = np.diff(np.array(stamps)) * _MS_PER_NS
    if not len(periods):
        raise SoftformError("The servo sent no commands.", "See the launch's log.")
    figures = {name: round(float(np.percentile(periods, share)), 2) for name, share in (("p50", 50.0), ("p99", 99.0))}
    rate = round(1e3 / float(periods.mean()), 2)
    return {"commands": len(stamps), "rate_hz": rate, **figures, "max": round(float(periods.max()), 2)}


def _recording(health: dict[str, str], bag: Path) -> dict[str, object]:
    readable = readable_messages(bag) or 0
    written, dropped, lost = (int(health.get(key, 0)) for key in ("messages", "dropped", "lost before arrival"))
    missing = max(0, written - readable)
    if not (dropped or lost or missing):
        for part in part_folders(bag):
            shutil.rmtree(part, ignore_errors=True)
    return {"messages": readable, "dropped": dropped, "lost_before_arrival": lost, "unreadable": missing}
