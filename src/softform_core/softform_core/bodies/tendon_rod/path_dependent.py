"""A rod whose shape depends on its path: tendons stick and slip in the holes of discs, its wall softens and creeps.

The unknowns are the bends b of the E sections, see `bodies.placement`. A step from one balance to the next has the
potential

    Pi(b) = wall(b) + weight(b) + sum psi(g(b), u)

of `bodies.tendon_rod.wall` and, for each tendon, `bodies.loads.chain`, where g are its chords, over those at rest.
What is held in the step passes for further values of the actuators.
"""

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.loads.chain import Chains, balanced_chains
from softform_core.bodies.placement import diagonal
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.swept import centre_line
from softform_core.bodies.tendon_rod.guides import Guides
from softform_core.bodies.tendon_rod.wall import Fading, Wall
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.simulated_body import TendonLoads

_TOLERANCE = 4e-7  # of a section's bending stiffness: below it the energy of a step is rounding
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Line:
    """How k tendons are made and guided.

    Attributes:
        guides: The holes.
        stiffness: (k,) axial stiffness EA, N.
        run: Length of the sheath from the motor to the base plate, m.
        sheath: Angle by which the sheath is bent, rad; its friction counts as that of the hole in the base plate.
        friction: Coefficient mu in the holes.
        drag: Force F_0 that a hole holds without tension, N.
        give: Stiffness of a tendon that sticks in a hole, N/m.
    """

    guides: Guides
    stiffness: Array
    run: float
    sheath: float
    friction: float
    drag: float
    give: float


class Held(NamedTuple):
    """What is held in a step, of n samples.

    Attributes:
        pulls: (n, k) m, what the tendons feel of their motors.
        anchors: (n, k, E) m.
        bounds: (n, k, E) N.
        slips: (n, k, E) m, before the step.
        peak: (n, E) J, the greatest W of the wall so far.
        fading: What the wall remembers.
    """

    pulls: Array
    anchors: Array
    bounds: Array
    slips: Array
    peak: Array
    fading: Fading

    def packed(self) -> Array:
        """Return all of it as one row a sample, so that it passes for the values of actuators."""
        parts = (*self[:-1], *self.fading)
        return np.concatenate([part.reshape(len(part), prod(part.shape[1:])) for part in parts], axis=1)

    def part(self, chosen: NDArray[np.int64]) -> "Held":
        """Return what is held of some samples."""
        pulls, anchors, bounds, slips, peak = (each[chosen] for each in self[:5])
        return Held(pulls, anchors, bounds, slips, peak, Fading(*(each[chosen] for each in self.fading)))


