"""Targets that the robot can reach: its own predicted shapes at random actuations, as clouds."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.forward.pipeline import ForwardPipeline
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M

CLOUD_POINTS = 20_000
SEED = 7

_MESH_POINTS = 10_000
"""Points of the mesh that clouds are sampled from: its triangles are finer than the spacing of 20 000 points."""


@dataclass(frozen=True)
class ReachableTarget:
    """A shape that the robot takes under an actuation (k,), as a cloud without normals."""

    actuation: NDArray[np.float64]
    cloud: TargetShape


def reachable_targets(
    robot: Robot, pipeline: ForwardPipeline, count: int, points: int = CLOUD_POINTS
) -> Iterator[ReachableTarget]:
    """Shapes at actuations drawn uniformly from the working range; the first ones are the same for any count.

    Args:
        robot: Robot whose working range is used.
        pipeline: Predicts the shapes.
        count: Number of targets.
        points: Number of points of each cloud.
    """
    dense, faces = pipeline.at(pipeline.patches.samples(_MESH_POINTS)), pipeline.patches.triangles(_MESH_POINTS)
    for number in range(count):
        actuation = np.random.default_rng([SEED, number]).uniform(robot.actuation_min, robot.actuation_max)
        mesh = TargetShape(dense.points(actuation) / MM_PER_M, None, faces)
        yield ReachableTarget(actuation, TargetShape.from_cloud(mesh.sample(points, seed=number).points))
