"""Finding where a scanner stands by a scan of the resting robot: places known in it tell equal sides apart."""

from collections.abc import Mapping

import numpy as np
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.registration.base_alignment import base_alignment
from softform_core.registration.scan_alignment import Placement, Reference, Scan, placements
from softform_core.robots import Robot
from softform_core.units import MM_PER_M

_FOR_A_START = 3
_LARGEST_RESIDUAL = 0.05
"""Largest error of places picked by hand, over the robot's size; beyond it they are of something else."""
_AT_REST, _JOINED = 0.003, 0.02
"""Error over the robot's size, and share of the scan beside the robot, from which it may not be at rest, or the scan's
parts not joined. Made scans at rest fit to a fifth of it and have a thousandth beside; those of a membrane at a tenth
of its range (0.5 kPa) fit to three times it, and those of two halves that lie 60 mm apart have 4 % beside.
"""
_STILL_FROM, _STILL_TO = 0.02, 0.6
"""Least and largest distance from the robot's surface of what counts as standing still, over the robot's size."""
_TOGETHER, _FEWEST_STILL, _MOST_STILL = 5, 0.02, 600
"""Fewest points of a piece, least share of the scan, and most points that are kept."""


def register_scanner(robot: Robot, scan: Scan, at: Mapping[tuple[float, float, float], Array]) -> list[Placement]:
    """Return all placements of the scanner that fit a scan of the robot at rest equally well.

    Args:
        robot: The robot.
        scan: The scan.
        at: Places in the robot's frame, m, and where the scanner sees them, (3,) m. Three tell the pose nearly, also
            of a scan that shows more than the robot; fewer tell equal sides apart.

    Returns:
        At least one; those first from which the origin of the scans sees the front of the robot.

    Raises:
        SoftformError: If the scan does not show the robot at rest, or picked places are of something else.
    """
    reference, start = Reference.at_rest(robot), None
    largest = _LARGEST_RESIDUAL * reference.size
    places, seen = (np.array(list(one)).reshape(-1, 3) for one in (at, at.values()))
    if len(at) >= _FOR_A_START:
        names = {str(number): place for number, place in enumerate(at)}
        try:
            start = base_alignment(list(names), seen, names, largest)[0]
        except SoftformError as error:
            raise SoftformError(error.message, "Check --at: names, numbers, and the unit.") from error
    found = placements(scan, reference, start)
    if at:
        off = [float(np.linalg.norm(one.motion.apply(seen) - places, axis=1).max()) for one in found]
        if min(off) > largest:
            raise SoftformError(
                f"Where the scan fits, the place {places[0]} m is {min(off):.4f} m off.", "Check --at, and the unit."
            )
        found = [one for one, distance in zip(found, off, strict=True) if distance < min(off) + largest]
    found[0].check(shows_more=start is not None)
    return sorted(found, key=lambda one: _is_from_behind(one, reference))


def doubt(placement: Placement, at: Mapping[tuple[float, float, float], Array]) -> str:
    """Return why a placement found by places `at` may be wrong though nothing fits better; empty if it fits well."""
    usual = _AT_REST * placement.size
    if placement.error <= usual and (placement.beside <= _JOINED or len(at) >= _FOR_A_START):
        return ""
    return (
        f"scans of a robot at rest usually fit to {MM_PER_M * usual:.1f} mm, with {_JOINED:.0%} beside it at most. Was "
        "it vented, and are all parts of the scan joined? What the pose is off by, all that is measured will be."
    )


def standing_still(robot: Robot, around: Array) -> Array:
    """Return the points (S, 3) m of a scan (N, 3) m, in the robot's frame, beside parts of it that do not move.

    What moves with the robot, such as hoses and the end of an arm, lies beside parts that move.

    Raises:
        SoftformError: If the robot has no N_fk, which tells what moves.
    """
    reference = Reference.under(robot, robot.rest_actuation)
    distance, near = reference.tree.query(around)
    is_around = (distance > _STILL_FROM * reference.size) & (distance < _STILL_TO * reference.size)
    chosen = around[is_around & (reference.weights[near] == 1.0)]
    if len(chosen) > _TOGETHER:  # stray points lie alone
        apart = cKDTree(chosen).query(chosen, k=_TOGETHER)[0][:, -1]
        chosen = chosen[apart < _STILL_FROM * reference.size]
    if len(chosen) < _FEWEST_STILL * len(around):
        return np.empty((0, 3))
    return np.round(chosen[:: max(1, len(chosen) // _MOST_STILL)], 5)


def _is_from_behind(placement: Placement, reference: Reference) -> bool:
    """Return whether the scans' origin lies behind the surface, where no scanner's own frame would."""
    ways = placement.motion.translation - reference.points
    return bool(np.median(np.einsum("px,px->p", ways, reference.normals)) < 0.0)


def described(placement: Placement) -> str:
    """Describe for people where the scanner stands and looks."""
    motion = placement.motion
    x, y, z = np.round(MM_PER_M * motion.translation) + 0.0
    axis = ", ".join(f"{value:.2f}" for value in np.round(motion.rotation[:, 2], 2) + 0.0)
    return f"origin of the scans at x {x:.0f}, y {y:.0f}, z {z:.0f} mm, their z axis along ({axis})"
