"""A body that can be simulated, and where its points are at equilibrium. Rig, studies and models know no more of it."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.simulation.factor import Factor
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, find_equilibria
from softform_core.simulation.problem import EquilibriumProblem

__all__ = [
    "BodyOfBones",
    "BodyOfData",
    "BodyOfSurfaces",
    "LinedBody",
    "PathDependentBody",
    "PulledBody",
    "SimulatedBody",
    "Surface",
    "SweptBody",
    "TendonLoads",
    "TrackedBody",
    "TurningBody",
    "equilibrium_points",
    "equilibrium_unknowns",
    "rest_points",
    "skin_count",
]


class SimulatedBody(EquilibriumProblem, Protocol):
    """An `EquilibriumProblem` that gives the places of P points of its body: of its surface, named frames, or both.

    A body with a surface gives its vertices first, so that `faces` index the points.
    """

    @property
    def faces(self) -> NDArray[np.int32]:
        """Triangles (F, 3) over the points, outward normals by the right-hand rule; (0, 3) without a surface."""

    @property
    def frames(self) -> dict[str, int]:
        """The point of each named frame."""

    @property
    def rest(self) -> Array:
        """Unknowns (m,) of the undeformed body."""

    @property
    def is_slack(self) -> bool:
        """Whether it stays undeformed without load and has too little stiffness there for Newton's method."""

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m of unknowns (n, m)."""

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """Derivatives (n, P, 3, k) m of the points as the unknowns (n, m) move by `moves` (n, m, k)."""


@runtime_checkable
class TurningBody(SimulatedBody, Protocol):
    """A body that gives the rotations of its frames."""

    def turns(self, unknowns: Array) -> Array:
        """Rotations (n, F, 3, 3) of the F frames, in their order, from rest to unknowns (n, m)."""


@runtime_checkable
class BodyOfBones(SimulatedBody, Protocol):
    """A body that gives frames along it, on which a skin can ride where there is no surface."""

    def bones(self, unknowns: Array) -> Array:
        """Places (n, B, 3, 3) m of B frames: origin, where x points to, and a third one that says the roll about x."""

    def moved_bones(self, unknowns: Array, moves: Array) -> Array:
        """Derivatives (n, B, 3, 3, k) m of these places as the unknowns (n, m) move by `moves` (n, m, k)."""


@runtime_checkable
class LinedBody(SimulatedBody, Protocol):
    """A body that tells where its centre line is."""

    @property
    def along(self) -> Array:
        """Where its N nodes are along the body at rest, (N,), rising from 0 at its base to 1 at its end."""

    def line(self, unknowns: Array) -> Array:
        """Nodes (n, N, 3) m of its centre line for unknowns (n, m)."""

    def moved_line(self, unknowns: Array, moves: Array) -> Array:
        """Derivatives (n, N, 3, k) m of the nodes as the unknowns (n, m) move by `moves` (n, m, k)."""


class Surface(NamedTuple):
    """A surface within a body.

    Attributes:
        name: For legends.
        points: (P, 3) m.
        faces: (F, 3) triangles over them.
    """

    name: str
    points: Array
    faces: NDArray[np.int32]


@runtime_checkable
class BodyOfSurfaces(SimulatedBody, Protocol):
    """A body that is made of several surfaces, for pictures of its sections."""

    def surfaces(self, unknowns: Array) -> list[Surface]:
        """Its surfaces for unknowns (m,), from within outwards."""


@runtime_checkable
class BodyOfData(SimulatedBody, Protocol):
    """A body that goes by data, not by physics."""

    @property
    def told(self) -> str:
        """By which, such as `between 64 imported shapes`."""


_MOST_TAKEN_UP = 6
"""Looks for which of the tendons are taut."""


class TendonLoads(NamedTuple):
    """What the motors of k tendons feel of a body at rest.

    Attributes:
        tension: (k,) N.
        stretch: (k,) m; below 0 by how much a tendon is slack.
        stiffness: (k,) N/m of the tendons.
        pulls: (k,) m under which this is so.
        compliance: (k, k) m/N by which each tendon's way grows shorter as each is pulled; None: nothing but it yields.
    """

    tension: Array
    stretch: Array
    stiffness: Array
    pulls: Array
    compliance: Array | None = None

    def of(self, chosen: NDArray[np.int64]) -> "TendonLoads":
        """What the motors of some of the tendons feel, while the others pull as they do."""
        among = None if self.compliance is None else self.compliance[np.ix_(chosen, chosen)]
        own = [values[chosen] for values in (self.tension, self.stretch, self.stiffness, self.pulls)]
        return TendonLoads(own[0], own[1], own[2], own[3], among)

    def tension_at(self, pulls: Array) -> Array:
        """Tensions (k,) N at other pulls (k,) m: the body yields to first order, and a slack tendon is taken up."""
        stretch, taut = self.stretch + pulls - self.pulls, np.maximum(self.stretch, 0.0)
        if self.compliance is None:
            return np.maximum(self.tension + self.stiffness * (np.maximum(stretch, 0.0) - taut), 0.0)
        given, least = stretch + self.compliance @ self.tension, self.tension - self.stiffness * taut
        pulling, tension = stretch > 0.0, self.tension
        for _ in range(_MOST_TAKEN_UP):
            k = self.stiffness[pulling]
            joint = np.eye(len(k)) + k[:, None] * self.compliance[np.ix_(pulling, pulling)]
            tension = np.zeros(len(pulls))
            tension[pulling] = np.linalg.solve(joint, least[pulling] + k * given[pulling])
            now = given - self.compliance @ tension > 0.0
            if (now == pulling).all():
                break
            pulling = now
        return np.maximum(tension, 0.0)


@runtime_checkable
class PulledBody(Protocol):
    """A body that its motors feel."""

    def tendon_loads(self, unknowns: Array, actuators: Array) -> TendonLoads:
        """What the motors feel at unknowns (1, m) under pulls (1, k)."""


@runtime_checkable
class YieldingBody(PulledBody, Protocol):
    """A body that yields to its tendons by more than they stretch."""

    def compliance(self, unknowns: Array, actuators: Array) -> Array:
        """See `TendonLoads`, (k, k) m/N at unknowns (1, m) under pulls (1, k)."""


@runtime_checkable
class TrackedBody(SimulatedBody, PulledBody, Protocol):
    """A body with cables whose balance is cheap to follow, a step at a time, as `simulation.tracking` does."""

    def stretch_limits(self, stretch: Array) -> tuple[Array, Array]:
        """Lowest and highest stretch (k,) m that one step should lead to from stretches (k,): where it is linear."""

    def gradient(self, unknowns: Array, actuators: Array) -> Array:
        """Gradient (1, m) alone, as of `derivatives`."""

    def moved(self, unknowns: Array, step: Array) -> Array:
        """Unknowns (1, m) after a long step (1, m), applied as the body would rather move than be strained."""

    def followed(self, unknowns: Array, actuators: Array, factor: Factor) -> Array:
        """Derivative (1, m, k) of the balance by the actuator values, with the factor of the Hessian there."""

    def moved_stretch(self, unknowns: Array, moves: Array) -> Array:
        """Derivative (k, c) of the stretches of `tendon_loads` as the unknowns (1, m) move by (1, m, c)."""


@runtime_checkable
class SweptBody(SimulatedBody, Protocol):
    """A slender body, whose skin its centre line carries; see `robots.body.Body.skin`."""

    def stations(self, unknowns: Array) -> tuple[Array, Array]:
        """Return centre lines (n, S, 3) m of unknowns (n, m) and their directors (n, S, 3, 3), as columns."""


@runtime_checkable
class PathDependentBody(SimulatedBody, Protocol):
    """A body with a state, such as held tensions: its shape depends on the path of its actuators, and on time."""

    def new(self, samples: int) -> tuple[Array, Any]:
        """Return unknowns (n, m) and state of bodies that have just been made, at no load."""

    def advance(self, unknowns: Array, actuators: Array, state: Any, seconds: Array | float) -> tuple[Array, Any]:
        """Return unknowns and state once the actuators went steadily to values (n, k) in (n,) s; changes neither given.

        Raises:
            NoEquilibriumError: If a body has no equilibrium on the way.
        """

    def in_balance(self, unknowns: Array, state: Any) -> Array:
        """Return values (n, k + ...), those of the actuators first, under which the body is in balance where it is."""


def rest_points(body: SimulatedBody) -> Array:
    """Points (P, 3) m of the undeformed body."""
    return np.asarray(body.points(body.rest[None])[0])


def skin_count(body: SimulatedBody) -> int:
    """Number of the vertices of a body's surface, the first of its points; 0 without a surface."""
    return int(body.faces.max(initial=-1)) + 1


def equilibrium_unknowns(body: SimulatedBody, actuators: Array, near: Array | None = None) -> Array:
    """Unknowns (n, m) at equilibrium under actuator values (n, k), sought from unknowns (n, m) if any are given.

    Raises:
        NoEquilibriumError: If one of them has no equilibrium.
    """
    found = find_equilibria(body, actuators, near)
    if reason := next(filter(None, found.failures), ""):
        raise NoEquilibriumError(reason, NO_EQUILIBRIUM_ADVICE)
    return found.unknowns


def equilibrium_points(body: SimulatedBody, actuators: Array) -> Array:
    """Points (n, P, 3) m at equilibrium; arguments and errors as `equilibrium_unknowns`."""
    return body.points(equilibrium_unknowns(body, actuators))
