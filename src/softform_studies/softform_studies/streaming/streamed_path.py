"""A moving target: predicted shapes along a smooth closed path of actuations, as messages that only need a stamp."""

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import PointCloud2

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_ros.conversions import cloud_from_points

HARMONICS = 3
_MIDDLE, _SWING = 0.5, 0.35
"""Parts of the working range: the mean of each actuator, and the largest deviation from it."""

_BATCH = 20


def actuation_path(robot: Robot, steps: int, seed: int) -> Array:
    """Return a closed path through the working range, each actuator a random sum of a few harmonics, (steps, k)."""
    random = np.random.default_rng(seed)
    turn = 2.0 * np.pi * np.arange(steps) / steps
    order = np.arange(1, HARMONICS + 1)
    amplitude = random.normal(size=(HARMONICS, robot.degrees_of_freedom)) / order[:, None]
    phase = random.uniform(0.0, 2.0 * np.pi, amplitude.shape)
    wave = np.einsum("hk,shk->sk", amplitude, np.sin(order[None, :, None] * turn[:, None, None] + phase))
    wave *= _SWING / np.abs(wave).max(axis=0)
    return np.asarray(robot.actuation_min + (_MIDDLE + wave) * (robot.actuation_max - robot.actuation_min))


class StreamedPath:
    """The path and its shapes.

    Args:
        pipeline: Forward kinematics that predicts the shapes.
        path: (steps, k).
        points: Wanted points of each shape; the nearest square number is used.
        frame: Frame of the messages.

    Attributes:
        path: Actuations along the path, (steps, k).
        shapes: (steps, P, 3) m, float32 as on the wire.
    """

    def __init__(self, pipeline: ForwardPipeline, path: Array, points: int, frame: str) -> None:
        dense = pipeline.at(pipeline.patches.samples(points))
        self.path = path
        self.shapes = np.concatenate(
            [
                (dense.points(path[start : start + _BATCH]) / MM_PER_M).astype(np.float32)
                for start in range(0, len(path), _BATCH)
            ]
        )
        self._messages = [cloud_from_points(shape, frame, Time()) for shape in self.shapes]

    def __len__(self) -> int:
        return len(self.path)

    def message(self, place: int, stamp: Time) -> PointCloud2:
        """Return the target of a place, counted on round the path."""
        message = self._messages[place % len(self)]
        message.header.stamp = stamp
        return message
