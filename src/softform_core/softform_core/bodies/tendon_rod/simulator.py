"""The simulators of a tendon-driven rod: its tendons' energy and equilibria, as described, and as a real one differs.

A tendon at the place x(s) of the cross-section runs along the rod by v = x' + kappa x x + (1 + epsilon) d3 per length
of the rod's axis, in the rod's directors, so that its way is

    L(q) = sum_e l_e |v_e|,   v = (x1' - kappa3 x2,  x2' + kappa3 x1,  1 + epsilon + kappa1 x2 - kappa2 x1),

and its motor stretches it by d = L(q) - L(0) + u. Its energy is k phi(d), see `bodies.loads.cable.taut_energy`.
docs/robots/tendon_rod.md explains every field of a reality.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from softform_core.arrays import Array
from softform_core.bodies.loads.cable import taut_energy, taut_slopes
from softform_core.bodies.placement import by_strains, diagonal
from softform_core.bodies.realities import some_of
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import RealShape, Rod, Share, Specimen, build_rod
from softform_core.bodies.rod.simulator import CHANCES, SampledRod, drawn_elements, drawn_shape, drawn_specimen
from softform_core.bodies.swept import centre_line
from softform_core.bodies.tendon_rod.description import TendonRodBody
from softform_core.bodies.tendon_rod.path import TendonPath
from softform_core.bodies.tendon_rod.reality import PathDependence, path_of
from softform_core.robots.description import NotNegative
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.simulated_body import TendonLoads


class Tendons(NamedTuple):
    """k tendons along a rod of E elements; SI units.

    Attributes:
        inside: (k, E) whether a tendon runs through an element.
        place: (k, E, 2) of a tendon in the cross-section at the middle of an element.
        slope: (k, E, 2) change of that place along the rod.
        rest_length: (k,) of its way along the straight rod.
        stiffness: (k,) N/m.
    """

    inside: NDArray[np.bool_]
    place: Array
    slope: Array
    rest_length: Array
    stiffness: Array


def build_tendons(body: TendonRodBody, rod: Rod, shift: Array, stiffness_scale: Array) -> Tendons:
    """Arrays of the tendons of a rod by `build_rod`; their places shifted by (k, 2) m and stiffness scaled by (k,)."""
    count = len(body.tendons)
    inside = np.array([np.isin(rod.section, body.sections_of(tendon)) for tendon in body.tendons])
    place, slope = np.zeros((2, count, rod.elements, 2))
    for index, tendon in enumerate(body.tendons):
        length = np.where(inside[index], rod.length, 0.0)
        turned = 2.0 * np.pi * tendon.turns * (np.cumsum(length) - 0.5 * length) / length.sum()
        cosine, sine = np.cos(turned), np.sin(turned)
        x, y = np.array(tendon.place) + shift[index]
        place[index] = np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=1)
        rate = 2.0 * np.pi * tendon.turns / length.sum()
        slope[index] = rate * np.stack([-place[index, :, 1], place[index, :, 0]], axis=1)
    rest_length = (inside * rod.length * np.sqrt(1.0 + (slope**2).sum(axis=2))).sum(axis=1)
    stiffness = np.array([tendon.stiffness for tendon in body.tendons]) * stiffness_scale / rest_length
    return Tendons(inside, place, slope, rest_length, stiffness)


class TendonEnergy:
    """Energy of tendons under pulls; `bends` are the free ones of the rod, (n, E, d), see `bodies.placement`.

    Args:
        rod: The rod.
        tendons: The tendons along it.
    """

    def __init__(self, rod: Rod, tendons: Tendons) -> None:
        self._tendons, length = tendons, rod.length[:, None]
        self._length = tendons.inside * rod.length  # (k, E)
        x, y = tendons.place[..., 0], tendons.place[..., 1]
        by_bends = np.zeros((*x.shape, 3, 4))  # of the course v
        by_bends[..., 0, 2], by_bends[..., 1, 2], by_bends[..., 2, :] = -y, x, by_strains(tendons.place)
        by_bends[..., :3] /= length[..., None]
        self._by_bends = np.ascontiguousarray(by_bends[..., rod.strains])
        self._square = self._by_bends.swapaxes(-1, -2) @ self._by_bends
        self._straight = np.concatenate([tendons.slope, np.ones((*x.shape, 1))], axis=-1)

    def energies(self, bends: Array, pulls: Array) -> Array:
        """Energy (n,), J, of all tendons under pulls (n, k) m."""
        return taut_energy(self.stretches(bends, pulls)) @ self._tendons.stiffness

    def stretches(self, bends: Array, pulls: Array) -> Array:
        """Stretch d (n, k) m; below 0 by how much a tendon is slack."""
        return self._stretches(self._courses(bends)[1], pulls)

    def tensions(self, stretches: Array) -> tuple[Array, Array]:
        """Tensions (n, k) N under stretches (n, k), and their derivatives N/m."""
        slope, curvature = taut_slopes(stretches)
        return self._tendons.stiffness * slope, self._tendons.stiffness * curvature

    def derivatives(self, bends: Array, pulls: Array) -> tuple[Array, Array, Array]:
        """Gradient (n, E d) and Hessian (n, E d, E d), J, and the part (n, E, d, d) of each element to be added."""
        size, along, longer = self._longer(bends)
        tension, stiffness = self.tensions(self._stretches(size, pulls))
        hessian = longer.swapaxes(1, 2) @ (stiffness[..., None] * longer)
        turn = self._square - along[..., :, None] * along[..., None, :]
        pull = tension[..., None] * self._length / size
        return (tension[:, None] @ longer)[:, 0], hessian, (pull[..., None, None] * turn).sum(1)

    def pull_derivatives(self, bends: Array, pulls: Array) -> Array:
        """Derivative (n, E d, k) of the gradient by the pulls: k phi''(d) dL/dq."""
        size, _, longer = self._longer(bends)
        return (self.tensions(self._stretches(size, pulls))[1][..., None] * longer).swapaxes(1, 2)

    def _courses(self, bends: Array) -> tuple[Array, Array]:
        """Courses v (n, k, E, 3) and their sizes (n, k, E)."""
        v = self._straight + (self._by_bends @ bends[:, None, :, :, None])[..., 0]
        return v, np.sqrt(np.vecdot(v, v))

    def _stretches(self, size: Array, pulls: Array) -> Array:
        return np.vecdot(self._length, size) - self._tendons.rest_length + pulls

    def _longer(self, bends: Array) -> tuple[Array, Array, Array]:
        """Sizes of the courses, and derivatives: of the sizes (n, k, E, d), and of the ways L (n, k, E d)."""
        v, size = self._courses(bends)
        along = ((v / size[..., None])[..., None, :] @ self._by_bends)[..., 0, :]
        return size, along, (self._length[..., None] * along).reshape(*size.shape[:2], -1)


class TendonRodProblem(RodProblem):
    """`SimulatedBody` of a rod with tendons; its actuator values are the pulls of the tendons, m."""

    def __init__(self, rod: Rod, tendons: Tendons) -> None:
        super().__init__(rod)
        self.tendons, self._tendons = tendons, TendonEnergy(rod, tendons)
        self.unloaded = np.zeros(len(tendons.stiffness))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        own = super().energy(unknowns, actuators[:, :0])  # the rod has no chambers
        return own + self._tendons.energies(self._free(unknowns), actuators)

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J; a tendon joins all elements that it runs through."""
        gradient, own = super().derivatives(unknowns, actuators[:, :0])
        pulled, hessian, blocks = self._tendons.derivatives(self._free(unknowns), actuators)
        if own.blocks.shape[1] == 1:
            hessian += own.blocks[:, 0]
        else:
            blocks += own.blocks
        diagonal(hessian, self.rod.elements)[:] += blocks
        return gradient + pulled, BlockHessian(hessian[:, None])

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pulls, (n, m, k)."""
        return self._tendons.pull_derivatives(self._free(unknowns), actuators)

    def stations(self, unknowns: Array) -> tuple[Array, Array]:
        """As `SweptBody`."""
        return centre_line(self.rod, self._bends(unknowns))

    def tensions(self, unknowns: Array, actuators: Array) -> Array:
        """Tensions (n, k) N of the tendons."""
        return self._tendons.tensions(self._tendons.stretches(self._free(unknowns), actuators))[0]

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """As `PulledBody`."""
        stretch = self._tendons.stretches(self._free(unknowns), actuators)
        return TendonLoads(self._tendons.tensions(stretch)[0][0], stretch[0], self.tendons.stiffness, actuators[0])


class TendonFabrication(Specimen):
    """Errors of a specimen with tendons: one draw for each section or tendon.

    Attributes:
        tendon_place: Deviation of each tendon's two coordinates in the cross-section, m.
        tendon_stiffness: Relative deviation of each tendon's stiffness.
    """

    tendon_place: NotNegative = 0.0
    tendon_stiffness: Share = 0.0


class RealTendonRod(RealShape):
    """The real rod with tendons.

    Attributes:
        fabrication: Errors of this specimen.
        path: What makes its shape depend on its path; nothing, if left out.
    """

    fabrication: TendonFabrication = TendonFabrication()
    path: PathDependence | None = None

    @model_validator(mode="after")
    def _one_law(self) -> "RealTendonRod":
        if self.path is not None and (self.wall is not None or self.elements is not None):
            raise ValueError(
                "a rod with a path has a wall of its own and one element a section: leave out wall, elements"
            )
        return self


Reality = RealTendonRod
_AS_DESCRIBED = RealTendonRod()


def simulator(body: TendonRodBody, real: RealTendonRod = _AS_DESCRIBED) -> TendonRodProblem | TendonPath:
    """The rod and its tendons, or those of a reality; errors as of `build_rod`."""
    if real.path is not None:
        body = body.model_copy(update={"elements": 1})
    rod, made, count = build_rod(body, real), real.fabrication, len(body.tendons)
    draw = np.random.default_rng(made.seed).standard_normal
    draw((2, body.sections))  # what the rod took
    shift, stiffness = made.tendon_place * draw((count, 2)), made.tendon_stiffness * draw(count)
    if real.path is not None:
        return path_of(body, rod, real.path, shift, 1.0 + stiffness)
    return TendonRodProblem(rod, build_tendons(body, rod, shift, 1.0 + stiffness))


real_simulator = simulator


def sampled(body: TendonRodBody) -> SampledRod:
    """The rod for data sets: its tip."""
    return SampledRod(simulator(body), body.frames["tip"])


def drawn_reality(nominal: TendonRodBody, draw: np.random.Generator) -> RealTendonRod:
    """A rod of the distribution that docs/notes/realities-at-random.md describes."""
    fields, made = drawn_shape(draw), drawn_specimen(draw)
    made |= {"tendon_place": draw.uniform(0.01, 0.04) * nominal.section.width}
    made |= {"tendon_stiffness": draw.uniform(0.02, 0.15)}
    differences = some_of(fields | {"fabrication": TendonFabrication(**made)}, CHANCES, draw)
    return RealTendonRod(**differences, elements=drawn_elements(nominal, draw))
