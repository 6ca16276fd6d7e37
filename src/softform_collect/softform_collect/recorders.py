"""Recorders of single frames, by scanner or by motion capture: capture, judge and store."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from sensor_msgs.msg import PointCloud2

from softform_client.capture_watch import Capture, CaptureWatch, Moment
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.frames.following import ShapeJudge
from softform_core.frames.marker_quality import LabelledMarkers, MarkerJudge, average_markers
from softform_core.frames.marker_store import MarkerStore
from softform_core.frames.quality import FrameQuality, MarkerQuality, assess_cloud
from softform_core.frames.store import FrameStore
from softform_core.robots import Robot
from softform_interfaces.msg import MarkerFrame
from softform_ros.conversions import points_from_cloud, positions_from_markers

Stopped = Callable[[], bool]

_COMPARED = 100
"""Earlier frames of markers with which a new one is compared: so many tell how large the gap between simulation and
reality usually is, and the thousandth frame takes no longer than the hundredth."""


class ScanRecorder:
    """One captured cloud a frame, which must be in `frame`; its methods are those of `MarkerRecorder`, too."""

    topic = "captured_cloud"

    def __init__(self, store: FrameStore, robot: Robot, clouds: CaptureWatch[PointCloud2], frame: str) -> None:
        self._store, self._robot, self._clouds, self._frame = store, robot, clouds, frame
        self._shapes = ShapeJudge(robot)
        actuation = store.actuation
        for number in store.captured:
            self._shapes.keep(int(number), actuation[number], store.points(int(number)))

    def take(self, moment: Moment, timeout: float, stopped: Stopped) -> Moment | None:
        """Take the first cloud captured after the moment.

        Returns:
            When it was captured; None if nothing came within `timeout` s, or `stopped` says so.
        """
        capture = self._clouds.wait_for_one_after(moment, timeout, stopped)
        if capture is not None:
            self._cloud = capture.cloud
        return capture

    def judge(self, actuation: Array) -> tuple[float, str]:
        """Judge the cloud by itself, and by the simulated shape and the frames before.

        Returns:
            Coverage (0 … 1) of the capture under `actuation` (k,), and why it is unfit; empty if it is fit.
        """
        self._actuation = actuation
        points = points_from_cloud(self._cloud)
        finite = np.isfinite(points).all(axis=1)
        self._points = points[finite]
        self._quality = assess_cloud(self._points, self._robot, self._shapes.expected(actuation))
        fault = self._quality.fault
        if self._cloud.header.frame_id != self._frame:
            fault = f"it is in frame '{self._cloud.header.frame_id}', not in '{self._frame}'."
        elif self._cloud.is_dense and not finite.all():
            fault = f"{int((~finite).sum())} of its {len(points)} points are not finite, though it says that all are."
        elif not fault and (twin := self._store.same_cloud(self._points)) is not None:
            fault = f"it is the same cloud as frame {twin}: does the scanner send an old export?"
        fault = fault or self._shapes.fault(actuation, self._points)
        self._quality = FrameQuality(self._quality.coverage, self._quality.covered, self._quality.outliers, fault)
        return self._quality.coverage, fault

    def store_frame(self, number: int, measured: Array, captured_at: float) -> None:
        """Store the last judged capture as frame `number`, with the measured actuation (k,)."""
        self._store.write_captured(number, self._points, measured, captured_at, self._quality)
        if not self._quality.fault:
            self._shapes.keep(number, self._actuation, self._points)


@dataclass
class MarkerRecorder:
    """The mean of so many marker frames a frame, which must be in `frame`."""

    topic = "captured_markers"

    store: MarkerStore
    robot: Robot
    marker_judge: MarkerJudge
    markers: CaptureWatch[MarkerFrame]
    frame: str
    averaged: int

    def take(self, moment: Moment, timeout: float, stopped: Stopped) -> Moment | None:
        """Take the first marker frames captured after the moment; returns when the last one was."""
        self._taken = take_markers(self.markers, self.averaged, moment, timeout, stopped)
        return None if self._taken is None else self._taken[-1]

    def judge(self, actuation: Array) -> tuple[float, str]:
        """Judge labels and positions, by the rest frame, the simulated shape and the frames before."""
        assert self._taken is not None
        self._positions, fault = averaged_markers(self._taken, self.frame, self.store.names, self.robot)
        if not fault and (twin := self.store.same_positions(self._positions)) is not None:
            fault = f"its markers are in every digit where they were in frame {twin}: does the system send old ones?"
        quality = self.quality(actuation, self._positions)
        self._quality = MarkerQuality(quality.coverage, fault or quality.fault)
        return self._quality.coverage, self._quality.fault

    def quality(self, actuation: Array, positions: Array) -> MarkerQuality:
        """Return the quality of markers (M, 3) m under `actuation` (k,), by simulated shape and earlier frames."""
        kept = self.store.captured[-_COMPARED:]
        before = self.store.captured_positions()[-_COMPARED:]
        return self.marker_judge.assess(actuation, positions, self.store.actuation[kept], before)

    def store_frame(self, number: int, measured: Array, captured_at: float) -> None:
        """Keep the positions."""
        self.store.write_captured(number, self._positions, measured, captured_at, self._quality)


Recorder: TypeAlias = ScanRecorder | MarkerRecorder


def take_markers(
    watch: CaptureWatch[MarkerFrame], count: int, moment: Moment, timeout: float, stopped: Stopped
) -> list[Capture[MarkerFrame]] | None:
    """Return the first `count` marker frames captured after `moment`, None if they did not come within `timeout` s."""
    taken: list[Capture[MarkerFrame]] = []
    until = time.monotonic() + timeout
    while len(taken) < count:
        capture = watch.wait_for_one_after(moment, until - time.monotonic(), stopped)
        if capture is None:
            return None
        taken.append(capture)
        moment = capture
    return taken


def averaged_markers(
    taken: list[Capture[MarkerFrame]], frame: str, names: list[str], robot: Robot
) -> tuple[Array, str]:
    """Average frames of M markers like `average_markers`; an unreadable one shows none, and is a fault."""
    try:
        return average_markers(labelled(taken, frame), names, robot)
    except SoftformError as error:
        return np.full((len(names), 3), np.nan), error.message


def labelled(taken: list[Capture[MarkerFrame]], frame: str) -> list[LabelledMarkers]:
    """Convert captured marker frames to arrays; they must be in that frame.

    Raises:
        SoftformError: If one is in another frame, or cannot be read.
    """
    messages = [one.cloud for one in taken]
    for message in messages:
        if message.header.frame_id != frame:
            raise SoftformError(
                f"The markers are in frame '{message.header.frame_id}', not in '{frame}'.",
                "Align the motion-capture system with the robot.",
            )
    return [LabelledMarkers(list(message.name), positions_from_markers(message)) for message in messages]
