"""The object between two grippers as the controller believes it to be: shapes, step by step, by one factor.

A shape is found by Newton's method with the factor of an earlier stiffness for as long as that converges well: a step
of the grippers then costs some products and no factorisation. Pins hold further nodes, as the correction of paper 003
does (Fig. 9).
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import kabsch
from softform_core.simulation.factor import Factor
from softform_core.simulation.hessian import SparseHessian
from softform_core.simulation.newton import NoEquilibriumError
from softform_shaping.fall import fallen, stable_factor
from softform_shaping.poses import pose_of, turn_jacobian

__all__ = ["HeldModel", "HeldShape", "Pins", "is_quasi_static"]

_FORCES, _MOVES = 1e-4, 1e-6
"""Share of the loads' forces and of the size below which a shape is in balance (Eq. 25 by these)."""
_ITERATIONS = 30
_SLOW = 0.5
"""Ratio of successive steps from which the factor is made anew."""
_FIRST = 2
"""Steps that are not judged: they set right what the poses turned about."""
_SHIFT, _TURN = 0.1, 0.25
"""Largest move of a gripper in one step, of the size and in rad: a longer one is taken in several."""
_FINEST = 4
_MEMORY = 8
_FIRM = 100.0
"""Of a pin's spring over the stiffness of the nodes around it."""


def is_quasi_static(step: float, force: float, size: float, load: float) -> bool:
    """Eq. 25, by what does not depend on the frame: largest step (m) and force (N) over size (m) and load (N).

    Printed is |m_{i+1} - m_i| <= 1e-8 + 0.02 |m_i|. The right side grows with the distance of the object from the
    origin; 0.5 m from it, 579 nodes may still move by 10 mm a step.
    """
    return step <= _MOVES * size and force <= _FORCES * load


class Pins(NamedTuple):
    """Further nodes that springs lead.

    Attributes:
        weights: (B, V) of the nodes in each pinned point.
        places: (B, 3) m, where the points are led.
        stiffness: (B,) N/m.
    """

    weights: csr_matrix
    places: Array
    stiffness: Array


@dataclass(frozen=True, eq=False)
class HeldShape:
    """A shape in balance.

    Attributes:
        unknowns: (m,) of the model.
        nodes: (V, 3) m, the mesh m of Eq. 1.
        poses: (12,) of the grippers.
        pins: What else holds it.
        iterations: Steps of Newton's method.
        factors: Factorisations among them.
    """

    unknowns: Array
    nodes: Array
    poses: Array
    pins: Pins | None = None
    iterations: int = 0
    factors: int = 0


