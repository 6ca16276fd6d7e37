"""Frames of a reality as virtual devices capture them, and true surfaces to judge predictions by; without ROS."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.frames.frames import Frames, MarkerFrames
from softform_core.geometry.rigid import RigidTransform
from softform_core.kept import kept_arrays
from softform_core.registration.base_alignment import base_alignment
from softform_core.registration.markers import register_markers
from softform_core.registration.rest_surface import rest_surface_of
from softform_core.robots import Robot
from softform_core.shapes.shape import estimate_normals
from softform_core.stores.past import pasts
from softform_core.training.marker_learning import MARKERS
from softform_rig.gap import random_actuations
from softform_rig.live_body import LiveBody
from softform_rig.markers import glue_markers, marker_layout
from softform_rig.motion_capture import MotionCapture
from softform_rig.reality import Reality, ScannerDescription
from softform_rig.scanner import Scan, Scanner, half_size

FRAMES_VERSION = 4
"""Version of how scans are made, kept in ledgers: frames made otherwise are learned from again."""
_SCANNER_POSE = RigidTransform.from_pose([0.0, -0.22, 0.52, 0.978599773253286, 0.0, 0.0, -0.205772893716877])
"""Pose of the scanner as in `config/nodes/scanner_pose.yaml`; another one changes nothing but rounding."""
_COVERAGE = 1.2
"""Reach of the scanner over how far the robot at rest reaches from its middle."""
_LARGEST_RESIDUAL = 0.005
"""Largest residual of the base markers, m."""
_NO_REGISTRATION = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
_REST_CAPTURES = 30
_BETWEEN_CAPTURES = 10.0
"""Time between captures, s; occlusions have passed by then."""
MISSING_M = 0.006
"""Distance to all raw scanned points beyond which a true vertex was not seen, m (rays are about 4 mm apart)."""


@dataclass(frozen=True)
class TrueSurfaces:
    """Shapes that a reality really takes; for evaluation only.

    Attributes:
        actuation: (n, k), commanded.
        vertices: (n, V, 3) m.
        faces: (F, 3).
        past: (n, h, k) commanded before each, the oldest first.
    """

    actuation: Array
    vertices: Array
    faces: NDArray[np.int32]
    past: Array

    def part(self, chosen: slice) -> "TrueSurfaces":
        """Return some of the shapes."""
        return TrueSurfaces(self.actuation[chosen], self.vertices[chosen], self.faces, self.past[chosen])


def true_surfaces(robot: Robot, reality: Reality, count: int, seed: int) -> TrueSurfaces:
    """Return shapes at random actuations; the body is moved from each to the next, so hysteresis counts.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality.
    """
    live, actuation = LiveBody(robot, reality), random_actuations(robot, count, seed)
    vertices = np.array([live.commanded_shape(each) for each in actuation])
    return TrueSurfaces(actuation, vertices, live.faces, pasts(actuation, robot.rest_actuation))


def kept_true_surfaces(robot: Robot, reality: Reality, count: int, seed: int, folder: Path) -> TrueSurfaces:
    """Read `true_surfaces` from a file in the folder, or solve them, seconds each, and write them there.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality, or the file cannot be written.
    """
    body = reality.model_dump(mode="json", exclude={"scanner", "motion_capture"})
    settings = {"robot": robot.fingerprint(), "reality": body, "count": count, "seed": seed, "version": FRAMES_VERSION}
    return TrueSurfaces(**kept_arrays(folder, settings, lambda: vars(true_surfaces(robot, reality, count, seed))))


def make_captured(
    robot: Robot,
    reality: Reality,
    frames: int,
    held_out: int,
    points: int,
    seed: int,
    shapes: TrueSurfaces | None = None,
) -> tuple[Frames | MarkerFrames, TrueSurfaces, float]:
    """Return captured frames: by motion capture if there are more markers than kernels, else by scanner.

    Arguments and result as of `make_frames` and `make_marker_frames`.
    """
    if wears_many_markers(robot):
        missing = reality.motion_capture.missing
        return make_marker_frames(robot, reality, frames, held_out, missing, seed, shapes)
    return make_frames(robot, reality, frames, held_out, points, seed, shapes)


def wears_many_markers(robot: Robot) -> bool:
    """Return whether a robot wears more markers than the warp has kernels: the paper's arm of bellows has 400."""
    return robot.markers > MARKERS.kernels


