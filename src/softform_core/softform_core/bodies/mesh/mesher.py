"""What of bodies from files needs gmsh: solids of CAD, its own mesh files, and tetrahedra between closed surfaces."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.bodies.gmsh_process import started_gmsh
from softform_core.bodies.mesh.walls import least_size
from softform_core.errors import SoftformError
from softform_core.surface.closed import Closed

_TRIANGLE, _TETRAHEDRON, _QUADRATIC_TETRAHEDRON = 2, 4, 11
"""gmsh's numbers of elements."""
_EDGES_AS_OURS = [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]
_SHARP = np.radians(40.0)
"""Turn between two triangles at which a surface has an edge."""
_AROUND = 24
"""Triangles of a solid of CAD around a full turn."""
_SHORTEST = 0.1
"""Their shortest edges over the longest: a solid may be bent without bound, as at the tip of a cone."""


def read_cad(path: Path, mesh_size: float | None) -> tuple[Array, NDArray[np.int64]]:
    """Points (V, 3) m and triangles (F, 3) of the solids of a STEP file, finer than `mesh_size`, m, where that may be.

    Raises:
        SoftformError: If it holds no solid, or gmsh is not installed.
    """
    with started_gmsh() as gmsh:
        gmsh.option.setString("Geometry.OCCTargetUnit", "M")
        with _reading(path):
            gmsh.model.occ.importShapes(str(path))
        gmsh.model.occ.synchronize()
        if not gmsh.model.getEntities(3):
            raise SoftformError(f"{path} holds no solid.", "Export a solid body, not surfaces or curves.")
        extent = np.ptp(np.reshape(gmsh.model.getBoundingBox(-1, -1), (2, 3)), axis=0)
        size = float(extent.max())
        # No finer than any mesh of the body may be: a file in a wrong unit is read, and then told to be too large.
        longest = np.clip(0.5 * (mesh_size or size), 0.5 * least_size(extent), 0.1 * size)
        gmsh.option.setNumber("Mesh.MeshSizeMax", longest)
        gmsh.option.setNumber("Mesh.MeshSizeMin", _SHORTEST * longest)
        gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", _AROUND)
        gmsh.model.mesh.generate(2)
        points, number = _nodes(gmsh)
        # Files of CAD have surfaces that bound no solid, too, such as sketches.
        walls = gmsh.model.getBoundary(gmsh.model.getEntities(3), combined=False, oriented=False)
        found = [gmsh.model.mesh.getElementsByType(_TRIANGLE, tag)[1] for _, tag in walls]
        return points, number[np.concatenate(found)].reshape(-1, 3)


def read_msh(path: Path) -> tuple[Array, NDArray[np.int64], NDArray[np.int64] | None]:
    """Points (V, 3) of a file of gmsh's, its triangles (F, 3), and its tetrahedra (E, 4 or 10), None without them.

    Raises:
        SoftformError: If it has other cells, or neither, or gmsh is not installed.
    """
    with started_gmsh() as gmsh:
        with _reading(path):
            gmsh.open(str(path))
        points, number = _nodes(gmsh)
        kinds = gmsh.model.mesh.getElementTypes(3).tolist()
        if len(kinds) > 1 or set(kinds) - {_TETRAHEDRON, _QUADRATIC_TETRAHEDRON}:
            told = ", ".join(gmsh.model.mesh.getElementProperties(kind)[0] for kind in kinds)
            raise SoftformError(
                f"{path} has cells of several kinds, or no tetrahedra: {told}.", "Mesh it by tetrahedra."
            )
        if kinds:
            width = 4 if kinds == [_TETRAHEDRON] else 10
            elements = number[gmsh.model.mesh.getElementsByType(kinds[0])[1]].reshape(-1, width)
            return points, np.zeros((0, 3), np.int64), elements if width == 4 else elements[:, _EDGES_AS_OURS]
        faces = number[gmsh.model.mesh.getElementsByType(_TRIANGLE)[1]].reshape(-1, 3)
        if not len(faces):
            raise SoftformError(f"{path} has no straight triangles and no tetrahedra.", "Mesh it by tetrahedra.")
        return points, faces, None


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # gmsh raises nothing more exact
        raise SoftformError(f"{path} cannot be read by gmsh: {error}.", "Export it again.") from error


