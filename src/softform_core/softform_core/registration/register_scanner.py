"""Finding where a scanner stands by a scan of the resting robot: what is known beside it tells equal sides apart."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.registration.base_alignment import base_alignment
from softform_core.registration.scan_alignment import Pair, Placement, Reference, Scan, check_fit, placements
from softform_core.robots import Robot
from softform_core.units import MM_PER_M

_FOR_A_START = 3
_LARGEST_RESIDUAL = 0.05
"""Of the robot's size: places picked by hand that lie further off are of something else."""
_STILL_FROM, _STILL_TO = 0.02, 0.6
"""Of the robot's size: how far what counts as standing still lies from its surface."""
_TOGETHER, _FEWEST_STILL, _MOST_STILL = 5, 0.02, 600
"""Points of a piece, share of the scan at least, and points that are kept."""


@dataclass(frozen=True)
class RegisteredScan:
    """A scan of the resting robot, and all that fits it.

    Attributes:
        found: Where the scanner may stand, the best first.
        scan: The scan, thinned.
    """

    found: list[Placement]
    scan: Scan

    def still(self, placement: Placement, robot: Robot) -> Array:
        """What is seen around the robot, beside parts that do not move, (S, 3) m in its frame.

        What moves with the robot, such as hoses and the end of an arm, lies beside parts that move.

        Raises:
            SoftformError: If the robot has no N_fk, which tells what moves.
        """
        reference = Reference.under(robot, robot.rest_actuation)
        moved = placement.motion.apply(self.scan.points)
        distance, near = reference.tree.query(moved)
        is_around = (distance > _STILL_FROM * reference.size) & (distance < _STILL_TO * reference.size)
        chosen = moved[is_around & (reference.weights[near] == 1.0)]
        if len(chosen) > _TOGETHER:  # stray points lie alone
            apart = cKDTree(chosen).query(chosen, k=_TOGETHER)[0][:, -1]
            chosen = chosen[apart < _STILL_FROM * reference.size]
        if len(chosen) < _FEWEST_STILL * len(moved):
            return np.empty((0, 3))
        return np.round(chosen[:: max(1, len(chosen) // _MOST_STILL)], 5)


def register_scanner(
    robot: Robot, points: Array, also: tuple[Array, Array] | None, at: Mapping[tuple[float, float, float], Array]
) -> RegisteredScan:
    """Find where the scanner stands.

    Args:
        robot: The robot.
        points: (N, 3) m of the robot at rest, in the scanner's frame.
        also: Another scan from there, and the actuation (m,) that the robot had; it tells equal sides apart.
        at: Places in the robot's frame, m, and where the scanner sees them, (3,) m. Three tell the pose nearly, also
            of a scan that shows more than the robot; fewer tell equal sides apart.

    Raises:
        SoftformError: If the scan does not show the robot at rest, or picked places are of something else.
    """
    rest = Scan(points), Reference.at_rest(robot)
    pairs: list[Pair] = [rest]
    if also is not None:
        pairs.append((Scan(also[0]), Reference.under(robot, also[1])))
    size = rest[1].size
    names = {str(number): place for number, place in enumerate(at)}
    seen = np.array(list(at.values())).reshape(-1, 3)
    start = None
    if len(at) >= _FOR_A_START:
        try:
            start = base_alignment(list(names), seen, names, _LARGEST_RESIDUAL * size)[0]
        except SoftformError as error:
            raise SoftformError(error.message, "Check --at: names, numbers, and the unit.") from error
    found = placements(pairs, start)
    if at:
        places = np.array(list(at))
        off = np.array([np.linalg.norm(one.motion.apply(seen) - places, axis=1).max() for one in found])
        if off.min() > _LARGEST_RESIDUAL * size:
            raise SoftformError(
                f"Where the scan fits, the place {places[0]} m is {off.min():.4f} m off.", "Check --at, and the unit."
            )
        found = [
            one for one, distance in zip(found, off, strict=True) if distance < off.min() + _LARGEST_RESIDUAL * size
        ]
    check_fit(found[0], rest, shows_more=start is not None)
    if also is not None:  # what is simulated of the other scan is not quite so; at rest it is known
        found = [_at_rest(one, rest) for one in found]
    return RegisteredScan(sorted(found, key=lambda one: _is_from_behind(one, rest[1])), rest[0])


def _at_rest(placement: Placement, rest: Pair) -> Placement:
    """The placement by the resting robot alone, unless that leaves something open."""
    alone = placements([rest], placement.motion)[0]
    return placement if alone.left_open else alone


def _is_from_behind(placement: Placement, reference: Reference) -> bool:
    """Whether the origin of the scans lies behind the surface, where no scanner's own frame would."""
    ways = placement.motion.translation - reference.points
    return bool(np.median(np.einsum("px,px->p", ways, reference.normals)) < 0.0)


def described(placement: Placement) -> str:
    """Where the scanner stands and looks, for people."""
    motion = placement.motion
    x, y, z = np.round(MM_PER_M * motion.translation) + 0.0
    axis = ", ".join(f"{value:.2f}" for value in np.round(motion.rotation[:, 2], 2) + 0.0)
    return f"origin of the scans at x {x:.0f}, y {y:.0f}, z {z:.0f} mm, their z axis along ({axis})"
