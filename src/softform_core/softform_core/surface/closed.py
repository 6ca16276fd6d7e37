"""Closed surfaces of triangles: the parts of what a file holds, and what is wrong with them, with the place.

Places are told in mm in the robot's frame.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.winding import lies_within
from softform_core.surface.mesh import border_edges, border_loops, directed_edges, parts_of, with_seams_joined
from softform_core.surface.mesh_repair import repair
from softform_core.units import MM_PER_M

__all__ = ["TOLD", "Closed", "closed_parts", "place"]

TOLD = 3
"""Places of one kind that are told."""


class Closed(NamedTuple):
    """A closed surface, outwards.

    Attributes:
        name: For messages.
        points: (V, 3) m.
        faces: (F, 3).
    """

    name: str
    points: Array
    faces: NDArray[np.int64]

    @property
    def volume(self) -> float:
        """Of what it encloses, m^3."""
        a, b, c = (self.points - self.points[0])[self.faces].transpose(1, 0, 2)
        return float(np.einsum("fi,fi->", a, np.cross(b, c)) / 6.0)

    @property
    def bounds(self) -> Array:
        """Lowest and highest corner, (2, 3) m."""
        return np.stack([self.points.min(axis=0), self.points.max(axis=0)])

    def encloses(self, points: Array) -> NDArray[np.bool_]:
        """Which of points (P, 3) m lie within it, (P,)."""
        return lies_within(self.points[self.faces], points)

    def told(self) -> str:
        """Where it is and how large, for messages."""
        return f"{1e6 * self.volume:.3g} ml around {place(self.bounds.mean(axis=0))}"


def place(point: Array) -> str:
    """A place (3,) m, for messages."""
    return "({:.4g}, {:.4g}, {:.4g}) mm".format(*(np.round(MM_PER_M * np.asarray(point), 2) + 0.0))


def closed_parts(points: Array, faces: NDArray[np.int64], name: str) -> list[Closed]:
    """The closed surfaces of a mesh, the largest first.

    Args:
        points: (V, 3) m.
        faces: (F, 3).
        name: Of its file.

    Raises:
        SoftformError: If one is open, or more than two triangles meet in an edge.
    """
    joined = with_seams_joined(points, faces)
    joined = joined[(joined != np.roll(joined, 1, axis=1)).all(axis=1)]
    joined = joined[np.unique(np.sort(joined, axis=1), axis=0, return_index=True)[1]]  # some are exported twice
    if not len(joined):
        raise SoftformError(f"No triangle of {name} has an area.", "Export it again.")
    count, part = parts_of(joined)
    found = []
    for number in range(count):
        used, own = np.unique(joined[part == number], return_inverse=True)
        own = own.reshape(-1, 3)
        _check_edges(points[used], own, name)
        mesh = repair(points[used], own)
        _check_edges(mesh.vertices, mesh.faces, name)
        one = Closed(name, mesh.vertices, mesh.faces)
        found.append(one if one.volume > 0.0 else one._replace(faces=one.faces[:, ::-1]))
    return sorted(found, key=lambda one: -one.volume)


def _check_edges(points: Array, faces: NDArray[np.int64], name: str) -> None:
    edges = np.sort(directed_edges(faces).reshape(-1, 2), axis=1)
    edges, uses = np.unique(edges, axis=0, return_counts=True)
    if (uses > 2).any():
        worst = int(np.argmax(uses))
        raise SoftformError(
            f"{name}: {uses[worst]} triangles meet in one edge at {place(points[edges[worst]].mean(axis=0))}, and more "
            f"than two do in {np.sum(uses > 2)} edges.",
            "A wall without thickness, or two bodies that touch, cannot be meshed: join or separate them in the CAD.",
        )
    if not border_edges(faces).any():
        return
    holes = sorted(border_loops(faces), key=lambda loop: -float(np.ptp(points[loop], axis=0).max()))
    told = [
        f"{MM_PER_M * np.ptp(points[loop], axis=0).max():.3g} mm across around {place(points[loop].mean(axis=0))}"
        for loop in holes[:TOLD]
    ]
    more = f", and {len(holes) - TOLD} more" if len(holes) > TOLD else ""
    raise SoftformError(
        f"{name} is open: it has {len(holes)} hole{'s' if len(holes) != 1 else ''}, {'; '.join(told)}{more}.",
        "Close it in the CAD, or fill it in a mesh editor; an inlet of a chamber must be closed, too.",
    )
