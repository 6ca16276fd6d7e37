"""Writes shapes as PLY and PCD files that appear whole or not at all."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.shapes.read import Unit
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M


def write_ply(path: str | Path, shape: Shape, unit: Unit = "m", comments: Iterable[str] = ()) -> None:
    """Write a shape as binary PLY (float32) under a temporary name, then rename it.

    A reader that watches the folder never sees half a file; the temporary name does not end in .ply.

    Args:
        path: The file; an existing one is replaced.
        shape: Mesh or cloud in metres; normals are written if it has them.
        unit: Unit of the coordinates in the file, stated in a comment too.
        comments: More comment lines for the header, such as "captured_at 1718000000.25".

    Raises:
        SoftformError: If a comment has more than one line, or the file cannot be written.
    """
    lines = [f"unit {unit}", *comments]
    if any("\n" in line or "\r" in line or not line.isascii() for line in lines):
        raise SoftformError("A PLY comment must be one line of ASCII.", "Split the comment.")
    columns = ["x", "y", "z"] + (["nx", "ny", "nz"] if shape.normals is not None else [])
    table = np.empty((len(shape.points), len(columns)), dtype="<f4")
    table[:, :3] = shape.points * (MM_PER_M if unit == "mm" else 1.0)
    if shape.normals is not None:
        table[:, 3:] = shape.normals
    header = ["ply", "format binary_little_endian 1.0", *(f"comment {line}" for line in lines)]
    header += [f"element vertex {len(table)}", *(f"property float {name}" for name in columns)]
    body = [table.tobytes()]
    if shape.faces is not None:
        header += [f"element face {len(shape.faces)}", "property list uchar int vertex_indices"]
        faces = np.empty(len(shape.faces), dtype=[("count", "u1"), ("vertices", "<i4", 3)])
        faces["count"], faces["vertices"] = 3, shape.faces
        body.append(faces.tobytes())
    write_atomically(path, "\n".join([*header, "end_header", ""]).encode("ascii") + b"".join(body))


def write_pcd(path: str | Path, shape: Shape) -> None:
    """Write a shape's points as binary PCD 0.7 (float32, m), as `write_ply` does.

    Raises:
        SoftformError: If the file cannot be written.
    """
    count = len(shape.points)
    header = ["VERSION 0.7", "FIELDS x y z", "SIZE 4 4 4", "TYPE F F F", "COUNT 1 1 1", f"WIDTH {count}", "HEIGHT 1"]
    header += ["VIEWPOINT 0 0 0 1 0 0 0", f"POINTS {count}", "DATA binary", ""]
    write_atomically(path, "\n".join(header).encode("ascii") + shape.points.astype("<f4").tobytes())
