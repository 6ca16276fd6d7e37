"""Reads shapes from PLY, OBJ, STL, PCD and XYZ files, in a stated unit.

Open3D's readers of PLY, OBJ and STL are not used: a damaged PLY file ends the process by a signal, and an OBJ file is
rounded to single precision, or not read at all if it has no faces.
"""

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.shapes.pcd import read_pcd
from softform_core.shapes.ply_header import check_ascii_rows, read_ply_header
from softform_core.shapes.target import TargetShape
from softform_core.shapes.validate import check_count, check_points
from softform_core.shapes.xyz import read_xyz
from softform_core.units import MM_PER_M

Unit = Literal["m", "mm"]
UNITS: tuple[Unit, ...] = ("m", "mm")
EXTENSIONS = (".ply", ".obj", ".stl", ".pcd", ".xyz")

_CLOUD_READERS = {".pcd": read_pcd, ".xyz": read_xyz}

MAX_FILE_BYTES = 256 * 1024**2
"""Larger files are rejected unread: an ASCII file of 2 million points with normals is about as large."""

LARGEST_COORDINATE = 1e9
"""In the file's unit; a larger number is a damaged one."""

STL_HEADER_BYTES = 84
STL_TRIANGLE_BYTES = 50


def read_shape(path: str | Path, unit: Unit = "m") -> TargetShape:
    """Read a mesh or a cloud, in metres; an OBJ or PLY file without faces is a cloud.

    A cut-off OBJ file cannot be recognised, as the format has neither counts nor an end mark; PLY and STL are checked.
    A PLY comment `unit mm`, as `write_ply` makes it, must agree with `unit`. Vertices that coincide are
    merged in STL, which knows no shared vertices.

    Args:
        path: A .ply (ascii or binary), .obj, .stl, .pcd or .xyz file (`shapes.xyz`).
        unit: Unit of the file's coordinates.

    Raises:
        SoftformError: If the file is missing, too large, of another type, damaged or truncated, or if its points are
            unusable (`shapes.validate.check_points`).
    """
    path = Path(path)
    if unit not in UNITS:
        raise SoftformError(f"The unit '{unit}' is not known.", f"State one of: {', '.join(UNITS)}.")
    _check_file(path)
    try:
        if path.suffix.lower() == ".ply":
            _check_ply(path, unit)
        elif path.suffix.lower() == ".stl":
            _check_stl(path)
        read = _CLOUD_READERS.get(path.suffix.lower())
        vertices, faces = _load(path) if read is None else (read(path), np.empty((0, 3), np.intp))
    except SoftformError:
        raise
    except OSError as error:
        raise SoftformError(f"{path} cannot be read: {error.strerror or error}.", "Check its permissions.") from error
    except MemoryError as error:
        raise SoftformError(f"{path} does not fit into memory.", "Reduce the shape first.") from error
    except Exception as error:  # trimesh raises whatever its parsers stumble on
        raise SoftformError(
            f"{path} is damaged or truncated ({type(error).__name__}: {error}).", "Export it again."
        ) from error
    if len(vertices) == 0:
        raise SoftformError(f"{path} holds no shape.", "It is empty, damaged or truncated: export it again.")
    try:
        points = check_points(vertices, "file")
        largest = float(np.abs(points).max())
        if largest > LARGEST_COORDINATE:
            raise SoftformError(f"A coordinate is {largest:.3g}.", "The file is damaged: export it again.")
        points = points / (MM_PER_M if unit == "mm" else 1.0)
        return TargetShape.from_mesh(points, faces) if len(faces) else TargetShape.from_cloud(points)
    except SoftformError as error:
        raise SoftformError(f"{path} cannot be used: {error.message}", error.next_step) from error


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise SoftformError(f"{path} is a folder.", f"Give a file of type {', '.join(EXTENSIONS)}.")
    if not path.exists():
        raise SoftformError(f"{path} does not exist.", "Check the path.")
    if path.suffix.lower() not in EXTENSIONS:
        raise SoftformError(
            f"{path} is not of a type that is read ('{path.suffix or 'no extension'}').",
            f"Export it as one of: {', '.join(EXTENSIONS)}.",
        )
    if not path.is_file():
        raise SoftformError(f"{path} is not a regular file.", f"Give a file of type {', '.join(EXTENSIONS)}.")
    size = path.stat().st_size
    if size == 0:
        raise SoftformError(f"{path} is empty.", "Export it again.")
    if size > MAX_FILE_BYTES:
        raise SoftformError(
            f"{path} has {size / 1024**2:.0f} MB; at most {MAX_FILE_BYTES // 1024**2} MB are read.",
            "Reduce the shape; a few thousand points describe any shape that the robot can take.",
        )


def _check_ply(path: Path, unit: Unit) -> None:
    header = read_ply_header(path)
    stated = header.comment("unit")
    if stated in UNITS and stated != unit:
        raise SoftformError(
            f"{path} says that it is in {stated}, but was to be read in {unit}.", f"State the unit {stated}."
        )
    check_count(header.counts.get("vertex", 0), f"file {path}")
    body = path.stat().st_size - header.body_offset
    if body < max(header.smallest_body, 1):
        raise SoftformError(
            f"The body of {path} has {body} bytes; its header promises at least {header.smallest_body}.",
            "The file is truncated: export it again.",
        )
    if header.encoding == "ascii":
        check_ascii_rows(path, header)


def _check_stl(path: Path) -> None:
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(STL_HEADER_BYTES)
    triangles = int.from_bytes(start[80:84], "little")
    if size == STL_HEADER_BYTES + STL_TRIANGLE_BYTES * triangles:
        return
    if not start.lstrip().startswith(b"solid"):
        raise SoftformError(
            f"{path} promises {triangles} triangles but has {size} bytes.",
            "The file is truncated or not STL: export it again.",
        )
    with open(path, "rb") as file:
        file.seek(max(0, size - 512))
        if b"endsolid" not in file.read():
            raise SoftformError(f"{path} has no end mark.", "The file is truncated: export it again.")


def _load(path: Path) -> tuple[Array, NDArray[np.integer]]:
    """Vertices (V, 3), in the file's unit, and faces (F, 3), none of a cloud."""
    import trimesh  # here, as it takes 0.3 s, and most that handle shapes read no file

    kind = path.suffix.lower().lstrip(".")
    # Without processing, which would drop NaN vertices unseen; without materials, which would open other files.
    loaded = trimesh.load(path, file_type=kind, process=False, skip_materials=True)
    if isinstance(loaded, trimesh.Scene):
        parts = [part for part in loaded.dump() if isinstance(part, trimesh.Trimesh)]
        loaded = trimesh.util.concatenate(parts) if parts else trimesh.Trimesh()
    if isinstance(loaded, trimesh.PointCloud):
        return np.asarray(loaded.vertices, dtype=np.float64), np.empty((0, 3), np.intp)
    if not isinstance(loaded, trimesh.Trimesh):
        return np.empty((0, 3)), np.empty((0, 3), np.intp)
    if kind == "stl" and np.isfinite(loaded.vertices).all():
        loaded.merge_vertices()
    return np.asarray(loaded.vertices, dtype=np.float64), np.asarray(loaded.faces)
