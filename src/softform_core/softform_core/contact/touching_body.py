"""A body that touches what stands about it, and itself: any body whose skin moves linearly with its unknowns.

The barrier of `contact.barrier` is added to the potential of the body, with gradient and Hessian, so that the one
Newton's method and the implicit function theorem take it as they take any load.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_matrix, csc_matrix, csr_matrix, vstack
from scipy.sparse.linalg import splu

from softform_core.arrays import Array
from softform_core.contact.barrier import Barrier, Skin, Touch
from softform_core.contact.obstacles import ExactObstacle, exact_balls_of, obstacles_of, planes_of
from softform_core.errors import SoftformError
from softform_core.robots.contact import Contact
from softform_core.simulation.block_tridiagonal import BlockTridiagonalHessian
from softform_core.simulation.factor import Factor
from softform_core.simulation.hessian import Hessian, SparseFactor, SparseHessian, UpdatedHessian
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, find_equilibria
from softform_core.simulation.problem import MixedProblem, ShapeProblem
from softform_core.simulation.sampled_body import SampledSurface
from softform_core.simulation.simulated_body import SimulatedBody, TrackedBody, rest_points, skin_count
from softform_core.surface.mesh import directed_edges, loops_along

__all__ = ["TouchingBody", "touching"]

_REACH, _LEAST_REACH, _MOST_REACH = 0.002, 1e-5, 0.02  # of the size of the body
_STIFFNESS = 1.0
"""Of the barrier, over that of the body: both are of one order where the skin is pressed on at half the reach."""
_START = 0.9
"""Share of the free way from rest to where a body would begin."""
_POWERS, _HALVINGS = 20, 12
_COLUMNS = 256
_LINEAR = 1e-9
_CARRIED = (
    "surfaces", "tendon_loads", "wrenches", "weights_of", "stresses", "turns", "bones", "moved_bones", "line",
    "moved_line", "along", "stations", "followed", "stretch_limits", "moved_stretch", "compliance",
)  # fmt: skip
"""What else a body may tell, which contact changes nothing of."""


class TouchingBody:
    """`SimulatedBody`, `ShapeProblem` and `GuardedProblem` of a body with contact.

    Args:
        body: The body; its steps are judged by its energy, even of one that is a `MixedProblem` by itself.
        contact: What it touches.
        goes_around: Whether the ends of its skin are closed, as those of an arm; else they are rims, as of a sheet.

    Raises:
        SoftformError: If the body has no skin that moves linearly with its unknowns; or as `Barrier`, `obstacles_of`.
    """

    batch = 1

    def __init__(self, body: SimulatedBody, contact: Contact, goes_around: bool) -> None:
        self._body = body
        rest = rest_points(body)
        if not len(body.faces) or body.batch != 1:
            raise SoftformError(
                "This body has no skin of its own that could touch something.",
                "Leave out contact, or describe it as a membrane, a solid, a freeform body or an arm with cables.",
            )
        points = skin_count(body)
        moves = skin_moves(body, points)
        rest, faces = rest[:points], np.asarray(body.faces, dtype=np.int64)
        if goes_around:
            rest, faces, moves = _with_ends(rest, faces, moves)
        self._moves, self._at_rest = moves, rest
        is_held = np.diff(csr_matrix(moves).indptr).reshape(-1, 3).sum(axis=1) == 0
        size = float(np.ptp(rest, axis=0).max())
        reach = contact.reach or _REACH * size
        if not _LEAST_REACH * size <= reach <= _MOST_REACH * size:
            raise SoftformError(
                f"A reach of contact of {reach:.3g} m does not fit a body of {size:.3g} m.",
                f"Set it between {_LEAST_REACH * size:.1g} and {_MOST_REACH * size:.1g} m, or leave it out.",
            )
        corners = rest[faces]
        area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        stiffness = _typical(body.derivatives(body.rest[None], body.unloaded[None])[1])
        pressure = _STIFFNESS * stiffness * reach / (float(area.sum()) / len(rest))
        exact: list[ExactObstacle] = [*planes_of(contact)]
        if is_led := isinstance(body, TrackedBody):  # pairs of facets would take longer than all else of a step
            edges = directed_edges(faces).reshape(-1, 2)
            exact += exact_balls_of(contact, float(np.linalg.norm(np.diff(rest[edges], axis=1), axis=2).max()))
        others = obstacles_of(contact, reach, balls=not is_led)
        skin = Skin(rest, faces, goes_around, is_held)
        self.barrier = Barrier(skin, others, exact, reach, pressure, contact.itself)
        self.faces, self.frames, self.rest, self.is_slack = body.faces, body.frames, body.rest, body.is_slack
        self.unloaded, self.largest_step, self.rounding = body.unloaded, body.largest_step, body.rounding

    def _skin(self, unknowns: Array) -> Array:
        """Skin (P, 3) m at unknowns (m,)."""
        return self._at_rest + (self._moves @ (unknowns - self.rest)).reshape(-1, 3)

    def tolerance(self, actuators: Array) -> Array:
        """As that of the body."""
        return self._body.tolerance(actuators)

    def start(self, actuators: Array) -> Array:
        """Where the body would begin, as far as the way there from rest is free of collisions.

        A `MixedProblem` would begin where it is in balance without contact: it finds that in a fourth of the steps.
        """
        start = self._body.start(actuators)
        if isinstance(self._body, MixedProblem):
            found = find_equilibria(self._body, actuators)
            start = np.where(found.found[:, None], found.unknowns, start)
        share = self.free_share(self.rest[None], start - self.rest)[0]
        return start if share >= 1.0 else self.rest + _START * share * (start - self.rest)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J."""
        return self._body.energy(unknowns, actuators) + self.barrier.energy(self._skin(unknowns[0]))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, Hessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        gradient, hessian = self._body.derivatives(unknowns, actuators)
        skin = self._skin(unknowns[0])
        slopes = self.barrier.gradient(skin)
        if not slopes.any():
            return gradient, hessian
        more = self._moves.T @ self.barrier.hessian(skin) @ self._moves
        return gradient + (self._moves.T @ slopes.ravel())[None], _joined(hessian, csc_matrix(more))

    def stiffened(self, unknowns: Array, actuators: Array) -> Hessian:
        """As `GuardedProblem`."""
        more = self._moves.T @ self.barrier.hessian(self._skin(unknowns[0]), convex=True) @ self._moves
        return _joined(self._body.derivatives(unknowns, actuators)[1], csc_matrix(more))

    def way_down(self, unknowns: Array, actuators: Array) -> Array | None:
        """As `GuardedProblem`: by the power method for K^-1 N, with K stiffened and K - N the Hessian."""
        hessian = self.derivatives(unknowns, actuators)[1]
        if (hessian.factorised().pivots > 0.0).all():
            return None
        stiffened = self.stiffened(unknowns, actuators)
        factor = stiffened.factorised()
        way = np.random.default_rng(0).standard_normal(unknowns.shape)
        for _ in range(_POWERS):
            way = factor.solve((stiffened.times(way) - hessian.times(way))[..., None])[..., 0]
            way /= max(float(np.abs(way).max()), 1e-300)
        energy = self.energy(unknowns, actuators)
        for length in self.barrier.reach * 0.5 ** np.arange(_HALVINGS):
            for step in (length * way, -length * way):
                share = self.free_share(unknowns, step)[0]
                if self.energy(unknowns + share * step, actuators)[0] < energy[0] - self.rounding:
                    return np.asarray(share * step)
        raise NoEquilibriumError("Newton ended in an unstable balance.", NO_EQUILIBRIUM_ADVICE)

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """As that of the body: what stands about it does not move."""
        return self._body.load_derivative(unknowns, actuators)

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """As of the body."""
        return self._body.has_run_away(unknowns)

    def free_share(self, unknowns: Array, step: Array) -> Array:
        """As `GuardedProblem`, (1,)."""
        begin, end = self._skin(unknowns[0]), self._skin(unknowns[0] + step[0])
        return np.array([self.barrier.free_share(begin, end)])

    def impossible(self, unknowns: Array) -> list[str]:
        """As `ShapeProblem`: what is impossible about the body, and where it passes through something."""
        own = self._body.impossible(unknowns) if isinstance(self._body, ShapeProblem) else [""] * len(unknowns)
        return [
            what or (self.barrier.wrong(self._skin(one)) if np.isfinite(one).all() else "")
            for what, one in zip(own, unknowns, strict=True)
        ]

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m of the body."""
        return self._body.points(unknowns)

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`."""
        return self._body.moved_points(unknowns, moves)

    def touches(self, unknowns: Array) -> list[Touch]:
        """Where it touches what at unknowns (m,), and how hard; the hardest first."""
        return self.barrier.touches(self._skin(unknowns))


