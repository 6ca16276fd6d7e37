"""A table of actuations and mesh files of one topology as a simulation's store."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.abaqus import read_inp
from softform_core.importing.checks import check_scale, far_off, in_si, read_actuations, unique_rows
from softform_core.importing.elements import ElementMesh
from softform_core.importing.vtk import read_vtk
from softform_core.importing.write import write_samples
from softform_core.robots import Robot
from softform_core.shapes.read import Unit, read_shape
from softform_core.shapes.shape import Shape
from softform_core.simulation.store import SimulationStore
from softform_core.stores.past import pasts
from softform_core.surface.mesh_repair import repair

_FINITE_ELEMENTS = (".vtk", ".vtu", ".vtp", ".pvtu", ".pvtp", ".inp")
_DISPLACEMENT = re.compile(r"(?:f_|nodal_?)?(?:u|disp\w*|deformations?|motion)", re.IGNORECASE)
"""Names under which programs export the displacement of the points."""
_SAME_PLACE = 1e-5
"""Distance over the robot's size: single precision, and a digit less."""
_SAME_SHAPE = 1e-6
"""Distance over the robot's size: shapes are never as like under different actuations."""
_COMPARED = 300
"""Vertices by which shapes are compared with those under actuations nearby."""
_LARGEST_RATIO = 2.0
"""Of the mesh's size to the described one: a body in another unit, or a part of one, is further off."""


def read_mesh(path: Path, unit: str, part: str | None = None) -> ElementMesh:
    """A mesh in m; of STL, whose vertices have no order of their own, three vertices a face.

    Args:
        path: An .obj, .ply or .stl, or a VTK file (.vtk, .vtu, .vtp) or Abaqus .inp with surface elements, which are
            split into triangles.
        unit: Unit of its coordinates, m or mm.
        part: Part or instance of an Abaqus file, if it has several.

    Raises:
        SoftformError: If the file cannot be read, has no triangles, or no such part.
    """
    kind = path.suffix.lower()
    if part is not None and kind != ".inp":
        raise SoftformError(f"{path} has no named parts.", "Leave out --part, which is for Abaqus files.")
    if kind not in _FINITE_ELEMENTS:
        shape = read_shape(path, cast(Unit, unit))
        if shape.faces is None:
            raise SoftformError(f"{path} has no triangles.", "Export a mesh, not a cloud.")
        if kind == ".stl":
            return ElementMesh(shape.points[shape.faces.ravel()], np.arange(shape.faces.size).reshape(-1, 3))
        return ElementMesh(shape.points, shape.faces)
    try:
        mesh = read_inp(path, part) if kind == ".inp" else read_vtk(path)
    except SoftformError:
        raise
    except Exception as error:  # damaged files fail in many ways
        raise SoftformError(f"{path} cannot be read ({type(error).__name__}: {error}).", "Export it again.") from error
    points = Shape.from_mesh(in_si(mesh.points, unit, "m"), mesh.faces).points
    return replace(mesh, points=points, fields={name: in_si(u, unit, "m") for name, u in mesh.fields.items()})


