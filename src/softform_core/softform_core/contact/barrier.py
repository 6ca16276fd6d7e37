"""Contact without friction: the barrier of incremental potential contact, by the library `ipctk`.

A skin that comes nearer than the reach r to an obstacle, or to itself, has the energy

    Pi_c(x) = kappa r sum of A_i B(d_i / r),    B(s) = -(s^2 - 1)^2 ln s^2

over its pairs of vertices and faces and of edges at distances d_i, with the area A_i that each stands for; it is zero
from r on, twice differentiable there, and without bound at d = 0, so that nothing passes through. `ipctk` finds the
pairs, sums up the energy, its gradient and its Hessian, and tells how far a step is free of collisions. Planes are
exact, and each vertex meets them by itself, as it does the balls of a body that is led step by step.
"""

from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_matrix, csc_matrix

from softform_core.arrays import Array
from softform_core.contact.obstacles import ExactBall, ExactObstacle, Obstacle
from softform_core.errors import SoftformError
from softform_core.geometry.winding import lies_within
from softform_core.robots.contact import ITSELF
from softform_core.surface.closed import place

__all__ = ["Barrier", "Skin", "Touch"]

_LOOKED_AT, _KEPT_OFF = 200, 0.5
"""Vertices nearest to an obstacle that a led step looks at, and how near it brings them, in reaches."""
_KEPT = 0.8
"""Share of the way to a plane that a step may go, as of `ipctk` to all else."""


class Skin(NamedTuple):
    """What touches.

    Attributes:
        rest: (P, 3) m, its vertices at rest.
        faces: (F, 3).
        is_closed: Whether it has an inside.
        is_held: (P,) which of its vertices never move, as those of a base: they may stand on a plane.
    """

    rest: Array
    faces: NDArray[np.int64]
    is_closed: bool
    is_held: NDArray[np.bool_]


class Touch(NamedTuple):
    """Where a body touches one obstacle, or itself, and how hard.

    Attributes:
        name: Of the obstacle; `itself`.
        place: (3,) m, mean of the points by their forces.
        force: (3,) N on the body, the sum; nil of what touches itself.
        points: (n, 3) m of the skin.
        forces: (n, 3) N on the body at each.
    """

    name: str
    place: Array
    force: Array
    points: Array
    forces: Array


