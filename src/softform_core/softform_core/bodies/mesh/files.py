"""What the files of a body hold: a closed surface and its cavities, or tetrahedra with the walls of theirs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.elements import IN_FOUR
from softform_core.bodies.freeform.block import free_sides
from softform_core.bodies.mesh.source import SURFACES, Cavity, Source, states_unit
from softform_core.bodies.mesh.tetrahedra import checked_tetrahedra
from softform_core.errors import SoftformError
from softform_core.importing.vtk import read_tetrahedra, read_vtk
from softform_core.shapes.read import read_shape
from softform_core.surface.closed import Closed, closed_parts, place
from softform_core.surface.mesh import parts_of
from softform_core.units import MM_PER_M, PER_METRE, AnyUnit

SMALLEST, LARGEST = 1e-3, 10.0
"""Sizes of a robot, m: another one is a mistake of unit."""
_ASKED = 200
"""Points of a surface, about, that are asked whether they lie within another."""
_SMALLEST_CAVITY = 0.01
"""Size of a cavity over that of the body, at least: a smaller one is a mistake of unit."""
_ALIKE = 1e-3
"""Of the size and the volume: two closed surfaces that differ by less are one, exported twice."""

_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, eq=False)
class Tetrahedra:
    """A mesh that is taken as it is.

    Attributes:
        nodes: (V, 3) m.
        elements: (E, 10).
        walls: Triangles (T, 6) of each cavity, then of each void, outwards from the material.
    """

    nodes: Array
    elements: NDArray[np.int64]
    walls: list[NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class BodyFile:
    """What the files hold, m, where the description puts it.

    Attributes:
        outside: The outer surface.
        cavities: Surface of each cavity, outwards from it, in the order of the description.
        voids: Closed surfaces within the body that no cavity names: they stay empty.
        tetrahedra: The mesh, if the file holds one.
    """

    outside: Closed
    cavities: list[Closed]
    voids: list[Closed]
    tetrahedra: Tetrahedra | None = None

    @property
    def bounds(self) -> Array:
        """Lowest and highest corner, (2, 3) m."""
        return self.outside.bounds

    @property
    def cavity_bounds(self) -> list[Array]:
        """Of each cavity."""
        return [one.bounds for one in self.cavities]


def in_either_unit(path: Path) -> str:
    """A sentence on a file whose unit is not given: how large it is in each."""
    try:
        points = _content(path, "m", None)[0]
    except SoftformError as error:
        return f"give the unit of {path.name} ({', '.join(PER_METRE)}); {error}"
    x, y, z = np.ptp(points, axis=0)
    return (
        f"{path.name} does not say its unit ({', '.join(PER_METRE)}). mm makes it {x:.4g} x {y:.4g} x {z:.4g} mm, "
        f"m makes it {x:.4g} x {y:.4g} x {z:.4g} m"
    )


def bounds_of(path: Path, unit: AnyUnit | None) -> Array:
    """Lowest and highest corner (2, 3) m of what a file holds; STEP states its own unit.

    Raises:
        SoftformError: If it cannot be read, or is of an impossible size.
    """
    of_others = None if states_unit(path.name) else unit
    points = _content(path, of_others, None)[0]
    _check_size(points, path.name, of_others)
    return np.stack([points.min(axis=0), points.max(axis=0)])


def read_body(body: Source) -> BodyFile:
    """What the files of a body hold.

    Raises:
        SoftformError: If one cannot be read, is of an impossible size, open, or in pieces, or if a cavity is not there.
    """
    path = body.path_of(body.file)
    points, faces, elements = _content(path, body.unit, body.mesh_size)
    _check_size(points, path.name, body.unit)
    points = _placed(body, points)
    if elements is not None:
        return _read_volume(body, path.name, points, elements)
    if body.mesh_size is None:
        raise SoftformError(f"{path.name} holds a surface.", "Give mesh_size, the length of the tetrahedra's edges, m.")
    outside, *inner = closed_parts(points, faces, path.name)
    _check_nested(outside, inner)
    cavities = [_cavity(body, cavity, f"c{number}", outside, inner) for number, cavity in enumerate(body.cavities, 1)]
    _check_once(cavities)
    voids = [one for one in inner if all(one is not cavity for cavity in cavities)]
    return BodyFile(outside, cavities, voids)


Content = tuple[Array, NDArray[np.int64], NDArray[np.int64] | None]
"""Points (V, 3), triangles (F, 3) over them, and the tetrahedra (E, 4 or 10) of a file that has some."""


def _content(path: Path, unit: AnyUnit | None, mesh_size: float | None) -> Content:
    """What a file holds, m."""
    kind = path.suffix.lower()
    if kind in SURFACES and not states_unit(path.name):
        shape = read_shape(path, unit or "m")
        if shape.faces is None:
            raise SoftformError(f"{path} has no triangles.", "Export a closed mesh, not a cloud of points.")
        return shape.points, shape.faces, None
    try:
        points, faces, elements = _of_elements(path, mesh_size)
    except SoftformError:
        raise
    except Exception as error:  # damaged files fail in many ways
        raise SoftformError(f"{path} cannot be read ({type(error).__name__}: {error}).", "Export it again.") from error
    if not np.isfinite(points).all():
        raise SoftformError(f"{path} has points that are no numbers.", "Export it again.")
    return points / PER_METRE[unit or "m"], faces, elements


def _of_elements(path: Path, mesh_size: float | None) -> Content:
    if path.suffix.lower() in (".vtk", ".vtu"):
        if (found := read_tetrahedra(path)) is not None:
            return found[0], np.zeros((0, 3), dtype=np.int64), found[1]
        mesh = read_vtk(path)
        return mesh.points, mesh.faces, None
    from softform_core.bodies.mesh.mesher import read_cad, read_msh  # needs gmsh

    return (*read_cad(path, mesh_size), None) if states_unit(path.name) else read_msh(path)


def _check_size(points: Array, name: str, unit: AnyUnit | None) -> None:
    size = float(np.ptp(points, axis=0).max())
    if SMALLEST <= size <= LARGEST:
        return
    given = size * PER_METRE[unit or "m"]
    fit = [f"{one} ({given / per:.4g} m)" for one, per in PER_METRE.items() if SMALLEST <= given / per <= LARGEST]
    raise SoftformError(
        f"{name} is {size:.4g} m large {'by its own unit' if unit is None else f'in {unit}'}, bodies {SMALLEST:g} … "
        f"{LARGEST:g} m.",
        f"Correct the unit: {' or '.join(fit)} would do." if unit and fit else "Scale it in the CAD.",
    )


def _placed(body: Source, points: Array) -> Array:
    """Points (V, 3) m of the file in the robot's frame: `up` along z, turned about no more axes than that takes."""
    axis, sign = _AXES[body.up[-1]], -1.0 if body.up.startswith("-") else 1.0
    moved = points - body.origin
    return np.stack([moved[:, (axis + 1) % 3], sign * moved[:, (axis + 2) % 3], sign * moved[:, axis]], axis=1)