def make_frames(
    robot: Robot,
    reality: Reality,
    frames: int,
    held_out: int,
    points: int = 1000,
    seed: int = 0,
    shapes: TrueSurfaces | None = None,
) -> tuple[Frames, TrueSurfaces, float]:
    """Scan random actuations, then take the true surface at other ones.

    Scans come in the scanner's frame and are registered as `session_registration` finds it.

    Args:
        robot: The robot.
        reality: Reality of the robot.
        frames: Number of captured frames.
        held_out: Number of actuations after them whose true surface is kept.
        points: Drawn at random from each scan.
        seed: Seed of actuations and devices.
        shapes: Known shapes of `true_surfaces` with this seed, at least as many.

    Returns:
        Captured frames, true surfaces of the held-out actuations, mean fraction of the surface missing in a frame.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality.
    """
    shapes = shapes or true_surfaces(robot, reality, frames + held_out, seed)
    scanner = Scanner(reality.scanner, _SCANNER_POSE, _COVERAGE * half_size(robot), seed)
    registration = session_registration(robot, reality.scanner, _SCANNER_POSE, seed)
    draw = np.random.default_rng(seed)
    clouds, normals, missing = [], [], []
    for vertices in shapes.vertices[:frames]:
        scan = scanner.scan(vertices, shapes.faces)
        registered = registration.apply(scan.points)
        missing.append(float((cKDTree(registered).query(vertices)[0] > MISSING_M).mean()))
        chosen = draw.choice(len(registered), min(points, len(registered)), replace=False)
        clouds.append(registered[chosen])
        normals.append(registration.rotate(_estimated(scan))[chosen])
    captured = Frames(shapes.actuation[:frames], clouds, normals, shapes.past[:frames])
    return captured, shapes.part(slice(frames, frames + held_out)), float(np.mean(missing))


def session_registration(
    robot: Robot, described: ScannerDescription, pose: RigidTransform, seed: int
) -> RigidTransform:
    """Return the scanner's transform to the robot's frame, as found once a session from the base markers (Kabsch).

    Each marker is found as exactly as a point of the surface. What is left of the motion stays the same in all frames
    of the session. A reality that registers every scan anew says itself how far each is off, and is given the true
    motion here, as is a robot without base markers.

    Args:
        robot: The robot.
        described: The scanner; its noise is that of every coordinate of a marker.
        pose: True pose of the scanner.
        seed: Seed of the noise.

    Raises:
        SoftformError: If the base markers do not tell the motion.
    """
    is_registered_anew = described.registration_shift > 0.0 or described.registration_turn > 0.0
    if is_registered_anew or not robot.base_markers:
        return RigidTransform(pose.rotation, pose.translation)
    markers = robot.base_markers
    seen = pose.apply_inverse(np.array(list(markers.values())))
    seen = seen + described.noise * np.random.default_rng([seed, 2]).standard_normal(seen.shape)
    return base_alignment(list(markers), seen, markers, _LARGEST_RESIDUAL)[0]


def _estimated(scan: Scan) -> Array:
    """Return normals (N, 3) of a scan's neighbourhoods, towards the side that the scanner looked from."""
    normals = estimate_normals(scan.points)
    return np.where(np.einsum("nx,nx->n", normals, scan.normals)[:, None] < 0.0, -normals, normals)


def make_marker_frames(
    robot: Robot,
    reality: Reality,
    frames: int,
    held_out: int,
    missing: float = 0.02,
    seed: int = 0,
    shapes: TrueSurfaces | None = None,
) -> tuple[MarkerFrames, TrueSurfaces, float]:
    """Capture markers at random actuations, the same as `make_frames` takes, registered at rest.

    `missing` is the share of the markers that a frame lacks on average, in place of the reality's own.

    Returns:
        Captured frames, true surfaces of the held-out actuations, share of the markers that is missing.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality.
    """
    shapes = shapes or true_surfaces(robot, reality, frames + held_out, seed)
    live = LiveBody(robot, reality)
    described = reality.motion_capture.model_copy(update={"missing": missing, "pose": _NO_REGISTRATION})
    at_rest = live.rest
    surface = rest_surface_of(robot, live.simulated)
    glued = glue_markers(surface, marker_layout(surface, robot.markers), described.placement_error, seed)
    # The system's frame is the robot's: no base markers are needed.
    cameras = MotionCapture(described, glued, {}, at_rest, seed)
    clock = itertools.count(step=_BETWEEN_CAPTURES)
    unmoved = live.commanded_shape(robot.rest_actuation)
    rest = np.nanmean([cameras.capture(unmoved, next(clock)) for _ in range(_REST_CAPTURES)], axis=0)
    positions = [cameras.capture(vertices, next(clock)) for vertices in shapes.vertices[:frames]]
    uv, past = register_markers(rest, robot), shapes.past[:frames]
    captured = MarkerFrames(shapes.actuation[:frames], cameras.names, uv, np.array(positions), past)
    return captured, shapes.part(slice(frames, frames + held_out)), float(1.0 - captured.visible.mean())
