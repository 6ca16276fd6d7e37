"""A table of actuations and mesh files of one topology as a simulation's store."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.checks import check_scale, in_si, read_actuations, unique_rows
from softform_core.importing.write import write_samples
from softform_core.robots import Robot
from softform_core.shapes.read import Unit, read_shape
from softform_core.shapes.target import TargetShape
from softform_core.simulation.store import SimulationStore
from softform_core.surface.mesh_repair import repair

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


def import_shapes(
    robot: Robot,
    path: Path,
    actuation: Sequence[str],
    meshes: str,
    unit: str,
    actuation_unit: str,
    output: Path,
    *,
    progress: bool = True,
) -> SimulationStore:
    """Bring meshes into a store that `softform train fk` takes.

    The mesh whose actuation is nearest to rest gives the triangles of all. It is repaired (`surface.mesh_repair`);
    the others must have the same triangles, turned either way. Columns of the table (`importing.table.read_table`) are
    the degrees of freedom of a robot with a surface, in their order, and mesh files (`read_mesh`).

    Raises:
        SoftformError: If table or meshes cannot be this robot's, or the store cannot be written.
    """
    table, actuations = read_actuations(path, robot, actuation, actuation_unit)
    files = table.files(meshes)
    # A mesh that comes twice under one actuation is one; two meshes under one actuation are a contradiction.
    _, number = np.unique([str(file.resolve()) for file in files], return_inverse=True)
    kept = unique_rows(robot, table, actuations, number.reshape(-1, 1).astype(np.float64))
    actuations, files = actuations[kept], [files[row] for row in kept]

    reach = robot.actuation_max - robot.actuation_min
    at_rest = files[int(np.linalg.norm((actuations - robot.rest_actuation) / reach, axis=1).argmin())]
    corners, faces = read_mesh(at_rest, unit)
    check_scale(robot, table, corners)
    repaired = repair(corners, faces)
    flattened = robot.parametrised(repaired.vertices, repaired.faces)  # what cannot be is said before all is read

    def read(samples: NDArray[np.int64]) -> dict[str, Array]:
        vertices = []
        for sample in samples:
            points, triangles = read_mesh(files[sample], unit)
            if len(points) != len(corners) or not _same(triangles, faces):
                raise SoftformError(
                    f"{files[sample]} has other triangles ({len(points)} vertices, {len(triangles)} triangles) than "
                    f"{at_rest} ({len(corners)}, {len(faces)}).",
                    "Export all shapes of one mesh, without remeshing or reordering.",
                )
            check_scale(robot, table, points)
            vertices.append(points[repaired.kept])
        return {"vertices": np.array(vertices)}

    settings: dict[str, object] = {
        "source": path.name,
        "source_sha256": table.sha256,
        "columns": [*actuation, meshes],
        "unit": unit,
        "actuation_unit": actuation_unit,
        "rest": at_rest.name,
        "repairs": [*repaired.repairs, *(done for mesh in flattened.meshes for done in mesh.repairs)],
        "left_out": len(table.columns[meshes]) - len(kept),
    }
    constants: dict[str, NDArray] = {"rest_vertices": repaired.vertices, "faces": repaired.faces.astype(np.int32)}
    shapes = {"vertices": repaired.vertices.shape}
    return write_samples(robot, actuations, shapes, constants, read, settings, output, block=1, progress=progress)


def _same(faces: NDArray[np.int64], others: NDArray[np.int64]) -> bool:
    """Whether two meshes have the same triangles, in any order and winding."""
    first, second = (np.sort(each, axis=1) for each in (faces, others))
    return first.shape == second.shape and bool((first[np.lexsort(first.T)] == second[np.lexsort(second.T)]).all())
