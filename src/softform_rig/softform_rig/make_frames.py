"""Frames of a reality as the virtual scanner captures them, and true surfaces to judge predictions by; without ROS."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.training.frames import Frames
from softform_rig.gap import random_actuations
from softform_rig.live_membrane import LiveMembrane
from softform_rig.reality import Reality, true_pressures
from softform_rig.scanner import Scanner, ScannerPose

Array = NDArray[np.float64]

_SAME_PLACE = np.eye(3), np.zeros(3)
_MISSING_M = 0.006
"""A true vertex further than this from every raw scanned point was not seen (rays are about 4 mm apart)."""


@dataclass(frozen=True)
class TrueSurfaces:
    """Shapes that a reality really takes; for evaluation only.

    Attributes:
        actuation: (n, k) Pa, commanded.
        vertices: (n, V, 3) m, robot frame.
        faces: (F, 3).
    """

    actuation: Array
    vertices: Array
    faces: NDArray[np.int32]


def make_frames(
    robot: Robot, reality: Reality, frames: int, held_out: int, points: int = 1000, seed: int = 0
) -> tuple[Frames, TrueSurfaces, float]:
    """Scan random actuations, then take the true surface at other ones.

    Args:
        robot: The robot.
        reality: Its reality; the membrane is moved from each actuation to the next, so hysteresis counts.
        frames: Number of captured frames.
        held_out: Number of actuations after them whose true surface is kept.
        points: Points drawn at random from each scan.
        seed: Of actuations and scanner.

    Returns:
        Captured frames, true surfaces of the held-out actuations, mean fraction of the surface missing in a frame.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality.
    """
    actuation = random_actuations(robot, frames + held_out, seed)
    live = LiveMembrane(robot, reality)
    radius = 0.6 * float(np.hypot(robot.membrane.width, robot.membrane.length))
    scanner = Scanner(reality.scanner, ScannerPose(*_SAME_PLACE), radius, seed)
    draw = np.random.default_rng(seed)
    clouds, normals, truths, missing = [], [], [], []
    for number, commanded in enumerate(actuation):
        vertices = live.shape(true_pressures(reality, commanded))
        if live.failure is not None:
            raise SoftformError(f"Reality '{reality.name}' has no shape: {live.failure}", "Soften its differences.")
        if number >= frames:
            truths.append(vertices.copy())
            continue
        scan = scanner.scan(vertices, live.faces)
        missing.append(float((cKDTree(scan.points).query(vertices)[0] > _MISSING_M).mean()))
        chosen = draw.choice(len(scan.points), min(points, len(scan.points)), replace=False)
        clouds.append(scan.points[chosen])
        normals.append(scan.normals[chosen])
    held = TrueSurfaces(actuation[frames:], np.array(truths), live.faces)
    return Frames(actuation[:frames], clouds, normals), held, float(np.mean(missing))