def _nodes(gmsh: Any) -> tuple[Array, NDArray[np.int64]]:
    """Places (V, 3) of all nodes, and the row of each of gmsh's tags."""
    tags, coordinates, _ = gmsh.model.mesh.getNodes()
    if not len(tags):
        raise SoftformError("The file holds no mesh.", "Export a mesh, not its geometry alone.")
    number = np.full(int(tags.max()) + 1, -1)
    number[tags.astype(np.int64)] = np.arange(len(tags))
    return coordinates.reshape(-1, 3), number


def mesh_between(parts: list[Closed], mesh_size: float) -> tuple[Array, NDArray[np.int64]]:
    """Straight tetrahedra between closed surfaces that are clear of each other.

    gmsh splits each surface where it is sharp, lays the pieces flat, and meshes them anew, so that triangles of any
    form will do. Some it cannot lay flat, such as a palm with three fingers: there the triangles are kept. Its curved
    elements are not asked for: mending those on such surfaces may take forever, or end the process; see `curved`.

    Args:
        parts: The outside, then what it encloses.
        mesh_size: Length of their edges, m.

    Returns:
        Nodes (V, 3) m and elements (E, 4).

    Raises:
        SoftformError: If there would be too many, gmsh fails, or is not installed.
    """
    if mesh_size < (least := least_size(np.ptp(parts[0].bounds, axis=0))):
        raise SoftformError(
            f"mesh_size {mesh_size:g} m is too small for {parts[0].name}: it would have too many cells.",
            f"Choose {1.01 * least:.2g} m at least.",
        )
    try:
        return _meshed_anew(parts, mesh_size, sharp=_SHARP)
    except SoftformError:
        return _meshed_anew(parts, mesh_size, sharp=None)


def _meshed_anew(parts: list[Closed], mesh_size: float, sharp: float | None) -> tuple[Array, NDArray[np.int64]]:
    """As `mesh_between`: with surfaces split where they turn by `sharp`, or with their triangles as they are."""
    with started_gmsh() as gmsh:
        tags = []
        for number, part in enumerate(parts):
            tags.append([gmsh.model.addDiscreteEntity(2)])
            first = 1 + sum(len(one.points) for one in parts[:number])
            nodes = np.arange(first, first + len(part.points))
            gmsh.model.mesh.addNodes(2, tags[-1][0], nodes, part.points.ravel())
            gmsh.model.mesh.addElementsByType(tags[-1][0], _TRIANGLE, [], (part.faces + first).ravel())
        if sharp is not None:
            gmsh.model.mesh.classifySurfaces(sharp, True, True, np.pi)
            gmsh.model.mesh.createGeometry()
            tags = _pieces(gmsh, parts)
        volume = gmsh.model.geo.addVolume([gmsh.model.geo.addSurfaceLoop(pieces) for pieces in tags])
        gmsh.model.geo.synchronize()
        gmsh.option.setNumber("Mesh.MeshSizeMax", mesh_size)
        gmsh.option.setNumber("Mesh.MeshSizeMin", 0.5 * mesh_size)
        gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", 6)
        gmsh.model.mesh.generate(3)
        points, row = _nodes(gmsh)
        return points, row[gmsh.model.mesh.getElementsByType(_TETRAHEDRON, volume)[1]].reshape(-1, 4)


def _pieces(gmsh: Any, parts: list[Closed]) -> list[list[int]]:
    """Surfaces of the model that each part was split into."""
    tree = cKDTree(np.concatenate([part.points for part in parts]))
    owner = np.repeat(np.arange(len(parts)), [len(part.points) for part in parts])
    pieces: list[list[int]] = [[] for _ in parts]
    for _, tag in gmsh.model.getEntities(2):
        node = gmsh.model.mesh.getElements(2, tag)[2][0][0]
        pieces[owner[tree.query(gmsh.model.mesh.getNode(node)[0])[1]]].append(tag)
    return pieces
