"""Rigid motions that bring scans of a robot into its frame, found without a first guess; all that fit equally well.

Iterated closest points from many starts: along normals on the surface, and across its border, which alone keeps a flat
sheet from sliding. What the robot moves counts little, what stands still counts in full.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.geometry.rigid import RigidTransform, centroid
from softform_core.halton import halton_actuations
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape, estimate_normals
from softform_core.surface.mesh import border_edges, directed_edges
from softform_core.units import MM_PER_M

_SAMPLES = 65 * 65
_FINE, _COARSE = 8000, 400
"""Points of a scan in the last steps and in the first ones."""
_CELLS = 40
"""Cells along a scan; the first steps take one point of each, so that close parts do not weigh more."""
_STILL, _MOVING = 0.1, 0.001
"""Share of the largest motion below which points stand still, and the weight of the others."""
_ACTUATIONS = 30
_TURNS, _ROUND = 12, 0.5
"""Turns about the most distinct axis that are tried, and ratio of variances from which no axis is distinct."""
_REACH, _LAST_REACH, _SHRINK = 0.25, 0.02, 0.8
"""Largest distance of closest points over the size, at first and at last, and its factor from step to step."""
_FINE_REACH = 4.0
"""Reach of the steps on the full scan, over the last reach."""
_COARSE_STEPS, _FINE_STEPS, _LAST_STEPS = 15, 12, 20
_MOST = 16
"""Most placements that are followed to the end."""
_HUBER = 4.0
"""Distance over the usual one from which points count by their distance, not by its square."""
_BORDER = 0.02
"""Weight of the whole border over that of the surface."""
_SAME = 0.03
"""Largest distance over the size between points of two placements that count as one."""
_AS_GOOD, _NOISE, _HOPEFUL, _HOPE = 1.3, 2e-4, 1.5, 5e-3
"""Errors up to which a placement is as good as the best: ratio, and excess over the size; and the same for placements
that may still become so."""
_OPEN = 1e-4
"""Least share of the points that oppose a motion; otherwise the motion is left open."""
_DAMPING = 1e-9
"""Damping that stops motions which nothing opposes."""
_AROUND, _EDGE_NEIGHBOURS, _ONE_SIDED = 4, 16, 0.5
"""Neighbours that give the spacing and find edges, and offset of their mean at an edge over their mean distance."""
_INSET = 0.7
"""Distance of the outermost points from an edge, over the distance of neighbours."""
_POOR, _FEWEST_SEEN, _MOST_BESIDE = 0.015, 0.4, 0.15
"""Distance over the size, least share seen and largest share beside; beyond one of them a scan shows no robot."""


@dataclass(frozen=True)
class Reference:
    """Surface that a scan is aligned to, in the robot's frame.

    Attributes:
        points: (P, 3) m.
        normals: (P, 3).
        weights: (P,), 1 where nothing moves.
        border: (B,) those of the points that lie on the surface's border.
    """

    points: Array
    normals: Array
    weights: Array
    border: NDArray[np.int64]

    @classmethod
    def at_rest(cls, robot: Robot) -> "Reference":
        """Return the surface of the resting robot.

        Raises:
            SoftformError: If it has none.
        """
        points = rest_surface(robot).points
        return cls._of(robot, points, np.ones(len(points)))

    @classmethod
    def under(cls, robot: Robot, actuation: Array) -> "Reference":
        """Return the surface that N_fk predicts for an actuation (m,); what moves over the range counts little.

        Raises:
            SoftformError: If the robot has no N_fk.
        """
        pipeline = load_pipeline(robot, _SAMPLES)
        range_ = robot.actuation_min, robot.actuation_max
        shapes = np.stack([pipeline.points(one) for one in halton_actuations(*range_, _ACTUATIONS, 0)])
        moved = np.linalg.norm(np.ptp(shapes, axis=0), axis=1)
        weights = np.where(moved < _STILL * moved.max(), 1.0, _MOVING)
        return cls._of(robot, pipeline.points(actuation) / MM_PER_M, weights)

    @classmethod
    def _of(cls, robot: Robot, points: Array, weights: Array) -> "Reference":
        faces = robot.patches.triangles(_SAMPLES)
        normals = Shape.from_mesh(points, faces).normals
        assert normals is not None
        return cls(points, normals, weights, np.unique(directed_edges(faces)[border_edges(faces)]))

    def beside(self, still: Array) -> "Reference":
        """Return this, and points (S, 3) m around the robot that do not move."""
        if not len(still):
            return self
        return Reference(
            np.concatenate([self.points, still]),
            np.concatenate([self.normals, estimate_normals(still)]),
            np.concatenate([self.weights, np.ones(len(still))]),
            self.border,
        )

    @cached_property
    def tree(self) -> cKDTree:
        """Search tree of the points."""
        return cKDTree(self.points)

    @cached_property
    def size(self) -> float:
        """Largest extent, m."""
        return float(np.ptp(self.points, axis=0).max())

    @cached_property
    def spacing(self) -> Array:
        """Distance of each point to those around it, (P,) m."""
        return np.asarray(self.tree.query(self.points, k=_AROUND)[0][:, -1])

    @cached_property
    def across_border(self) -> Array:
        """Directions (B, 3) on the surface, across its border and away from it."""
        places = self.points[self.border]
        along = places[cKDTree(places).query(places, k=2)[1][:, 1]] - places
        across = np.cross(along, self.normals[self.border])
        inner = self.points[self.tree.query(places, k=_EDGE_NEIGHBOURS)[1]].mean(axis=1)
        across *= np.sign(np.einsum("bd,bd->b", across, places - inner))[:, None]
        return np.asarray(across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12))

    def gaps(self, places: Array, near: NDArray[np.integer]) -> Array:
        """Return the distances of places (N, 3) m above the points `near` (N,), along their normals, (N,) m."""
        return np.asarray(np.einsum("nd,nd->n", self.points[near] - places, self.normals[near]))


class Scan:
    """A scan in its own frame, thinned; its points on an edge of what was seen, and how far within it they lie, m."""

    def __init__(self, points: Array) -> None:
        self.points = Shape(points).sample(_FINE).points
        tree = cKDTree(self.points)
        apart, around = tree.query(self.points, k=min(_EDGE_NEIGHBOURS, len(self.points)))
        self.inset = _INSET * float(np.median(apart[:, 1]))
        offset = self.points[around] - self.points[:, None]
        reach = np.linalg.norm(offset, axis=2).mean(axis=1)
        self.edge = self.points[np.linalg.norm(offset.mean(axis=1), axis=1) > _ONE_SIDED * reach]
        side = float(np.ptp(np.percentile(points, [2, 98], axis=0), axis=0).max()) / _CELLS
        even = np.unique(np.floor(points / max(side, 1e-9)), axis=0, return_index=True)[1]
        self.coarse = Shape(points[even]).sample(_COARSE).points

    @cached_property
    def edge_tree(self) -> cKDTree:
        """Search tree of the points on an edge."""
        return cKDTree(self.edge)


class _Step(NamedTuple):
    """Whether a step takes few points, and whether it trusts moving points as much as others."""

    is_coarse: bool
    is_even: bool


_COARSELY, _EVEN, _FINELY = _Step(True, True), _Step(False, True), _Step(False, False)


@dataclass(frozen=True)
class Placement:
    """A possible placement of the scanner.

    Attributes:
        motion: Its pose in the robot's frame: what moves its scans there.
        error: Root of the mean squared distance to the surface of what lies on it, m; zero if nothing does.
        apart: The same of the whole scan, m, as `_error` counts it.
        size: Size of the robot, m.
        seen: Share of the surface that the scan shows.
        beside: Share of the scan that lies beside the surface.
        left_open: What the scan does not tell, such as "the turn about the direction (0.00, 0.00, 1.00)"; else empty.
    """

    motion: RigidTransform
    error: float
    apart: float
    size: float
    seen: float
    beside: float
    left_open: str

    @classmethod
    def of(cls, motion: RigidTransform, scan: Scan, reference: Reference) -> "Placement":
        """Judge a pose of the scanner by its scan."""
        moved, reach = motion.apply(scan.points), _LAST_REACH * reference.size
        distance, near = reference.tree.query(moved)
        gap = reference.gaps(moved, near)[distance < reach]
        return cls(
            motion,
            float(np.sqrt(np.square(gap).mean())) if len(gap) else 0.0,
            _error(motion, scan.points, reference),
            reference.size,
            float((cKDTree(moved).query(reference.points)[0] < reach).mean()),
            float((distance > 2.0 * reach).mean()),
            _left_open(motion, scan, reference),
        )

    def check(self, *, shows_more: bool = False) -> None:
        """See that the scan shows what it should there, and little else unless it may show more.

        Raises:
            SoftformError: If the surfaces lie apart, little of the robot is seen, or much of the scan lies beside it.
        """
        if not shows_more and self.apart > _POOR * self.size:
            raise SoftformError(
                f"The scan does not have the robot's shape: the surfaces are {MM_PER_M * self.apart:.1f} mm apart at "
                "best.",
                "Check the unit and the robot, and cut away all that is not the robot.",
            )
        if not shows_more and self.beside > _MOST_BESIDE:
            raise SoftformError(
                f"{self.beside:.0%} of the scan lie beside the robot.",
                "Cut away all that is not the robot, or register with three places that you know (--at).",
            )
        if self.seen < _FEWEST_SEEN:
            raise SoftformError(
                f"The scan shows {self.seen:.0%} of the robot; {_FEWEST_SEEN:.0%} are needed.",
                "Scan more of it, or more densely.",
            )


def placements(scan: Scan, reference: Reference, start: RigidTransform | None = None) -> list[Placement]:
    """Return all placements of a scanner that fit its scan as well as the best one does, that one first.

    Args:
        scan: The scan.
        reference: Surface that it shows.
        start: The pose, nearly; None if nothing is known of it.
    """
    reach = _LAST_REACH * reference.size
    found = [start] if start is not None else _starts(scan, reference)
    if start is None:
        first = _REACH * reference.size
        found = _best([_refined(one, scan, reference, first, _COARSE_STEPS, _COARSELY) for one in found],
                      scan, reference, True)  # fmt: skip
    found = [_refined(one, scan, reference, _FINE_REACH * reach, _FINE_STEPS, _EVEN) for one in found]
    good = _best(found, scan, reference, False)
    last = [_refined(one, scan, reference, reach, _LAST_STEPS, _FINELY) for one in good]
    return [Placement.of(one, scan, reference) for one in last]


def _starts(scan: Scan, reference: Reference) -> list[RigidTransform]:
    """Return motions that match the main axes, turned about the most distinct one; of round bodies to all sides."""
    middles, axes, spreads = [], [], []
    for points in (scan.coarse, reference.points):
        middle = centroid(points)
        values, vectors = np.linalg.eigh((points - middle).T @ (points - middle))
        middles.append(middle)
        axes.append(vectors * [1.0, 1.0, np.linalg.det(vectors)])
        spreads.append(values)
    flatness, length = spreads[1][0] / spreads[1][1], spreads[1][1] / spreads[1][2]
    about = np.eye(3)[0 if flatness < length else 2]  # across a sheet, along an arm
    turns = Rotation.from_rotvec(2.0 * np.pi / _TURNS * np.arange(_TURNS)[:, None] * about).as_matrix()
    over = np.diag([-1.0, 1.0, -1.0])
    rotations = [axes[1] @ turn @ side @ axes[0].T for turn in turns for side in (np.eye(3), over)]
    if min(flatness, length) > _ROUND:
        rotations += list(Rotation.create_group("I").as_matrix())
    return [RigidTransform(turn, middles[1] - turn @ middles[0]) for turn in rotations]


def _equations(
    motion: RigidTransform, scan: Scan, reference: Reference, reach: float, how: _Step
) -> tuple[Array, Array]:
    """Return the normal equations (6, 6), (6,) of a small motion: a turn over half the size, and a shift, m."""
    middle, half = centroid(reference.points), 0.5 * reference.size
    trust = np.ones(len(reference.points)) if how.is_even else reference.weights
    moved = motion.apply(scan.coarse if how.is_coarse else scan.points)
    distance, near = reference.tree.query(moved)
    direction, gap = reference.normals[near], reference.gaps(moved, near)
    weights = trust[near] * (distance < reach)
    if len(scan.edge) and len(reference.border):
        border = reference.points[reference.border]
        distance, edge = scan.edge_tree.query(motion.apply_inverse(border))
        met, across = motion.apply(scan.edge[edge]), reference.across_border
        near_edge = np.square(np.maximum(1.0 - np.square(distance / reach), 0.0))
        counts = _BORDER * len(moved) / len(border) * trust[reference.border] * near_edge
        direction, moved = np.concatenate([direction, across]), np.concatenate([moved, met])
        gap = np.concatenate([gap, np.einsum("nd,nd->n", border - met, across) - scan.inset])
        weights = np.concatenate([weights, counts])
    rows = np.hstack([np.cross((moved - middle) / half, direction), direction])
    usual = float(np.median(np.abs(gap[weights > 0.0]))) if (weights > 0.0).any() else reach
    weights = weights / np.maximum(np.abs(gap) / max(_HUBER * usual, 1e-9), 1.0) / len(rows)
    return rows.T @ (weights[:, None] * rows), rows.T @ (weights * gap)


def _refined(
    motion: RigidTransform, scan: Scan, reference: Reference, reach: float, steps: int, how: _Step
) -> RigidTransform:
    size, middle = reference.size, centroid(reference.points)
    for _ in range(steps):
        matrix, right = _equations(motion, scan, reference, reach, how)
        move = np.asarray(np.linalg.solve(matrix + _DAMPING * np.eye(6), right), dtype=np.float64)
        motion = motion.moved(move[:3] / (0.5 * size), move[3:], middle)
        reach = max(_SHRINK * reach, _LAST_REACH * size)
    return motion


def _error(motion: RigidTransform, points: Array, reference: Reference) -> float:
    """Return the root mean squared distance of a scan to a surface, m; the distance of far points is limited."""
    moved = motion.apply(points)
    distance, near = reference.tree.query(moved)
    gap = reference.gaps(moved, near)
    beside = np.sqrt(np.maximum(np.square(distance) - np.square(gap), 0.0)) - reference.spacing[near]
    square = np.square(gap) + np.square(np.maximum(beside, 0.0))
    return float(np.sqrt(np.minimum(square, np.square(_LAST_REACH * reference.size)).mean()))


def _best(found: list[RigidTransform], scan: Scan, reference: Reference, is_coarse: bool) -> list[RigidTransform]:
    """Return the distinct placements that are as good as the best one, or may become so if they are coarse."""
    kept: list[RigidTransform] = []
    errors = [_error(one, scan.coarse if is_coarse else scan.points, reference) for one in found]
    times, more = (_HOPEFUL, _HOPE) if is_coarse else (_AS_GOOD, _NOISE)
    limit = max(times * min(errors), min(errors) + more * reference.size)
    for error, one in sorted(zip(errors, found, strict=True), key=lambda pair: pair[0]):
        apart = [np.linalg.norm(one.apply(scan.coarse) - other.apply(scan.coarse), axis=1).max() for other in kept]
        if error <= limit and min(apart, default=np.inf) > _SAME * reference.size:
            kept.append(one)
    return kept[:_MOST]


def _left_open(motion: RigidTransform, scan: Scan, reference: Reference) -> str:
    values, vectors = np.linalg.eigh(_equations(motion, scan, reference, _LAST_REACH * reference.size, _EVEN)[0])
    said = []
    for vector in vectors.T[values < _OPEN]:
        turn, shift = vector[:3], vector[3:]
        what, way = ("turn about", turn) if turn @ turn > shift @ shift else ("shift along", shift)
        way = np.round(way * np.sign(way[np.abs(way).argmax()]) / np.linalg.norm(way), 2) + 0.0
        said.append(f"the {what} the direction ({', '.join(f'{value:.2f}' for value in way)})")
    return " and ".join(said)