def _check_nested(outside: Closed, inner: list[Closed]) -> None:
    """See that what a file holds besides the outside lies within it, and nothing within that."""
    for one in inner:
        some = one.points[:: 1 + len(one.points) // _ASKED]  # `check_apart` finds what crosses elsewhere
        within = outside.encloses(some)
        if within.any() and not within.all():
            raise SoftformError(
                f"{outside.name} crosses itself: a closed surface of {one.told()} reaches out of the largest one at "
                f"{place(some[~within][0])}.",
                "A cavity must lie in the body with a wall around it; bodies are joined in the CAD to one (union).",
            )
        if not within.any():
            raise SoftformError(
                f"{outside.name} holds several bodies: besides the largest, {outside.told()}, one of {one.told()}.",
                "Join them in the CAD to one (union), or export one alone.",
            )
    for one in inner:
        if around := next((other for other in inner if other is not one and other.encloses(one.points[:1])[0]), None):
            raise SoftformError(
                f"{outside.name} has a closed surface within a cavity: {one.told()}, within {around.told()}.",
                "Leave out what lies loose in a cavity.",
            )


def _cavity(body: Source, cavity: Cavity, name: str, outside: Closed, inner: list[Closed]) -> Closed:
    """The surface of a cavity, one of the `inner` ones or of its own file."""
    if cavity.file is None:
        return _around(cavity, name, inner, body.file)
    path, unit = body.path_of(cavity.file), cavity.unit or (None if states_unit(cavity.file) else body.unit)
    points, faces, elements = _content(path, unit, body.mesh_size)
    if elements is not None:
        raise SoftformError(f"{path.name} of cavity {name} is a mesh of tetrahedra.", "Give its surface.")
    parts = closed_parts(_placed(body, points), faces, f"{path.name} of cavity {name}")
    if cavity.at is not None:
        found = _around(cavity, name, parts, path.name)
    elif len(parts) == 1:
        found = parts[0]
    else:
        told = "; ".join(one.told() for one in parts[:6])
        raise SoftformError(
            f"{path.name} of cavity {name} holds {len(parts)} closed surfaces: {told}.",
            "Say which by a place within it (at).",
        )
    _check_share(found, outside, unit)
    # Who exports a body with its chambers, and each of them again, means the same one.
    return next((one for one in inner if _are_one(one, found)), found)


def _check_share(cavity: Closed, outside: Closed, unit: AnyUnit | None) -> None:
    size, of_body = (float(np.ptp(one.bounds, axis=0).max()) for one in (cavity, outside))
    if not _SMALLEST_CAVITY * of_body <= size <= of_body:
        stated = "by its own unit" if unit is None else f"in {unit}"
        raise SoftformError(
            f"{cavity.name} is {MM_PER_M * size:.4g} mm large {stated}, the body {MM_PER_M * of_body:.4g} mm.",
            "Correct the unit of the cavity, or export both in the same one.",
        )


def _are_one(one: Closed, other: Closed) -> bool:
    """Whether two surfaces enclose the same."""
    slack = _ALIKE * float(np.ptp(one.bounds, axis=0).max())
    return bool(np.abs(one.bounds - other.bounds).max() < slack) and abs(one.volume / other.volume - 1.0) < _ALIKE


def _around(cavity: Cavity, name: str, parts: list[Closed], file: str) -> Closed:
    """That of the parts which a place lies in."""
    inside = [one for one in parts if one.encloses(np.array([cavity.at]))[0]]
    if inside:
        return min(inside, key=lambda one: one.volume)
    told = "; ".join(one.told() for one in parts[:6]) or "none"
    raise SoftformError(
        f"Cavity {name}: no closed surface within {Path(file).name} is around {place(np.array(cavity.at))}; there are: "
        f"{told}.",
        "Give a place within one of them (at, in m), or a file of its own.",
    )


def _check_once(cavities: list[Closed]) -> None:
    for number, one in enumerate(cavities):
        if any(one is other for other in cavities[:number]):
            raise SoftformError(
                f"Cavity c{number + 1} is one that was named before: {one.told()}.", "Name each of them once."
            )


def _read_volume(body: Source, name: str, points: Array, elements: NDArray[np.int64]) -> BodyFile:
    if body.mesh_size is not None:
        raise SoftformError(f"{name} holds tetrahedra, which are taken as they are.", "Leave out mesh_size.")
    if any(cavity.file is not None for cavity in body.cavities):
        raise SoftformError(
            f"{name} holds tetrahedra, which are taken as they are: their cavities lie within the file.",
            "Name each by a place within it (at).",
        )
    nodes, elements = checked_tetrahedra(points, elements, name)
    sides, _ = free_sides(elements, [], len(nodes))
    _, part = parts_of(sides[:, :3])
    walls, surfaces = [], []
    for number in range(int(part.max()) + 1):
        own = sides[part == number]
        used, faces = np.unique(own[:, IN_FOUR].reshape(-1, 3), return_inverse=True)
        walls.append(own)
        surfaces.append(Closed(name, nodes[used], faces.reshape(-1, 3)))
    largest = int(np.argmax([one.volume for one in surfaces]))
    outside = surfaces[largest]
    # Walls of a cavity look outwards from the material, into the cavity.
    inner = {index: one._replace(faces=one.faces[:, ::-1]) for index, one in enumerate(surfaces) if index != largest}
    cavities = [
        _around(cavity, f"c{number}", list(inner.values()), name) for number, cavity in enumerate(body.cavities, 1)
    ]
    _check_once(cavities)
    index_of = {id(one): index for index, one in inner.items()}
    voids = [one for one in inner.values() if all(one is not cavity for cavity in cavities)]
    mesh = Tetrahedra(nodes, elements, [walls[index_of[id(one)]] for one in (*cavities, *voids)])
    return BodyFile(outside, cavities, voids, mesh)
