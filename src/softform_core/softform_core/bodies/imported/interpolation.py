"""The imported body as one that can be asked for shapes: between the imported ones a smooth law, no physics.

Radial basis functions over the actuation go through every imported shape; the networks that learn from the same shapes
are another law. On the virtual rig the body also moves as scans of the true robot show it (`scanned_law`), so that a
rehearsal meets the gap that the bench has.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator
from scipy.sparse import coo_matrix, csc_matrix, diags, eye
from scipy.sparse.linalg import splu

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.frames.store import FrameStore, open_recording
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.robots.actuation_map import ActuationMap
from softform_core.shapes.shape import Shape
from softform_core.simulation.hessian import BlockHessian

_MOST_AT_ONCE, _NEIGHBOURS = 1000, 100
"""Of more samples than these only so many that are nearest count at a time."""

Law = Callable[[Array], Array]
"""From actuations (n, m) to values (n, …)."""


def interpolated(actuation: Array, values: Array, kernel: str = "cubic", degree: int = 1) -> Law:
    """A law through values (s, …) at actuations (s, m).

    Raises:
        SoftformError: If they are too few, or actuations lie on a line or plane.
    """
    at, group = np.unique(actuation, axis=0, return_inverse=True)
    flat = np.zeros((len(at), values[0].size))
    np.add.at(flat, group.ravel(), values.reshape(len(values), -1))
    flat /= np.bincount(group.ravel())[:, None]  # of samples that repeat an actuation the mean
    low, span = at.min(axis=0), np.ptp(at, axis=0)
    span[span == 0.0] = np.inf  # what never changed tells nothing, wherever it is asked for
    neighbours = _NEIGHBOURS if len(at) > _MOST_AT_ONCE else None
    try:
        found = RBFInterpolator((at - low) / span, flat, neighbours, kernel=kernel, degree=degree)
        found(np.zeros((1, len(span))))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise SoftformError(
            f"Nothing lies between {len(actuation)} samples of {len(span)} actuations ({error}).",
            "Import more, in which each actuation changes on its own.",
        ) from error
    return lambda at: np.asarray(found((at - low) / span)).reshape(len(at), *values.shape[1:])


_BEYOND = 0.25
"""Of the imported range: further outside nothing is known, and the shape stays as it is."""
_STEP = 1e-4
"""Of the imported range, for derivatives."""


class InterpolatedBody:
    """The `simulation.simulated_body.SimulatedBody` of an imported one: its unknowns are its actuators' values.

    Args:
        law: Points (n, P, 3) m at actuations (n, m).
        actuation: Imported actuations (s, m).
        rest: That of the resting shape, (m,).
        actuation_map: From actuations to values of the actuators.
        faces: (F, 3) over the points.
        told: Where its shapes come from, in a sentence.
    """

    batch, largest_step, rounding, is_slack = 64, np.inf, 0.0, False

    def __init__(
        self, law: Law, actuation: Array, rest: Array, actuation_map: ActuationMap, faces: NDArray[np.int32], told: str
    ) -> None:
        self._law, self._map, self.faces, self.told = law, actuation_map, faces, told
        self.frames = {} if len(faces) else {"tip": 0}
        self.rest = self.unloaded = np.asarray(actuation_map.actuators_of(rest), dtype=np.float64)
        self._span = np.ptp(actuation, axis=0)
        self._low, self._high = (
            actuation.min(axis=0) - _BEYOND * self._span,
            actuation.max(axis=0) + _BEYOND * self._span,
        )
        self._stiffness = 1.0 / float(np.ptp(actuation_map.actuators_of(actuation), axis=0).max()) ** 2

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m under values of the actuators (n, k)."""
        return self._law(np.clip(self._map.actuation_of(unknowns), self._low, self._high))

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """Derivatives (n, P, 3, m) m of the points as the values of the actuators (n, k) move by `moves` (n, k, m)."""
        scale = np.abs(moves).max(axis=1)
        steps = _STEP * self._span.max() / np.where(scale > 0.0, scale, 1.0)
        stepped = np.moveaxis(steps[:, None] * moves, 2, 0)
        change = [self.points(unknowns + step) - self.points(unknowns - step) for step in stepped]
        return np.asarray(np.stack(change, axis=-1) / (2.0 * steps[:, None, None, :]))

    def tolerance(self, actuators: Array) -> Array:
        """Of the gradient, (n,): a millionth of the range."""
        return np.full(len(actuators), 1e-6 * np.sqrt(self._stiffness))

    def start(self, actuators: Array) -> Array:
        """The values themselves."""
        return np.array(actuators, dtype=np.float64)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Of a spring between unknowns and values, (n,)."""
        return 0.5 * self._stiffness * ((unknowns - actuators) ** 2).sum(axis=1)

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, k) and Hessian of the spring."""
        count, inputs = unknowns.shape
        blocks = np.broadcast_to(self._stiffness * np.eye(inputs), (count, 1, inputs, inputs))
        return self._stiffness * (unknowns - actuators), BlockHessian(np.array(blocks))

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the values, (n, k, k)."""
        return np.tile(-self._stiffness * np.eye(unknowns.shape[1]), (len(unknowns), 1, 1))

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Never."""
        return np.zeros(len(unknowns), dtype=bool)