class TrackedTouchingBody(TouchingBody):
    """`TrackedBody` with contact: led along what it touches, a step at a time, none of which passes through."""

    _body: TrackedBody

    def is_touching(self, unknowns: Array) -> bool:
        """Whether it is pushed by what it touches at unknowns (1, m)."""
        return bool(self.barrier.gradient(self._skin(unknowns[0])).any())

    def clearances(self, unknowns: Array, moves: Array) -> tuple[Array, Array]:
        """What is left, (n,) m, before places of the skin come near to planes and balls, and its derivatives (n, c).

        Args:
            unknowns: (1, m).
            moves: (1, m, c) derivatives of the unknowns.
        """
        moved = (self._moves @ moves[0]).reshape(len(self._at_rest), 3, -1)
        return self.barrier.clearances(self._skin(unknowns[0]), moved)

    def gradient(self, unknowns: Array, actuators: Array) -> Array:
        """As `TrackedBody`."""
        slopes = self.barrier.gradient(self._skin(unknowns[0]))
        return np.asarray(self._body.gradient(unknowns, actuators) + (self._moves.T @ slopes.ravel())[None])

    def moved(self, unknowns: Array, step: Array) -> Array:
        """As `TrackedBody`, most of the way as far as it is free of collisions."""
        way = self._body.moved(unknowns, step) - unknowns
        share = self.free_share(unknowns, way)[0]
        return np.asarray(unknowns + (way if share >= 1.0 else _START * share * way))