class Barrier:
    """The energy of a skin's contact with obstacles, planes and itself.

    Args:
        skin: The skin.
        obstacles: Closed meshes.
        exact: Planes and balls that each vertex of the skin meets by itself.
        reach: r, m.
        pressure: kappa, Pa.
        itself: Whether it also touches itself.

    Raises:
        SoftformError: If `ipctk` is not installed; if at rest an obstacle is within the skin, or passes through it, or
            touches it; it says where.
    """

    def __init__(
        self,
        skin: Skin,
        obstacles: Sequence[Obstacle],
        exact: Sequence[ExactObstacle],
        reach: float,
        pressure: float,
        itself: bool,
    ) -> None:
        self._ipctk = _library()
        self._skin, self._obstacles, self._exact = skin, obstacles, exact
        self.reach, self.pressure, self._itself = reach, pressure, itself
        self._count = len(skin.rest)
        ends = np.cumsum([self._count, *(len(one.vertices) for one in obstacles)])
        self._starts = ends[:-1]
        self._still = np.concatenate([np.zeros((0, 3)), *(one.vertices for one in obstacles)])
        faces = [skin.faces, *(one.faces + start for one, start in zip(obstacles, ends, strict=False))]
        self._mesh = self._meshed(np.concatenate(faces).astype(np.int32))
        self._potential = self._ipctk.BarrierPotential(reach, pressure, True)
        self._check_rest()

    def _meshed(self, faces: NDArray[np.int32]) -> Any:
        ipctk = self._ipctk
        edges = ipctk.edges(np.asfortranarray(faces))
        mesh = ipctk.CollisionMesh(self._all(self._skin.rest), np.asfortranarray(edges), np.asfortranarray(faces))
        # A large triangle of an obstacle stands for no more than what it meets of the skin.
        for name, is_still in (
            ("vertex_areas", np.arange(len(mesh.rest_positions)) >= self._count),
            ("edge_areas", edges[:, 0] >= self._count),
        ):
            areas = np.array(getattr(mesh, name))
            areas[is_still] = np.minimum(areas[is_still], areas[~is_still].mean())
            setattr(mesh, name, areas)
        self._areas = np.where(self._skin.is_held, 0.0, np.array(mesh.vertex_areas)[: self._count])
        if self._itself:
            mesh.can_collide = ipctk.make_static_obstacle_filter(self._count)
        else:
            mesh.can_collide = ipctk.make_vertex_patches_filter(
                (np.arange(len(mesh.rest_positions)) >= self._count).astype(np.int32)
            )
        return mesh

    def _all(self, points: Array) -> Array:
        return np.asfortranarray(np.concatenate([points, self._still]))

    def _pairs(self, vertices: Array) -> Any:
        pairs = self._ipctk.NormalCollisions()
        pairs.use_area_weighting = True
        pairs.collision_set_type = self._ipctk.NormalCollisions.IMPROVED_MAX_APPROX
        pairs.build(self._mesh, vertices, self.reach)
        return pairs

    @cached_property
    def _has_pairs(self) -> bool:
        return bool(self._obstacles) or self._itself

    def energy(self, points: Array) -> float:
        """Energy, J, with the skin at points (P, 3) m."""
        found = 0.0
        if self._has_pairs:
            vertices = self._all(points)
            found = float(self._potential(self._pairs(vertices), self._mesh, vertices))
        for one in self._exact:
            found += self.pressure * self.reach * float(self._areas @ _barrier(self._to(one, points), 0))
        return found

    def gradient(self, points: Array) -> Array:
        """Gradient (P, 3) N; against it the skin is pushed."""
        found = np.zeros_like(points)
        if self._has_pairs:
            vertices = self._all(points)
            slopes = self._potential.gradient(self._pairs(vertices), self._mesh, vertices)
            found += np.reshape(slopes, (-1, 3))[: self._count]
        for one in self._exact:
            found += self._by_exact(one, points)
        return found

    def hessian(self, points: Array, convex: bool = False) -> csc_matrix:
        """Hessian (3 P, 3 P) N/m; indefinite where the skin could slide off, which a `convex` one lacks."""
        size = 3 * self._count
        found = csc_matrix((size, size))
        if self._has_pairs:
            vertices = self._all(points)
            method = self._ipctk.PSDProjectionMethod.CLAMP if convex else self._ipctk.PSDProjectionMethod.NONE
            every = self._potential.hessian(self._pairs(vertices), self._mesh, vertices, method)
            found = csc_matrix(every)[:size, :size]
        for one in self._exact:
            near = np.flatnonzero(self._to(one, points) < 1.0)
            if len(near):
                found = found + self._by_vertex(near, self._exact_blocks(one, points, near, convex))
        return csc_matrix(found)

    def _exact_blocks(self, one: ExactObstacle, points: Array, near: NDArray[np.int64], convex: bool) -> Array:
        """Second derivatives (n, 3, 3) N/m by the vertices that are near."""
        s, areas, at = self._to(one, points)[near], self._areas[near], points[near]
        normals = one.normals(at)
        along = normals[:, :, None] * normals[:, None]
        blocks = (self.pressure / self.reach * areas * _barrier(s, 2))[:, None, None] * along
        if not convex:
            slope = self.pressure * areas * _barrier(s, 1) * one.bends(at)
            blocks = blocks + slope[:, None, None] * (np.eye(3) - along)
        return np.asarray(blocks)

    def _by_vertex(self, near: NDArray[np.int64], blocks: Array) -> csc_matrix:
        """Blocks (n, 3, 3) on the diagonal of a matrix of all vertices."""
        first = np.searchsorted(near, np.arange(self._count + 1))
        size = 3 * self._count
        return csc_matrix(bsr_matrix((blocks, near, first), shape=(size, size)))

    def free_share(self, points: Array, moved: Array) -> float:
        """Share of the way from points (P, 3) m to where they moved, (P, 3) m, that is free of collisions."""
        share = 1.0
        if self._has_pairs:
            begin, end = self._all(points), self._all(moved)
            candidates = self._ipctk.Candidates()
            candidates.build(self._mesh, begin, end, 0.0)
            if not candidates.empty():
                share = float(candidates.compute_collision_free_stepsize(self._mesh, begin, end))
        for one in self._exact:
            met = float(one.first_met(points, moved)[~self._skin.is_held].min())
            if met <= 1.0:
                share = min(share, _KEPT * met)
        return share

    def clearances(self, points: Array, moved: Array) -> tuple[Array, Array]:
        """What is left, (n,) m, before vertices come near to planes and exact balls, and its derivatives (n, c).

        Args:
            points: (P, 3) m.
            moved: (P, 3, c), derivatives of the points.
        """
        left, slopes = [np.zeros(0)], [np.zeros((0, moved.shape[2]))]
        for one in self._exact:
            away = self.reach * self._to(one, points)
            near = np.argsort(away)[:_LOOKED_AT]
            left.append(np.maximum(away[near] - _KEPT_OFF * self.reach, 0.0))
            slopes.append(np.einsum("ni,nic->nc", one.normals(points[near]), moved[near]))
        return np.concatenate(left), np.concatenate(slopes)

    def touches(self, points: Array) -> list[Touch]:
        """Where the skin at points (P, 3) m touches what, the hardest first."""
        by_name = {one.name: -self._by_exact(one, points) for one in self._exact}
        if self._has_pairs:
            vertices = self._all(points)
            pairs = self._pairs(vertices)
            for number in range(len(pairs)):
                # A pair lies within `pairs` and must end first, or the process ends: so no name is bound to it here.
                ids, slopes = self._pair_slopes(pairs[number], vertices)
                still = ids[ids >= self._count]
                name = ITSELF if not len(still) else self._obstacles[int((self._starts <= still[0]).sum()) - 1].name
                force = by_name.setdefault(name, np.zeros_like(points))
                np.add.at(force, ids[ids < self._count], -slopes[ids < self._count])
        found = []
        for name, force in by_name.items():
            size = np.linalg.norm(force, axis=1)
            felt = size > 0.0
            if felt.any():
                middle = size[felt] @ points[felt] / size.sum()
                found.append(Touch(name, middle, force.sum(axis=0), points[felt], force[felt]))
        return sorted(found, key=lambda one: -float(np.linalg.norm(one.forces, axis=1).sum()))

    def _pair_slopes(self, pair: Any, vertices: Array) -> tuple[NDArray[np.int64], Array]:
        """Vertices (n,) of a pair, and its gradient (n, 3) N by them."""
        ids = np.array([one for one in pair.vertex_ids(self._mesh.edges, self._mesh.faces) if one >= 0])
        return ids, np.reshape(self._potential.gradient(pair, vertices[ids].ravel()), (-1, 3))

    def wrong(self, points: Array) -> str:
        """What is impossible about the skin at points (P, 3) m, with the place; else empty."""
        for exact in self._exact:
            away = self._to(exact, points)
            if away.min() <= 0.0:
                return f"the body lies {exact.told} at {place(points[int(away.argmin())])}"
            if isinstance(exact, ExactBall) and self._skin.is_closed and self._encloses(points, exact.centre):
                return f"obstacle '{exact.name}' lies in the body at {place(exact.centre)}"
        for one in self._obstacles:
            low, high = one.vertices.min(axis=0), one.vertices.max(axis=0)
            near = np.flatnonzero(((points >= low) & (points <= high)).all(axis=1))
            within = near[lies_within(one.vertices[one.faces], points[near])]
            if len(within):
                return f"the body lies in obstacle '{one.name}' at {place(points[within].mean(axis=0))}"
            if self._skin.is_closed:
                corners = points[self._skin.faces]
                near = ((one.vertices >= points.min(axis=0)) & (one.vertices <= points.max(axis=0))).all(axis=1)
                held = one.vertices[near][lies_within(corners, one.vertices[near])]
                if len(held):
                    return f"obstacle '{one.name}' lies in the body at {place(held.mean(axis=0))}"
        if self._has_pairs and self._ipctk.has_intersections(self._mesh, self._all(points)):
            return f"the body passes through {self._crossed(points)}"
        return ""

    def _encloses(self, points: Array, one: Array) -> bool:
        return bool(lies_within(points[self._skin.faces], one[None])[0])

    def _crossed(self, points: Array) -> str:
        """What the skin passes through, and where about."""
        for one in self._obstacles:
            alone = Barrier.__new__(Barrier)
            alone.__dict__.update(self.__dict__, _obstacles=[one], _exact=[], _itself=False, _still=one.vertices)
            alone.__dict__["_mesh"] = alone._meshed(
                np.concatenate([self._skin.faces, one.faces + self._count]).astype(np.int32)
            )
            if self._ipctk.has_intersections(alone._mesh, alone._all(points)):
                low, high = one.vertices.min(axis=0), one.vertices.max(axis=0)
                near = points[np.linalg.norm(points - np.clip(points, low, high), axis=1).argmin()]
                return f"obstacle '{one.name}' near {place(near)}"
        return "itself"

    def _check_rest(self) -> None:
        rest = self._skin.rest
        wrong = self.wrong(rest)
        if not wrong and self._has_pairs:
            vertices = self._all(rest)
            pairs = self._pairs(vertices)
            nearest = float(pairs.compute_minimum_distance(self._mesh, vertices)) if len(pairs) else np.inf
            nearest = np.sqrt(nearest)
            if self._itself and nearest < self.reach and any(t.name == ITSELF for t in self.touches(rest)):
                touch = next(t for t in self.touches(rest) if t.name == ITSELF)
                raise SoftformError(
                    f"At rest the body is nearer to itself than the contact's reach of {1e3 * self.reach:.3g} mm, at "
                    f"{place(touch.place)}.",
                    f"Set reach of contact below {nearest:.2g} m.",
                )
        if wrong:
            raise SoftformError(
                f"At rest {wrong}.", "Move the obstacle away: where the body rests, nothing else can be."
            )

    def _to(self, one: ExactObstacle, points: Array) -> Array:
        """Distances (P,) of points, in reaches; without end of those that are held."""
        return np.where(self._skin.is_held, np.inf, one.away(points) / self.reach)

    def _by_exact(self, one: ExactObstacle, points: Array) -> Array:
        slope = self.pressure * self._areas * _barrier(self._to(one, points), 1)
        return np.asarray(slope[:, None] * one.normals(points))


def _barrier(s: Array, derivative: int) -> Array:
    """B(s) of distances (P,) in reaches, or a derivative of it; infinite behind the plane."""
    found = np.zeros_like(s)
    near = s < 1.0
    found[near] = np.inf
    near &= s > 0.0
    s = s[near]
    square, log = s * s - 1.0, 2.0 * np.log(s)
    if derivative == 0:
        found[near] = -square * square * log
    elif derivative == 1:
        found[near] = -4.0 * s * square * log - 2.0 * square * square / s
    else:
        found[near] = -(12.0 * s * s - 4.0) * log - 16.0 * square + 2.0 * square * square / (s * s)
    return found


def _library() -> ModuleType:
    try:
        import ipctk
    except ImportError as error:
        raise SoftformError(
            "Contact needs ipctk, which is not installed.", ".venv/bin/pip install -r requirements-ipctk.txt"
        ) from error
    ipctk.set_num_threads(1)  # sums over threads would differ by rounding from run to run
    ipctk.set_logger_level(ipctk.LoggerLevel.error)
    return ipctk
