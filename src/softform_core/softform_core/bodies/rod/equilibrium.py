"""Total potential of a rod, its equilibria, and how its tip moves with the pressures in its chambers.

    Pi(q) = sum_e l_e w(q_e) - sum_i p_i V_i(q) - weight

w is the hyperelastic energy of the wall's fibres, of stretch 1 + epsilon - kappa_2 x_1 + kappa_1 x_2 each, with the
strain limiter and the torsion; V_i is the volume of chamber i, so that pressure is a bending moment p A x and a force
p A. Without weight, elements do not feel each other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.placement import Placed, Weight, by_strains, ends, place, twists
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.rotations import crossed
from softform_core.errors import SoftformError
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.materials import energy_densities, energy_slopes
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities

_LEAST_STRETCH = 0.05


class RodEnergy:
    """Energy of a rod under pressures; `bends` are its free ones, (n, E, d), see `bodies.placement`.

    Args:
        rod: The rod.

    Attributes:
        pushes: (E d, k) derivative of the gradient by the pressures: the same everywhere.
        weights: (E,) of each element's strain energy: its length, and its area over that of the first.
        unit: (E, d) strains of unit bends at a place of the first cross-section.
        linear: (E, d) stiffness of limiter and torsion, J.
    """

    def __init__(self, rod: Rod) -> None:
        self._rod, free = rod, rod.strains
        alike = (rod.coefficients == rod.coefficients[0]).all()
        self._coefficients = rod.coefficients[:1] if alike else rod.coefficients  # numpy is quicker with one number
        length, weights = rod.length, rod.length * rod.scale**2
        in_fibres = np.where(np.arange(4) < 2, (rod.scale / length)[:, None], 1.0)  # (E, 4) strains of unit bends
        self.weights, self.unit = weights, in_fibres[:, free]
        self._gradient_unit = 2.0 * weights[:, None] * self.unit
        self._hessian_unit = self._gradient_unit[:, :, None] * self.unit[:, None, :]
        linear = np.zeros((len(length), 4))
        linear[:, 2], linear[:, 3] = rod.torsion / length, length * rod.limiter
        self.linear = linear[:, free]
        self._linear_blocks = self.linear[:, :, None] * np.eye(len(free))
        arms = by_strains(rod.fibre_place)[:, free]  # (F, d)
        weighted = rod.fibre_area[:, None] * arms
        self._arms, self._weighted = np.ascontiguousarray(arms.T), weighted
        self._products = (weighted[:, :, None] * arms[:, None]).reshape(len(arms), -1)
        of_section = np.arange(rod.chambers) // max(1, rod.chambers // (int(rod.section[-1]) + 1))
        volumes = (rod.section[:, None] == of_section) * weights[:, None] * rod.chamber_area  # (E, k), at rest
        grown = volumes[..., None] * in_fibres[:, None] * by_strains(rod.chamber_place)
        self.pushes = -grown[..., free].swapaxes(1, 2).reshape(self.linear.size, -1)
        self._volumes = volumes.sum(0)

    def energies(self, bends: Array, pressures: Array) -> Array:
        """Pi (n,), J, under pressures (n, k); infinite where a fibre would be crushed."""
        stretch = self._stretch(bends)
        crushed = stretch.min(axis=(1, 2)) < _LEAST_STRETCH
        if crushed.any():
            stretch = np.maximum(stretch, _LEAST_STRETCH)
        density = energy_densities(self._rod.law, self._coefficients, stretch * stretch + 2.0 / stretch)
        energy = density @ self._rod.fibre_area @ self.weights + 0.5 * np.vecdot(bends, self.linear * bends).sum(1)
        energy -= np.vecdot(pressures, self._volumes - bends.reshape(len(bends), -1) @ self.pushes)
        energy[crushed] = np.inf
        return np.asarray(energy)

    def derivatives(self, bends: Array, pressures: Array) -> tuple[Array, Array]:
        """Gradient (n, E d) and Hessian of each element (n, E, d, d), J."""
        stretch = self._stretch(bends)
        inverse = 1.0 / stretch
        inverse_square = inverse * inverse
        slope, curvature = energy_slopes(self._rod.law, self._coefficients, stretch * stretch + 2.0 * inverse)
        rise = stretch - inverse_square  # half of dI1 by the stretch
        stiffness = 2.0 * curvature * rise * rise + slope * (1.0 + 2.0 * inverse * inverse_square)
        gradient = self._gradient_unit * ((slope * rise) @ self._weighted) + self.linear * bends
        blocks = self._hessian_unit * (stiffness @ self._products).reshape(len(bends), *self._hessian_unit.shape)
        blocks += self._linear_blocks
        return gradient.reshape(len(bends), -1) + pressures @ self.pushes.T, blocks

    def _stretch(self, bends: Array) -> Array:
        """Of the fibres, (n, E, F)."""
        return 1.0 + (self.unit * bends) @ self._arms


_TOLERANCE = 1e-11  # of the rod's least stiffness at rest: strains, or rad an element
_ROUNDING = 1e-14  # of its stiffness
_MAX_STEP = 1.0
_RUNAWAY = 3.0  # strain, or rad an element


class RodProblem:
    """`SimulatedBody` of a rod, whose one point is its tip.

    The unknowns are its free bends, see `bodies.placement`: strains, curvatures times the element's length.
    """

    batch = 32
    faces: NDArray[np.int32] = np.zeros((0, 3), dtype=np.int32)
    frames = {"tip": 0}
    is_slack = False
    largest_step = _MAX_STEP

    def __init__(self, rod: Rod) -> None:
        self.rod, self.wall = rod, RodEnergy(rod)
        self._weight = Weight(rod, rod.strains) if rod.gravity.any() else None
        self.unloaded = np.zeros(rod.chambers)
        self.rest = np.zeros(rod.elements * len(rod.strains))
        self._unit = np.where(np.arange(4) == 3, 1.0, rod.length[:, None])  # (E, 4) of bends, over strains
        blocks = self.wall.derivatives(self._free(self.rest[None]), self.unloaded[None])[1]
        stiffness = np.diagonal(blocks, axis1=2, axis2=3)
        self._tolerance = _TOLERANCE * float(stiffness.min())
        self.rounding = _ROUNDING * float(stiffness.sum())

    def strains(self, unknowns: Array) -> Array:
        """Strains (n, E, 4) of unknowns (n, m)."""
        return self._bends(unknowns) / self._unit

    def unknowns(self, strains: Array) -> Array:
        """Unknowns (n, m) of strains (n, E, 4)."""
        return np.asarray((strains * self._unit)[:, :, self.rod.strains].reshape(len(strains), -1))

    def _free(self, unknowns: Array) -> Array:
        """Free bends (n, E, d)."""
        return unknowns.reshape(len(unknowns), self.rod.elements, -1)

    def _bends(self, unknowns: Array) -> Array:
        """Bends (n, E, 4)."""
        if len(self.rod.strains) == 4:
            return self._free(unknowns)
        bends = np.zeros((len(unknowns), self.rod.elements, 4))
        bends[:, :, self.rod.strains] = self._free(unknowns)
        return bends

    def _placed(self, unknowns: Array) -> Placed:
        return place(self.rod, self._bends(unknowns))

    def points(self, unknowns: Array) -> Array:
        """Tips (n, 1, 3) m of unknowns (n, m)."""
        return ends(self.rod, self._placed(unknowns))[1][:, -1:]

    def turns(self, unknowns: Array) -> Array:
        """As `TurningBody`, of the tip: its directors over those of the straight rod, which are the base's."""
        return np.asarray(self._placed(unknowns).directors[:, -1:] @ self.rod.base.T)

    def bones(self, unknowns: Array) -> Array:
        """As `BodyOfBones`, of the elements: from begin to end, and beside the begin along the first director."""
        return self._bones(self._placed(unknowns))

    def moved_bones(self, unknowns: Array, moves: Array) -> Array:
        """As `BodyOfBones`, (n, E, 3, 3, k) m: an element moves the end of its own bone and all of those behind it."""
        placed = self._placed(unknowns)
        places = self._bones(placed).reshape(len(unknowns), -1, 3)
        before = (np.arange(self.rod.elements)[:, None] + np.array([0, 1, 0])).ravel()
        return self._moved(placed, places, before, moves).reshape(len(unknowns), -1, 3, 3, moves.shape[2])

    def _bones(self, placed: Placed) -> Array:
        end, behind = ends(self.rod, placed)
        begin = np.concatenate([np.zeros_like(behind[:, :1]), behind[:, :-1]], axis=1)
        aside = begin + self.rod.length[:, None] * placed.directors[:, :-1, :, 0]
        return np.stack([begin, end, aside], axis=2)

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, 1, 3, k) m."""
        placed = self._placed(unknowns)
        own = twists(self.rod.length, placed.directors[:, :-1], placed.turns, placed.bends[..., 3])
        middle, behind = ends(self.rod, placed)
        by_bends = own[:, :, :3].swapaxes(2, 3)
        by_bends += crossed(own[:, :, 3:].swapaxes(2, 3), (behind[:, -1:] - middle)[:, :, None])
        by_unknowns = by_bends[:, :, self.rod.strains].reshape(len(unknowns), -1, 3).swapaxes(1, 2)
        return np.asarray(by_unknowns @ moves)[:, None]

    @property
    def along(self) -> Array:
        """As `LinedBody`: the base, the end of each element, and of each link behind one."""
        lengths = np.stack([self.rod.length, self.rod.link_length], axis=1).ravel()
        at = np.append(0.0, np.cumsum(lengths))[self._nodes]
        return np.asarray(at / at[-1])

    def line(self, unknowns: Array) -> Array:
        """As `LinedBody`, (n, N, 3) m."""
        return self._line(self._placed(unknowns))

    def moved_line(self, unknowns: Array, moves: Array) -> Array:
        """As `LinedBody`, (n, N, 3, k) m: each node is moved by the bends of all elements before it."""
        placed = self._placed(unknowns)
        return self._moved(placed, self._line(placed), (self._nodes + 1) // 2, moves)

    def _moved(self, placed: Placed, places: Array, before: NDArray[np.int64], moves: Array) -> Array:
        """Return how places (n, N, 3) m move, (n, N, 3, k) m, of which (N,) elements lie `before` each.

        Unknowns that a kind of rod has beside its bends move none of them.
        """
        own = twists(self.rod.length, placed.directors[:, :-1], placed.turns, placed.bends[..., 3])
        shift, turn = own[:, None, :, :3].swapaxes(3, 4), own[:, None, :, 3:].swapaxes(3, 4)
        arms = places[:, :, None] - ends(self.rod, placed)[0][:, None]  # (n, N, E, 3)
        is_before = (np.arange(self.rod.elements) < before[:, None])[:, :, None, None]
        by_bends = np.where(is_before, shift + crossed(turn, arms[:, :, :, None]), 0.0)[:, :, :, self.rod.strains]
        by_unknowns = by_bends.reshape(*arms.shape[:2], -1, 3).swapaxes(2, 3)
        return np.asarray(by_unknowns @ moves[:, None, : by_unknowns.shape[3]])

    @property
    def _nodes(self) -> NDArray[np.int64]:
        """Which of base, end of element, end of its link, end of the next one ... are nodes: links without length not.

        Of element e the end is number 2 e + 1 and the end of its link 2 e + 2.
        """
        is_node = np.ones(2 * self.rod.elements + 1, dtype=bool)
        is_node[2::2] = self.rod.link_length > 0.0
        return np.flatnonzero(is_node)

    def _line(self, placed: Placed) -> Array:
        every = np.stack(ends(self.rod, placed), axis=2)  # (n, E, 2, 3)
        flat = every.reshape(len(every), -1, 3)
        return np.concatenate([np.zeros((len(flat), 1, 3)), flat], axis=1)[:, self._nodes]

    def tolerance(self, actuators: Array) -> Array:
        """Gradient (n,) J below which the rod is in balance."""
        return np.full(len(actuators), self._tolerance)

    def start(self, actuators: Array) -> Array:
        """The straight rod."""
        return np.zeros((len(actuators), len(self.rest)))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        energy = self.wall.energies(self._free(unknowns), actuators)
        return energy if self._weight is None else energy + self._weight.energies(self._placed(unknowns))

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J; without weight the elements do not feel each other."""
        gradient, blocks = self.wall.derivatives(self._free(unknowns), actuators)
        if self._weight is None:
            return gradient, BlockHessian(blocks)
        pulled, hessian = self._weight.derivatives(self._placed(unknowns), blocks)
        return gradient + pulled, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""
        return np.broadcast_to(self.wall.pushes, (len(unknowns), *self.wall.pushes.shape))

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (n,) an element is stretched or bent beyond every measure."""
        return np.asarray(np.abs(unknowns).max(axis=1) > _RUNAWAY)


@dataclass(frozen=True)
class RodEquilibria:
    """Equilibria of n actuations.

    Attributes:
        strains: (n, E, 4), see `bodies.rod.model`; NaN where none was found.
        tips: (n, 3) m, end of the last link in the robot's frame.
        iterations: (n,) of Newton's method.
        failures: (n,) why none was found; empty where one was.
    """

    strains: Array
    tips: Array
    iterations: NDArray[np.int64]
    failures: list[str]


def solve_equilibria(problem: RodProblem, actuators: Array) -> RodEquilibria:
    """Equilibria under values of the actuators (n, k), from the straight rod.

    Raises:
        SoftformError: If values are not finite or of another number than the rod's actuators.
    """
    actuators = np.ascontiguousarray(actuators, dtype=np.float64)
    needed = len(problem.unloaded)
    if actuators.ndim != 2 or actuators.shape[1] != needed or not np.isfinite(actuators).all():
        raise SoftformError(
            f"Values of shape {actuators.shape} are no finite values of {needed} actuators.", "Give (n, k) of them."
        )
    found = find_equilibria(problem, actuators)
    strains = problem.strains(found.unknowns)
    strains[~found.found] = np.nan
    return RodEquilibria(strains, problem.points(found.unknowns)[:, 0], found.iterations, found.failures)


def tip_sensitivities(problem: RodProblem, strains: Array, actuators: Array) -> Array:
    """Derivative (n, 3, k) of the tip by actuators (n, k) at equilibria (n, E, 4): implicit function theorem."""
    unknowns = problem.unknowns(strains)
    return problem.moved_points(unknowns, equilibrium_sensitivities(problem, unknowns, actuators))[:, 0]