class PathDependentRod(RodProblem):
    """`SimulatedBody` whose actuator values are the pulls of its tendons, m, alone, or all that is `Held`.

    Of pulls alone it is the rod without friction that has just been made: what a robot without a past would do. How a
    robot with a past moves says `bodies.tendon_rod.path.TendonPath`.
    """

    batch = 256

    def __init__(self, rod: Rod, wall: Wall, line: Line) -> None:
        super().__init__(rod)
        self.guided, self.body_wall = line, wall
        self.tendons, self.sections = len(line.stiffness), rod.elements
        self.unloaded = np.zeros(self.tendons)
        self._at_rest = line.guides.chords(self._placed(self.rest[None])).length[0]
        lengths = np.concatenate([np.full((self.tendons, 1), line.run), self._at_rest], axis=1)
        self.piece_stiffness = line.stiffness[:, None] / lengths  # (k, E + 1) N/m
        bending = float((wall.tube + wall.polymer)[:, :3].min())
        self._tolerance, self.rounding = _TOLERANCE * bending, _ROUNDING * bending

    def bends(self, unknowns: Array) -> Array:
        """Bends (n, E, 4)."""
        return self._free(unknowns)

    def stations(self, unknowns: Array) -> tuple[Array, Array]:
        """As `SweptBody`."""
        return centre_line(self.rod, self.bends(unknowns))

    def held(self, values: Array) -> Held:
        """What is held in steps of the values (n, k) or (n, k + ...)."""
        n, k, e = len(values), self.tendons, self.sections
        if values.shape[1] == k:
            nothing, terms = np.zeros((n, k, e)), len(self.body_wall.times)
            fading = Fading(np.zeros((n, terms, e, 4)), np.full((n, terms), 1e-9))  # slow enough: no term acts
            return Held(values, nothing, nothing, nothing, np.zeros((n, e)), fading)
        pulls, *three, peak, rest = np.split(values, np.cumsum([k, k * e, k * e, k * e, e]), axis=1)
        terms = rest.shape[1] // (4 * e + 1)
        carried, gain = np.split(rest, [terms * 4 * e], axis=1)
        anchors, bounds, slips = (part.reshape(n, k, e) for part in three)
        return Held(pulls, anchors, bounds, slips, peak, Fading(carried.reshape(n, terms, e, 4), gain))

    def chains(self, unknowns: Array, values: Array) -> Chains:
        """The tendons in balance, at unknowns (n, m) under values as of `held`."""
        return self._chains(self.guided.guides.lengths(self._placed(unknowns)), self.held(values))

    def _chains(self, lengths: Array, held: Held) -> Chains:
        return balanced_chains(lengths - self._at_rest, *held[:4], self.piece_stiffness, self.guided.give)

    def wraps(self, unknowns: Array) -> Array:
        """Angles (n, k, E) rad by which the tendons are turned in sheaths and holes, at unknowns (n, m)."""
        placed = self._placed(unknowns)
        wraps = self.guided.guides.wraps(placed, self.guided.guides.chords(placed).chord)
        wraps[..., 0] += self.guided.sheath
        return wraps

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        held, placed = self.held(actuators), self._placed(unknowns)
        energy = self._chains(self.guided.guides.lengths(placed), held).energy.sum(1)
        energy += self.body_wall.energies(placed.bends, held.peak, held.fading)
        return energy if self._weight is None else energy + self._weight.energies(placed)

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J; a tendon joins all sections."""
        held, placed, guides = self.held(actuators), self._placed(unknowns), self.guided.guides
        chords = guides.chords(placed)
        chains = self._chains(chords.length, held)
        tension, longer = chains.tension[:, :, 1:], chords.longer
        gradient, blocks = self.body_wall.derivatives(placed.bends, held.peak, held.fading)
        gradient += (tension[..., None] * longer).sum(1)
        blocks += guides.curvature(placed, chords, tension)
        hessian = self._joined(chains.firm, longer)
        flat = gradient.reshape(len(gradient), -1)
        if self._weight is None:
            diagonal(hessian, self.sections)[:] += blocks
        else:
            pulled, own = self._weight.derivatives(placed, blocks)
            flat, hessian = flat + pulled, hessian + own
        return flat, BlockHessian(hessian[:, None])

    def _joined(self, firm: Array, longer: Array) -> Array:
        """Sum over the tendons of dg/db^T dT/dg dg/db, (n, m, m)."""
        n, k, e, four = longer.shape
        of_sections = np.zeros((n, k, e, e, four))  # of the ways of pieces by the bends of sections
        of_sections[:, :, np.arange(e), np.arange(e)] = longer
        by = of_sections.reshape(n, k, e, e * four)
        stacked = by.reshape(n, k * e, -1)
        return np.asarray(stacked.swapaxes(1, 2) @ (firm @ by).reshape(n, k * e, -1))

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pulls, (n, m, k)."""
        chords = self.guided.guides.chords(self._placed(unknowns))
        chains = self._chains(chords.length, self.held(actuators))
        by_pulls = chains.by_pull[..., None] * chords.longer
        return np.asarray(by_pulls.reshape(len(unknowns), self.tendons, -1).swapaxes(1, 2))

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """As `PulledBody`."""
        chains, pulls = self.chains(unknowns, actuators), actuators[0, : self.tendons]
        return TendonLoads(chains.tension[0, :, 0], pulls - chains.slips[0, :, 0], self.piece_stiffness[:, 0], pulls)