class _Secants:
    """What the steps so far say of the stiffness beyond the factor (BFGS of few steps, the factor as its first guess).

    Args:
        solved: Product of the inverse of the factor with forces (m,).
    """

    def __init__(self, solved: Callable[[Array], Array]) -> None:
        self._solved = solved
        self._pairs: list[tuple[Array, Array, float]] = []
        self._last: tuple[Array, Array] | None = None

    def went(self, gradient: Array, move: Array) -> None:
        """A move (m,) was made from where the gradient was this."""
        self._last = gradient, move

    def changed(self, gradient: Array) -> None:
        """The gradient (m,) after it."""
        if self._last is None:
            return
        change, move = gradient - self._last[0], self._last[1]
        product = float(change @ move)
        if product > 1e-12 * float(np.linalg.norm(change) * np.linalg.norm(move)):
            self._pairs = [*self._pairs[1 - _MEMORY :], (move, change, product)]

    def step(self, gradient: Array) -> Array:
        """What to subtract from the unknowns, (m,)."""
        found, shares = np.array(gradient), []
        for move, change, product in reversed(self._pairs):
            shares.append(float(move @ found) / product)
            found -= shares[-1] * change
        found = self._solved(found)
        for (move, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            found += (share - float(change @ found) / product) * move
        return found


class HeldModel:
    """A body that two grips hold, and its last factor.

    Args:
        body: Simulator of a body of kind `freeform` with `elements: corotational` and two grips.

    Raises:
        SoftformError: If the body is another.
    """

    def __init__(self, body: Any) -> None:
        if len(getattr(body, "unloaded", ())) != 12 or not hasattr(body, "tetrahedra"):
            raise SoftformError(
                "This body is not held by two grips alone.", "Describe it with elements: corotational and two grips."
            )
        self.body = body
        self.rest_nodes: Array = body.rest_nodes
        self.tetrahedra: NDArray[np.int64] = body.tetrahedra
        self.skin: NDArray[np.int64] = body.skin
        self.faces: NDArray[np.int32] = body.faces
        self.held: list[NDArray[np.int64]] = body.held
        self.size = float(np.ptp(self.rest_nodes, axis=0).max())
        order = body.unknowns(np.arange(self.rest_nodes.size, dtype=np.float64).reshape(-1, 3))[0].astype(np.int64)
        self._order = order
        self._factor: Factor | None = None
        self._factor_of: Pins | None = None
        self._last_hessian: tuple[tuple[Any, Array, Array], SparseHessian] | None = None

    @property
    def rest(self) -> HeldShape:
        """As it was grasped."""
        return HeldShape(self.body.rest, self.rest_nodes, np.zeros(12))

    def shape(
        self, poses: Array, start: HeldShape | None = None, pins: Pins | None = None, finest: int = _FINEST
    ) -> HeldShape:
        """The shape in balance between grippers at `poses` (12,), found from `start`, by default from rest.

        Where a step fails it is parted in up to `finest`, which takes long where there is no shape.

        Raises:
            NoEquilibriumError: If there is none.
            SoftformError: If these are not twelve numbers.
        """
        if np.shape(poses) != (12,) or not np.isfinite(poses).all():
            raise SoftformError(
                f"{np.asarray(poses).tolist()} are no poses of two grippers.",
                "Give x, y, z in m and a rotation vector in rad of each.",
            )
        start = self.rest if start is None else start
        way = np.asarray(poses, dtype=np.float64) - start.poses
        parts = np.abs(way).reshape(2, 2, 3).max(axis=(0, 2)) / np.array([_SHIFT * self.size, _TURN])
        count = max(1, int(np.ceil(parts.max())))
        done, here, iterations, factors = 0.0, start, 0, 0
        step = 1.0 / count
        while done < 1.0 - 1e-12:
            share = min(1.0, done + step)
            found = self._balanced(here, start.poses + share * way, pins)
            if found is None:
                step *= 0.5
                if step < 1.0 / (finest * count):
                    raise NoEquilibriumError(
                        "The object finds no shape between the grippers there.", "Move them less, or less far apart."
                    )
                continue
            done, here = share, found
            iterations, factors = iterations + found.iterations, factors + found.factors
        if start.pins is not pins and not iterations:  # the poses are the same, the pins are not
            again = self._balanced(start, np.asarray(poses, dtype=np.float64), pins)
            if again is None:
                raise NoEquilibriumError("The object cannot be pulled to what was seen.", "Look at the camera's pose.")
            return again
        return HeldShape(here.unknowns, here.nodes, here.poses, pins, iterations, factors)

    def _balanced(self, start: HeldShape, poses: Array, pins: Pins | None) -> HeldShape | None:
        """The shape near `start`, or None if Newton's method fails; by the last factor first, if it has these pins."""
        if self._factor is not None and self._factor_of is pins:
            found = self._followed(start, poses, pins)
            if found is not None:
                return found
        if self._refactor(start.unknowns, start.poses, pins):
            found = self._followed(start, poses, pins)
            if found is not None:
                return replace(found, factors=found.factors + 1)
        return self._fallen(start, poses) if pins is None else None

    def _fallen(self, start: HeldShape, poses: Array) -> HeldShape | None:
        """The shape down from `start`: what is slender buckles or snaps, and is found by no other way."""
        found = fallen(self.body, start.unknowns, poses)
        if found is None:
            return None
        x, steps, factors = found
        return HeldShape(x, self.body.nodes(x), poses, None, steps, factors)

    def _followed(self, start: HeldShape, poses: Array, pins: Pins | None) -> HeldShape | None:
        values, x, factors = poses[None], np.array(start.unknowns), 0
        load = max(float(self.body.tolerance(values)[0]) / 1e-7, 1e-12)
        change = self.body.load_derivative(start.unknowns[None], start.poses[None])[0] @ (poses - start.poses)
        x = x - self._solved(change)
        former, seen = np.inf, _Secants(self._solved)
        for iteration in range(1, _ITERATIONS + 1):
            gradient = self._gradient(x, values, pins)
            force = float(np.linalg.norm(gradient))
            if not np.isfinite(force):
                return None
            seen.changed(gradient)
            step = seen.step(gradient)
            largest = float(np.abs(step).max())
            if iteration > _FIRST and largest > _SLOW * former:
                if not self._refactor(x, poses, pins):
                    return None
                seen = _Secants(self._solved)
                step, factors = self._solved(gradient), factors + 1
                largest = float(np.abs(step).max())
            if not largest < self.size:
                return None
            former = largest
            x = x - step
            seen.went(gradient, -step)
            if is_quasi_static(largest, force, self.size, load):
                return HeldShape(x, self.body.nodes(x), poses, pins, iteration, factors)
        return None

    def _gradient(self, x: Array, values: Array, pins: Pins | None) -> Array:
        found = self.body.gradient(x[None], values)[0]
        if pins is not None:
            nodes = self.body.nodes(x)
            pull = pins.weights.T @ (pins.stiffness[:, None] * (pins.weights @ nodes - pins.places))
            found = found + pull.reshape(-1)[self._order]
        return np.asarray(found)

    def _refactor(self, x: Array, poses: Array, pins: Pins | None) -> bool:
        """Make the factor at x; false if it is not that of a stable balance, and a step by it would lead anywhere."""
        hessian = self._hessian(x, poses)
        if pins is not None:
            springs = (pins.weights.T @ diags(pins.stiffness) @ pins.weights).tocoo()
            axis = np.arange(3)
            rows = (3 * springs.row[:, None] + axis).ravel()
            columns = (3 * springs.col[:, None] + axis).ravel()
            size = self.rest_nodes.size
            added = csr_matrix((springs.data.repeat(3), (rows, columns)), shape=(size, size))
            hessian = SparseHessian(csc_matrix(hessian.matrix + added[self._order][:, self._order]), None)
        if not np.isfinite(hessian.matrix.data).all():
            return False
        self._factor, self._factor_of = hessian.factorised(), pins
        shift = 1e-3 * hessian.mean_diagonal()
        for _ in range(6):
            if (self._factor.pivots > 0.0).all():
                return True
            self._factor, shift = hessian.shifted(shift).factorised(), 10.0 * shift
        return False

    def _hessian(self, x: Array, poses: Array) -> SparseHessian:
        """Without pins at x; the last one is kept, for a shape is asked for what depends on it more than once."""
        key = self.body, x, poses
        if self._last_hessian is None or any(a is not b for a, b in zip(key, self._last_hessian[0], strict=True)):
            self._last_hessian = key, self.body.derivatives(x[None], poses[None])[1]
        return self._last_hessian[1]

    def _solved(self, load: Array) -> Array:
        assert self._factor is not None
        return np.asarray(self._factor.solve(load[None, :, None])[0, :, 0])

    def sensitivity(self, shape: HeldShape) -> Array:
        """How the nodes move with a small variation of the poses, (V, 3, 12) m by m and rad, exact at this shape.

        By the implicit function theorem: at balance the gradient vanishes for all poses, so that K dm = - dg/dr dr.
        """
        return self.sensitivities(shape, np.zeros((self.rest_nodes.size, 0)))[0]

    def sensitivities(self, shape: HeldShape, forces: Array) -> tuple[Array, Array]:
        """As `sensitivity`; and, by the same factor, how they move with what changes the gradient by `forces`.

        Args:
            shape: In balance.
            forces: (3V, k) derivative of the gradient by k parameters, by node and axis.

        Returns:
            (V, 3, 12), and (V, 3, k).
        """
        self._refactor(shape.unknowns, shape.poses, shape.pins)
        by_values = self.body.load_derivative(shape.unknowns[None], shape.poses[None])[0]
        assert self._factor is not None
        moves = np.zeros((self.rest_nodes.size, 12 + forces.shape[1]))
        moves[self._order] = -self._factor.solve(np.concatenate([by_values, forces[self._order]], axis=1)[None])[0]
        by_poses = moves[:, :12] @ turn_jacobian(shape.poses)
        return by_poses.reshape(-1, 3, 12), moves[:, 12:].reshape(len(self.rest_nodes), 3, -1)

    def drawn(self, shape: HeldShape, rows: csr_matrix, wanted: Array, stiffness: Array) -> Array:
        """Small move (V, 3) m of a shape that has the least elastic energy and stretch of springs together.

        Args:
            shape: In balance.
            rows: (N, 3V) of what each spring sees of a move, by node and axis, within single elements.
            wanted: (N,) m that it would have it see.
            stiffness: (N,) N/m.

        Raises:
            NoEquilibriumError: If there is none.
        """
        pulled = rows.multiply(stiffness[:, None]).tocsr()
        hessian = self._hessian(shape.unknowns, shape.poses)
        added = (pulled.T @ rows).tocsc()[self._order][:, self._order]
        factor = stable_factor(SparseHessian(csc_matrix(hessian.matrix + added), None))[0]
        moves = np.zeros(self.rest_nodes.size)
        load = (pulled.T @ wanted)[self._order] - self._gradient(shape.unknowns, shape.poses[None], None)
        moves[self._order] = factor.solve(load[None, :, None])[0, :, 0]
        if not np.abs(moves).max() < self.size:  # not even a number
            raise NoEquilibriumError("The object cannot be drawn to what was seen.", "Look at the camera's pose.")
        return moves.reshape(-1, 3)

    def poses_in(self, nodes: Array) -> Array:
        """Poses (12,) of grippers that hold their nodes as a shape (V, 3) m has them, as nearly as rigid ones can."""
        motions = [kabsch(self.rest_nodes[held], nodes[held]) for held in self.held]
        return np.concatenate([pose_of(*each) for each in zip(motions, self.body.centres, strict=True)])

    def of(self, body: Any) -> "HeldModel":
        """The same object, and its last factor, with another body on its mesh."""
        changed = copy(self)
        changed.body = body
        return changed

    def stresses(self, shape: HeldShape) -> Array:
        """Eq. 9: von Mises stress (E,) Pa of each tetrahedron."""
        return np.asarray(self.body.stresses(shape.unknowns))

    def nodal_stresses(self, shape: HeldShape) -> Array:
        """The same at the nodes (V,) Pa: the largest of the tetrahedra around each, so that none looks harmless."""
        found = np.zeros(len(self.rest_nodes))
        np.maximum.at(found, self.tetrahedra, self.stresses(shape)[:, None])
        return found

    def pinned(self, nodes: NDArray[np.integer], places: Array, firmness: float = _FIRM) -> Pins:
        """Pins that lead nodes (B,) to places (B, 3) m; `firmness` over the stiffness of the material around a node."""
        stiffness = firmness * self.body.modulus * (self.body.volumes.mean() ** (1.0 / 3.0))
        weights = csr_matrix((np.ones(len(nodes)), (np.arange(len(nodes)), nodes)), (len(nodes), len(self.rest_nodes)))
        return Pins(weights, np.asarray(places, dtype=np.float64), np.full(len(nodes), stiffness))
