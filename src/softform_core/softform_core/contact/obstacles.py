"""Described obstacles as closed meshes and planes, in metres, checked: what is touched has an inside."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots.contact import Ball, Block, Contact, HalfSpace, SolidMesh
from softform_core.shapes.read import read_shape
from softform_core.surface.closed import Closed, closed_parts
from softform_core.surface.mesh import directed_edges

__all__ = [
    "ExactBall",
    "ExactObstacle",
    "Obstacle",
    "Plane",
    "ball_mesh",
    "exact_balls_of",
    "obstacles_of",
    "planes_of",
]

_MOST_DIVISIONS = 5  # of an icosahedron: 20 thousand triangles


class Obstacle(NamedTuple):
    """A closed mesh.

    Attributes:
        name: Its name.
        vertices: (V, 3) m.
        faces: (F, 3), outwards.
    """

    name: str
    vertices: Array
    faces: NDArray[np.int64]


class Plane(NamedTuple):
    """All behind a plane: a point (3,) m of it, and the unit normal (3,) towards the body."""

    name: str
    point: Array
    normal: Array

    @property
    def told(self) -> str:
        """Where a body is that passed it."""
        return f"behind plane '{self.name}'"

    def away(self, points: Array) -> Array:
        """Distances (P,) m of points (P, 3) m, below 0 within."""
        return np.asarray((points - self.point) @ self.normal)

    def normals(self, points: Array) -> Array:
        """Gradients (P, 3) of the distances."""
        return np.broadcast_to(self.normal, points.shape)

    def bends(self, points: Array) -> Array:
        """Curvatures (P,) 1/m of the distance across its gradient."""
        return np.zeros(len(points))

    def first_met(self, points: Array, moved: Array) -> Array:
        """Share (P,) of the way from points to where they moved at which each comes to it; 1 or more if none does."""
        before, after = self.away(points), self.away(moved)
        return np.where(after <= 0.0, before / np.where(after < before, before - after, 1.0), np.inf)


class ExactBall(NamedTuple):
    """A ball that the vertices of a skin meet, as large as keeps the facets between them out of it."""

    name: str
    centre: Array
    radius: float

    @property
    def told(self) -> str:
        """As of a plane."""
        return f"in obstacle '{self.name}'"

    def away(self, points: Array) -> Array:
        """As of a plane."""
        return np.asarray(np.linalg.norm(points - self.centre, axis=1) - self.radius)

    def normals(self, points: Array) -> Array:
        """As of a plane."""
        return np.asarray((points - self.centre) / np.linalg.norm(points - self.centre, axis=1, keepdims=True))

    def bends(self, points: Array) -> Array:
        """As of a plane."""
        return np.asarray(1.0 / np.linalg.norm(points - self.centre, axis=1))

    def first_met(self, points: Array, moved: Array) -> Array:
        """As of a plane."""
        way, out = moved - points, points - self.centre
        a, b = np.einsum("pi,pi->p", way, way), np.einsum("pi,pi->p", way, out)
        inner = b * b - a * (np.einsum("pi,pi->p", out, out) - self.radius**2)
        met = (inner > 0.0) & (b < 0.0)
        shares = np.full(len(points), np.inf)
        shares[met] = (-b[met] - np.sqrt(inner[met])) / a[met]
        return shares


ExactObstacle: TypeAlias = Plane | ExactBall


def exact_balls_of(contact: Contact, longest: float) -> list[ExactBall]:
    """The balls of a description, for a skin whose edges are no longer than `longest`, m."""
    return [
        ExactBall(one.name, np.array(one.centre), one.radius + longest**2 / (8.0 * one.radius))
        for one in contact.obstacles
        if isinstance(one, Ball)
    ]


def obstacles_of(contact: Contact, reach: float, balls: bool = True) -> list[Obstacle]:
    """The obstacles of a description but for its planes.

    Args:
        contact: The description.
        reach: The facets of a ball deviate from it by less than half of this, m, as far as 20 thousand can.
        balls: Whether balls are among them.

    Raises:
        SoftformError: If a file cannot be read, or its mesh is open; it says where.
    """
    found = []
    for one in contact.obstacles:
        if isinstance(one, Ball) and balls:
            vertices, faces = ball_mesh(one.radius, 0.5 * reach)
            found.append(Obstacle(one.name, vertices + one.centre, faces))
        elif isinstance(one, Block):
            turned = Rotation.from_rotvec(one.turn).apply(_CORNERS * one.size)
            found.append(Obstacle(one.name, turned + one.centre, _BOX_FACES))
        elif isinstance(one, SolidMesh):
            found.append(_read(one))
    return found


def planes_of(contact: Contact) -> list[Plane]:
    """The planes of a description."""
    return [
        Plane(one.name, np.array(one.point), np.array(one.normal) / np.linalg.norm(one.normal))
        for one in contact.obstacles
        if isinstance(one, HalfSpace)
    ]


def ball_mesh(radius: float, deviation: float) -> tuple[Array, NDArray[np.int64]]:
    """Vertices (V, 3) m and faces (F, 3) of a ball about the origin, half of whose facets' deviation lies outside."""
    golden = 0.5 * (1.0 + np.sqrt(5.0))
    vertices = np.array([[0.0, a, b * golden] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    vertices = np.concatenate([np.roll(vertices, shift, axis=1) for shift in range(3)])
    vertices /= np.linalg.norm(vertices[0])
    apart = np.linalg.norm(vertices[:, None] - vertices[None], axis=2)
    side = np.sort(apart[0])[1]
    near = np.abs(apart - side) < 1e-9
    faces = np.array([
        [a, b, c]
        for a in range(12) for b in range(a + 1, 12) for c in range(b + 1, 12)
        if near[a, b] and near[b, c] and near[a, c]
    ])  # fmt: skip
    inwards = np.linalg.det(vertices[faces]) < 0.0
    faces[inwards] = faces[inwards][:, ::-1]
    for _ in range(_MOST_DIVISIONS):
        depth = 1.0 - np.linalg.norm(vertices[faces].mean(axis=1), axis=1).min()
        if radius * depth <= deviation:
            break
        vertices, faces = _divided(vertices, faces)
    depth = 1.0 - np.linalg.norm(vertices[faces].mean(axis=1), axis=1).mean()
    return radius * (1.0 + 0.5 * depth) * vertices, faces


def _divided(vertices: Array, faces: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Each triangle of a sphere of radius 1 cut into four."""
    edges = np.sort(directed_edges(faces).reshape(-1, 2), axis=1)
    edges, which = np.unique(edges, axis=0, return_inverse=True)
    middles = vertices[edges].mean(axis=1)
    middles /= np.linalg.norm(middles, axis=1, keepdims=True)
    ab, bc, ca = (len(vertices) + which.reshape(-1, 3)).T
    a, b, c = faces.T
    parts = [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
    return np.concatenate([vertices, middles]), np.concatenate([np.stack(part, axis=1) for part in parts])


_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_BOX_FACES = np.array([
    [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
    [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
])  # fmt: skip


def _read(described: SolidMesh) -> Obstacle:
    shape = read_shape(described.file, described.unit)
    if shape.faces is None:
        raise SoftformError(
            f"Obstacle '{described.name}' is a cloud of points in {described.file}: it has no inside.",
            "Give a closed mesh.",
        )
    parts = closed_parts(shape.points, shape.faces, f"Obstacle '{described.name}' ({described.file})")
    vertices = np.concatenate([one.points for one in parts])
    starts = np.cumsum([0, *(len(one.points) for one in parts)])
    turned = [one.faces[:, ::-1] if _is_hollow(one, parts) else one.faces for one in parts]
    return Obstacle(
        described.name, vertices, np.concatenate([one + start for one, start in zip(turned, starts, strict=False)])
    )


def _is_hollow(one: Closed, parts: list[Closed]) -> bool:
    """Whether a part is the inside of a wall, as that of a hollow ball."""
    return sum(other is not one and bool(other.encloses(one.points[:1])[0]) for other in parts) % 2 == 1
