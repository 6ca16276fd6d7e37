"""Triangle meshes of many formats."""

from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.units import in_si
from softform_core.shapes.read import Unit, read_shape
from softform_core.shapes.target import TargetShape

_BY_MESHIO = (".vtk", ".vtu", ".inp")
_IGNORED = ("vertex", "line")


def read_mesh(path: Path, unit: str) -> tuple[Array, NDArray[np.int64]]:
    """Vertices (V, 3) m and faces (F, 3); of STL, whose vertices have no order of their own, three vertices a face.

    Args:
        path: An .obj, .ply or .stl, or a .vtk, .vtu or Abaqus .inp with triangles and quadrilaterals, which are split.
        unit: Unit of its coordinates, m or mm.

    Raises:
        SoftformError: If the file cannot be read or has no triangles.
    """
    if path.suffix.lower() in _BY_MESHIO:
        return _by_meshio(path, unit)
    shape = read_shape(path, cast(Unit, unit))
    if shape.faces is None:
        raise SoftformError(f"{path} has no triangles.", "Export a mesh, not a cloud.")
    if path.suffix.lower() == ".stl":
        return shape.points[shape.faces.ravel()], np.arange(shape.faces.size).reshape(-1, 3)
    return shape.points, shape.faces


def _by_meshio(path: Path, unit: str) -> tuple[Array, NDArray[np.int64]]:
    import meshio

    try:
        mesh = meshio.read(path)
    except (Exception, SystemExit) as error:  # its parsers raise whatever they stumble on, or exit
        raise SoftformError(f"{path} cannot be read ({type(error).__name__}: {error}).", "Export it again.") from error
    faces = []
    for block in mesh.cells:
        if block.type == "triangle":
            faces.append(block.data)
        elif block.type == "quad":
            faces += [block.data[:, [0, 1, 2]], block.data[:, [0, 2, 3]]]
        elif block.type not in _IGNORED:
            raise SoftformError(
                f"{path} has elements '{block.type}': a surface is of triangles and quadrilaterals.",
                "Export the outer surface alone, with linear elements.",
            )
    if not faces:
        raise SoftformError(f"{path} has no triangles.", "Export the outer surface as a mesh.")
    shape = TargetShape.from_mesh(in_si(np.asarray(mesh.points, dtype=np.float64), unit, "m"), np.concatenate(faces))
    return shape.points, np.concatenate(faces).astype(np.int64)