def import_shapes(
    robot: Robot,
    path: Path,
    actuation: Sequence[str],
    meshes: str,
    unit: str,
    actuation_unit: str,
    output: Path,
    *,
    part: str | None = None,
    displacement: str | None = None,
    in_order: bool = False,
    progress: bool = True,
) -> SimulationStore:
    """Bring meshes into a store that `./softform train fk` takes.

    The mesh whose actuation is nearest to rest gives the triangles of all. It is repaired (`surface.mesh_repair`);
    the others must have the same triangles, turned either way. Columns of the table (`importing.table.read_table`) are
    the degrees of freedom of a robot with a surface, in their order, and mesh files (`read_mesh`). `part` chooses one
    of several in Abaqus files; `displacement` names the field of VTK files by which points move, `none` says that the
    points of the files have moved already: found out if neither is given. `in_order` says that rows follow one another
    as they were executed: each is kept, with those before it, as another way to one actuation is another sample,
    and a body that sticks may keep one shape under several.

    Raises:
        SoftformError: If table or meshes cannot be this robot's, two actuations have one shape out of order, or the
            store cannot be written.
    """
    table, actuations = read_actuations(path, robot, actuation, actuation_unit)
    files = table.files(meshes)
    # A mesh that comes twice under one actuation is one; two meshes under one actuation are a contradiction.
    names = np.array([str(file.resolve()) for file in files])
    kept = np.arange(len(files)) if in_order else unique_rows(robot, table, actuations, names)
    past = pasts(actuations) if in_order else None
    actuations, files = actuations[kept], [files[row] for row in kept]

    reach = robot.actuation_max - robot.actuation_min
    rest = int(np.linalg.norm((actuations - robot.rest_actuation) / reach, axis=1).argmin())
    furthest = int(np.linalg.norm((actuations - actuations[rest]) / reach, axis=1).argmax())
    at_rest, resting = files[rest], read_mesh(files[rest], unit, part)
    field = _moving_field(at_rest, resting, files[furthest], read_mesh(files[furthest], unit, part), displacement)
    corners = _moved(at_rest, resting, resting, field)
    check_scale(robot, table, corners)
    repaired = repair(corners, resting.faces)
    ratio = float(np.ptp(repaired.vertices, axis=0).max()) / robot.body.size
    if not 1.0 / _LARGEST_RATIO < ratio < _LARGEST_RATIO:
        beside = f" ({'; '.join(resting.left_out)} left out)" if resting.left_out else ""
        raise SoftformError(
            f"The surface in {at_rest} is {ratio * robot.body.size:.3g} m large{beside}; '{robot.name}' is "
            f"{robot.body.size:.3g} m.",
            "Check --unit and what was exported, or correct the extents in the robot's description.",
        )
    flattened = robot.parametrised(repaired.vertices, repaired.faces)  # what cannot be is said before all is read
    seen: dict[bytes, int] = {}

    def shape(sample: int) -> Array:
        mesh = read_mesh(files[sample], unit, part)
        if len(mesh.points) != len(corners) or not _same(mesh.faces, resting.faces):
            raise SoftformError(
                f"{files[sample]} has other triangles ({len(mesh.points)} vertices, {len(mesh.faces)} triangles) than "
                f"{at_rest} ({len(corners)}, {len(resting.faces)}).",
                "Export all shapes of one mesh, without remeshing or reordering.",
            )
        points = _moved(files[sample], mesh, resting, field)[repaired.kept]
        if not np.isfinite(points).all():
            raise SoftformError(
                f"The field '{field}' of {files[sample]} is NaN or infinite at points of the mesh.", "Export it again."
            )
        check_scale(robot, table, points)
        place = np.round(points / (_SAME_SHAPE * robot.body.size)) + 0.0
        twin = seen.setdefault(place.tobytes(), sample)
        # A body that sticks may keep its shape on its way: in order, that is no contradiction.
        if not in_order and (actuations[twin] != actuations[sample]).any():
            raise SoftformError(
                f"{files[sample]} and {files[twin]} ({table.rows(kept[[twin, sample]])}) are one shape under different "
                "actuations.",
                "Export the deformed points of each, or their displacement as a field of VTK; or correct the table.",
            )
        return points

    def read(samples: NDArray[np.int64]) -> dict[str, Array]:
        if not seen:  # the import goes on: shapes are compared with those that an earlier run has read, too
            for sample in range(int(samples[0])):
                shape(sample)
        return {"vertices": np.array([shape(int(sample)) for sample in samples])}

    settings: dict[str, object] = {
        "source": path.name,
        "source_sha256": table.sha256,
        "columns": [*actuation, meshes],
        "unit": unit,
        "actuation_unit": actuation_unit,
        "part": part,
        "displacement": field,
        "rest": at_rest.name,
        "repairs": [*repaired.repairs, *(done for mesh in flattened.meshes for done in mesh.repairs)],
        "beside": list(resting.left_out),
        "in_order": in_order,
        "left_out": len(table.columns[meshes]) - len(kept),
    }
    constants: dict[str, NDArray] = {"rest_vertices": repaired.vertices, "faces": repaired.faces.astype(np.int32)}
    shapes = {"vertices": repaired.vertices.shape}
    store = write_samples(
        robot, actuations, shapes, constants, read, settings, output, block=1, past=past, progress=progress
    )
    made, vertices = store.converged()
    some = vertices[:, :: len(vertices[0]) // _COMPARED + 1].reshape(len(made), -1)
    if len(far := far_off(robot, made, some)):
        logging.getLogger(__name__).warning(
            "Shapes far from those under actuations nearby: %s of %s. They are kept; see whether their unit, frame or "
            "actuation is another.",
            table.rows(kept[far]),
            table.path,
        )
    return store


def _moving_field(rest_file: Path, rest: ElementMesh, file: Path, mesh: ElementMesh, given: str | None) -> str | None:
    """Name of the field by which points move from the mesh at rest to one far from it; None if they have moved.

    Raises:
        SoftformError: If they neither have moved nor there is such a field, or if both contradict each other.
    """
    if given == "none":
        return None
    fields = [name for name in mesh.fields if name in rest.fields]
    if given is not None:
        if given not in fields:
            raise SoftformError(
                f"{file} has no field of vectors '{given}' at its points.",
                f"Name one of: {', '.join(fields) or 'none'}." if fields else "Leave out --displacement.",
            )
        return given
    likely = [name for name in fields if _DISPLACEMENT.fullmatch(name)]
    if _are_one(rest.points, mesh.points):
        if len(likely) == 1:
            return likely[0]
        raise SoftformError(
            f"{file} and {rest_file} are one shape under different actuations"
            + (f"; their fields of vectors are {', '.join(fields)}." if fields else ", and no field moves the points."),
            "Name the displacement by --displacement." if fields else "Export deformed points, or VTK with a field.",
        )
    for name in likely:
        if not _are_one(rest.points - rest.fields[name], mesh.points - mesh.fields[name]):
            raise SoftformError(
                f"The points of {file} move otherwise than its field '{name}' says (a scaled deformation?).",
                "State --displacement none if the points are the true shapes; else export them unscaled.",
            )
    return None


def _moved(file: Path, mesh: ElementMesh, resting: ElementMesh, field: str | None) -> Array:
    """Points (V, 3) m of a mesh, moved by its field of displacements if they are."""
    if field is None:
        return mesh.points
    if field not in mesh.fields or not _are_one(mesh.points, resting.points):
        raise SoftformError(
            f"{file} has no field '{field}', or points that have moved already, unlike the mesh at rest.",
            "Export all shapes alike.",
        )
    return mesh.points + mesh.fields[field]


def _are_one(points: Array, others: Array) -> bool:
    """Whether points (V, 3) and others are at the same places."""
    size = float(np.ptp(points, axis=0).max())
    return points.shape == others.shape and float(np.abs(points - others).max()) <= _SAME_PLACE * size


def _same(faces: NDArray[np.int64], others: NDArray[np.int64]) -> bool:
    """Whether two meshes have the same triangles, in any order and winding."""
    first, second = (np.sort(each, axis=1) for each in (faces, others))
    return first.shape == second.shape and bool((first[np.lexsort(first.T)] == second[np.lexsort(second.T)]).all())