_ROUNDS = 2
"""How often a shape is led on to its scan: each time the points' feet are sought anew."""
_SMOOTH, _HELD = 3.0, 1e-4
"""Weights of smoothness and of not moving at all beside one scanned point a vertex."""
_FURTHEST = 0.15
"""Of the body's size: points further from the imported shape are not of the robot."""
_MOST_POINTS = 20_000

_known: dict[tuple[object, ...], Array] = {}


def scanned_law(path: Path, law: Law, faces: NDArray[np.int32]) -> tuple[Law, int]:
    """A law of shapes moved along their normals as scans show, and how many scans there are; `law` if none.

    Between the scans, as over their holes, what they show is interpolated.

    Raises:
        SoftformError: If the store cannot be read.
    """
    store = open_recording(path)
    if not isinstance(store, FrameStore) or store.attributes["source"].startswith("virtual rig"):
        return law, 0
    numbers = store.captured.tolist()
    actuation = store.actuation[numbers]
    if len(numbers) < 2:
        return law, 0
    shapes = law(actuation)
    key = str(path), store.attributes["created"], *numbers, shapes.tobytes()
    if key not in _known:  # a rig asks for the body more than once
        _known.clear()
        found = [_moves(*pair, faces) for pair in zip(shapes, map(store.points, numbers), strict=True)]
        _known[key] = np.array(found)
    gap = interpolated(actuation, _known[key], kernel="linear", degree=0)
    return lambda at: law(at) + gap(at), len(numbers)


def _moves(shape: Array, scan: NDArray[np.floating], faces: NDArray[np.int32]) -> Array:
    """How the vertices (V, 3) m of a shape move for its surface to be that of a scan (M, 3) m, (V, 3)."""
    points = scan[:: max(1, len(scan) // _MOST_POINTS)].astype(np.float64)
    smooth = _laplacian(len(shape), faces)
    moved, size = shape.copy(), float(np.ptp(shape, axis=0).max())
    for _ in range(_ROUNDS):
        normals = Shape.from_mesh(moved, faces).normals
        assert normals is not None
        triangle, feet, weights = TriangleTree(moved[faces]).query(points)
        near = np.linalg.norm(points - feet, axis=1) < _FURTHEST * size
        corners, weights = faces[triangle[near]], weights[near]
        at_feet = np.einsum("pc,pcx->px", weights, normals[corners])
        offset = np.einsum("px,px->p", points[near] - feet[near], at_feet)
        rows = np.repeat(np.arange(len(corners)), 3)
        seen = csc_matrix((weights.ravel(), (rows, corners.ravel())), shape=(len(corners), len(shape)))
        weight = len(shape) / max(len(corners), 1)
        matrix = weight * seen.T @ seen + _SMOOTH * smooth.T @ smooth + _HELD * eye(len(shape))
        height = splu(csc_matrix(matrix)).solve(weight * (seen.T @ offset))
        moved = moved + height[:, None] * normals
    return moved - shape


def _laplacian(vertices: int, faces: NDArray[np.int32]) -> csc_matrix:
    """Each vertex less the mean of its neighbours, (V, V)."""
    start, end = faces.ravel(), np.roll(faces, 1, axis=1).ravel()
    joined = coo_matrix((np.ones(len(start)), (start, end)), shape=(vertices, vertices)).tocsc()
    joined = ((joined + joined.T) > 0).astype(np.float64)
    degree = np.maximum(np.asarray(joined.sum(axis=1)).ravel(), 1.0)
    return eye(vertices, format="csc") - diags(1.0 / degree) @ joined
