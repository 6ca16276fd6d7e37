"""Waits for clouds of several cameras."""

import time
from collections.abc import Mapping
from functools import partial

from sensor_msgs.msg import PointCloud2

from softform_core.errors import SoftformError
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import CAMERA_INPUT

_CLOUDS, _TIME_LIMIT = 10, 20.0
"""Number of clouds that are awaited from each camera, and the time limit, s."""


def listen(topics: Mapping[str, str], namespace: str) -> dict[str, list[PointCloud2]]:
    """Return some clouds of each camera, whose topics are relative to the namespace.

    Raises:
        SoftformError: If a camera does not send so many in time.
    """
    heard: dict[str, list[PointCloud2]] = {camera: [] for camera in topics}
    with BackgroundNode("calibrate_cameras", namespace) as node:
        for camera, topic in topics.items():
            node.create_subscription(PointCloud2, topic, partial(_keep, heard[camera]), CAMERA_INPUT)
        deadline = time.monotonic() + _TIME_LIMIT
        while any(len(clouds) < _CLOUDS for clouds in heard.values()):
            if time.monotonic() > deadline:
                got = ", ".join(f"{len(heard[camera])} of {_CLOUDS} on {topic}" for camera, topic in topics.items())
                raise SoftformError(
                    f"In {_TIME_LIMIT:.0f} s these clouds came: {got}.", "Are the cameras' drivers running?"
                )
            time.sleep(0.02)
    return heard


def _keep(clouds: list[PointCloud2], message: PointCloud2) -> None:
    if len(clouds) < _CLOUDS:
        clouds.append(message)
