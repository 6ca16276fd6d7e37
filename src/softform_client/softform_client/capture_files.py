"""Captures as files: a cloud, or the markers of motion capture."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.files import write_atomically
from softform_core.shapes.shape import Shape
from softform_core.shapes.write import write_pcd, write_ply
from softform_ros.conversions import points_from_cloud, positions_from_markers


def write_capture(path: Path, result: Any) -> int:
    """Write the cloud (.ply, .pcd) or the markers (.csv) of a result of `capture_shape`, m, in the robot's frame.

    Returns:
        How many points there are.

    Raises:
        SoftformError: If it cannot be written.
    """
    if path.suffix.lower() == ".csv":
        positions = positions_from_markers(result.markers)
        names = np.array(result.markers.name, dtype=object)
        write_table(path, ["name", "x", "y", "z"], np.column_stack([names, positions]))
        return len(names)
    cloud = Shape.from_cloud(points_from_cloud(result.cloud))
    (write_ply if path.suffix.lower() == ".ply" else write_pcd)(path, cloud)
    return len(cloud.points)


def write_table(path: Path, names: list[str], rows: Array) -> None:
    """Write rows (n, columns) as CSV over an existing file.

    Raises:
        SoftformError: If it cannot be written.
    """
    text = io.StringIO()
    np.savetxt(text, rows, fmt="%s", delimiter=",", header=",".join(names), comments="")
    write_atomically(path, text.getvalue().encode())