def touching(body: Any, contact: Contact | None, goes_around: bool) -> Any:
    """A body with its contact, which tells what else the body tells; the body itself where there is none."""
    if contact is None:
        return body
    carried = {name: _forwarded(name) for name in _CARRIED if hasattr(body, name)}
    kind = TrackedTouchingBody if isinstance(body, TrackedBody) else TouchingBody
    return type(f"Touching{type(body).__name__}", (kind,), carried)(body, contact, goes_around)


def sampled(body: TouchingBody) -> SampledSurface:
    """A body with contact as data sets use it."""
    return SampledSurface(body)


def _forwarded(name: str) -> property:
    return property(lambda self: getattr(self._body, name))


def skin_moves(body: SimulatedBody, points: int) -> csr_matrix:
    """Derivative (3 P, m) of a body's first P points by its unknowns.

    Raises:
        SoftformError: If they do not move linearly.
    """
    size, rest = len(body.rest), body.rest[None]
    parts = []
    for begin in range(0, size, _COLUMNS):
        some = np.zeros((1, size, min(_COLUMNS, size - begin)))
        some[0, np.arange(begin, begin + some.shape[2]), np.arange(some.shape[2])] = 1.0
        parts.append(csc_matrix(body.moved_points(rest, some)[0, :points].reshape(3 * points, -1)))
    moves = csr_matrix(vstack([part.T for part in parts]).T)
    change = np.random.default_rng(0).standard_normal(size) * _REACH * float(np.ptp(rest_points(body)))
    apart = (body.points(rest + change) - body.points(rest))[0, :points].ravel() - moves @ change
    if np.abs(apart).max() > _LINEAR * np.abs(moves @ change).max():
        raise SoftformError(
            "The skin of this body turns with its sections: contact is not implemented for it.",
            "Leave out contact, or describe it as a membrane, a solid, a freeform body or an arm with cables.",
        )
    return moves


def _with_ends(rest: Array, faces: NDArray[np.int64], moves: csr_matrix) -> tuple[Array, NDArray[np.int64], csr_matrix]:
    """A skin and its moves with a fan of triangles over each of its open ends, about the mean of the end's vertices."""
    sides = directed_edges(faces).reshape(-1, 2)
    there = {tuple(side) for side in sides.tolist()}
    after = {end: begin for begin, end in sides.tolist() if (end, begin) not in there}  # as the fan goes around
    for loop in loops_along(after):
        fan = [[one, other, len(rest)] for one, other in zip(loop, np.roll(loop, -1), strict=True)]
        mean = csr_matrix((np.full(len(loop), 1.0 / len(loop)), (np.zeros(len(loop), dtype=int), loop)), (1, len(rest)))
        rows = [mean @ moves[axis::3] for axis in range(3)]
        rest, faces = np.concatenate([rest, mean @ rest]), np.concatenate([faces, fan])
        moves = csr_matrix(vstack([moves, *rows]))
    return rest, faces, moves


