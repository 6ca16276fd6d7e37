"""Frames that come by ROS topics, from any driver: labelled by name or number, or clouds without labels."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from sensor_msgs.msg import PointCloud2

from softform_capture.motion_capture.captured_frame import CapturedFrame, no_points
from softform_core.errors import SoftformError
from softform_interfaces.msg import MarkerFrame
from softform_ros.conversions import nanoseconds_from_stamp, points_from_cloud, positions_from_markers


class FrameTopic(NamedTuple):
    """How to read frames from messages of a topic.

    Attributes:
        message: Type of its messages.
        read: A message -> the frame; raises SoftformError if it cannot be used.
    """

    message: type
    read: Callable[[Any], CapturedFrame]


def frame_topic(system: str) -> FrameTopic:
    """Return the topic of one of the systems that are read by ROS: `marker_frame`, `mocap4r2`, `point_cloud`.

    Raises:
        SoftformError: If the message package that it needs is not there.
    """
    if system == "mocap4r2":
        try:
            markers = import_module("mocap4r2_msgs.msg").Markers
        except (ImportError, AttributeError) as error:
            raise SoftformError(
                f"The messages of mocap4r2 cannot be loaded: {error}.",
                "Build the package mocap4r2_msgs, or install it (ros-jazzy-mocap4r2-msgs), and source its workspace.",
            ) from error
        return FrameTopic(markers, frame_from_mocap4r2)
    if system == "point_cloud":
        return FrameTopic(PointCloud2, partial(frame_from_cloud, count()))
    return FrameTopic(MarkerFrame, frame_from_markers)


def frame_from_markers(message: MarkerFrame) -> CapturedFrame:
    """Make a frame of a `MarkerFrame`.

    Raises:
        SoftformError: If its lists do not match, or it has no stamp.
    """
    return CapturedFrame(
        message.frame_number, _captured_at(message), list(message.name), positions_from_markers(message)
    )


def frame_from_mocap4r2(message: Any) -> CapturedFrame:
    """Make a frame of a `mocap4r2_msgs/Markers`, m; a marker's label is its name, or else its number.

    Those with neither name nor number have no label.

    Raises:
        SoftformError: If a label comes twice, or it has no stamp.
    """
    names, places, loose = [], [], []
    for marker in message.markers:
        place = [marker.translation.x, marker.translation.y, marker.translation.z]
        numbered = marker.id_type != type(marker).USE_NAME
        if marker.marker_name or numbered:
            names.append(marker.marker_name or str(marker.marker_index))
            places.append(place)
        else:
            loose.append(place)
    if len(set(names)) < len(names):
        raise SoftformError(f"Frame {message.frame_number} has a label twice.", "Label the markers.")
    positions, unlabelled = (np.array(part, dtype=np.float64).reshape(-1, 3) for part in (places, loose))
    return CapturedFrame(message.frame_number, _captured_at(message), names, positions, unlabelled)


def frame_from_cloud(numbers: Iterator[int], message: PointCloud2) -> CapturedFrame:
    """Make a frame of a `PointCloud2` with one point a marker, m; it gets the next number, as messages have none.

    Raises:
        SoftformError: If it cannot be read, or has no stamp.
    """
    points = points_from_cloud(message)
    return CapturedFrame(next(numbers), _captured_at(message), [], no_points(), points)


def _captured_at(message: Any) -> int:
    """Stamp of the header, nanoseconds."""
    captured_at = nanoseconds_from_stamp(message.header.stamp)
    if captured_at <= 0:
        raise SoftformError("A frame has no stamp.", "Let the driver stamp frames with their time of capture.")
    return captured_at