def _typical(hessian: Hessian) -> float:
    """Stiffness of half of the unknowns, N/m: rigid plates, which a few have, do not count."""
    if isinstance(hessian, UpdatedHessian):
        return _typical(hessian.sparse)
    if isinstance(hessian, BlockTridiagonalHessian):
        return float(np.median(np.abs(np.diagonal(hessian.diagonal, axis1=1, axis2=2))))
    if isinstance(hessian, SparseHessian):
        return float(np.median(np.abs(hessian.matrix.diagonal())))
    raise TypeError(f"contact joins sparse Hessians, not {type(hessian).__name__}")


def _joined(hessian: Hessian, more: csc_matrix) -> Hessian:
    """A Hessian of one sample and more entries; those of contact far across the body are new to its pattern."""
    if isinstance(hessian, UpdatedHessian):
        return UpdatedHessian(_joined(hessian.sparse, more), hessian.columns, hessian.weights)  # type: ignore[arg-type]
    if isinstance(hessian, BlockTridiagonalHessian):
        within = _within_layers(hessian, more)
        return SparseHessian(csc_matrix(_assembled(hessian) + more), _by_minimum_degree) if within is None else within
    if not isinstance(hessian, SparseHessian):
        raise TypeError(f"contact joins sparse Hessians, not {type(hessian).__name__}")
    known = csc_matrix((np.ones(len(hessian.matrix.data)), hessian.matrix.indices, hessian.matrix.indptr), more.shape)
    if (abs(more) > 0).astype(float).multiply(known).nnz == (more != 0).nnz:
        matrix = hessian.matrix.copy()
        matrix.data = matrix.data + _in_pattern(matrix, more)
        return SparseHessian(matrix, hessian.factoriser)
    return SparseHessian(csc_matrix(hessian.matrix + more), _by_minimum_degree)


def _within_layers(hessian: BlockTridiagonalHessian, more: csc_matrix) -> BlockTridiagonalHessian | None:
    """A Hessian of layers and more entries, if all of those are of one layer or of neighbours: not of a body's own."""
    width, entries = hessian.diagonal.shape[1], more.tocoo()
    (layer, row), (other, column) = np.divmod(entries.row, width), np.divmod(entries.col, width)
    if len(layer) and np.abs(layer - other).max() > 1:
        return None
    diagonal, below = hessian.diagonal.copy(), hessian.below.copy()
    one, under = layer == other, layer == other + 1
    np.add.at(diagonal, (layer[one], row[one], column[one]), entries.data[one])
    np.add.at(below, (other[under], row[under], column[under]), entries.data[under])
    return BlockTridiagonalHessian(diagonal, below)


def _in_pattern(matrix: csc_matrix, more: csc_matrix) -> Array:
    """Values of `more` at the stored entries of a matrix, in their order."""
    size = matrix.shape[0]
    columns = np.repeat(np.arange(size), np.diff(matrix.indptr))
    found = np.zeros(len(matrix.data))
    order = np.argsort(columns * size + matrix.indices, kind="stable")
    keys = (columns * size + matrix.indices)[order]
    entries = more.tocoo()
    entries.sum_duplicates()
    kept = entries.data != 0.0
    places = np.searchsorted(keys, entries.col[kept].astype(np.int64) * size + entries.row[kept])
    found[order[places]] = entries.data[kept]
    return found


def _assembled(hessian: BlockTridiagonalHessian) -> csc_matrix:
    layers, width = hessian.diagonal.shape[:2]
    rows = [*range(layers), *range(1, layers), *range(layers - 1)]
    columns = [*range(layers), *range(layers - 1), *range(1, layers)]
    blocks = np.concatenate([hessian.diagonal, hessian.below, np.swapaxes(hessian.below, 1, 2)])
    order = np.lexsort((columns, rows))
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=layers))])
    size = layers * width
    return csc_matrix(bsr_matrix((blocks[order], np.array(columns)[order], starts), shape=(size, size)))


def _by_minimum_degree(matrix: csc_matrix) -> Factor:
    try:
        factor = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # exactly singular
        factor = None
    return SparseFactor(matrix.shape[0], factor)
