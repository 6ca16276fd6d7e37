"""A table of actuations and tips as a simulation's store."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.checks import check_columns, check_scale, in_si, read_actuations, unique_rows
from softform_core.importing.write import write_samples
from softform_core.robots import Robot
from softform_core.simulation.store import SimulationStore

_BLOCK = 4096


def import_tips(
    robot: Robot,
    path: Path,
    actuation: Sequence[str],
    tip: Sequence[str],
    unit: str,
    actuation_unit: str,
    output: Path,
    *,
    progress: bool = True,
) -> SimulationStore:
    """Bring a table of tips into a store that `softform train fk` takes.

    Columns of the table (`importing.table.read_table`) are the degrees of freedom of a robot with a tip, in their
    order, and the tip's coordinates in the robot's frame.

    Raises:
        SoftformError: If the table cannot be this robot's, or the store cannot be written.
    """
    check_columns(robot, "--tip", tip, ["x", "y", "z"][: robot.tip_dimensions])
    table, actuations = read_actuations(path, robot, actuation, actuation_unit)
    tips = in_si(table.numbers(tip), unit, "m")
    absent = np.flatnonzero(~np.isfinite(tips).all(axis=1))
    if len(absent):
        raise SoftformError(f"{path} has no tip in {table.rows(absent)}.", "Complete or delete these rows.")
    check_scale(robot, table, tips)
    kept = unique_rows(robot, table, actuations, tips)
    actuations, tips = actuations[kept], tips[kept]

    def read(samples: NDArray[np.int64]) -> dict[str, Array]:
        return {"tip": tips[samples]}

    settings: dict[str, object] = {
        "source": path.name,
        "source_sha256": table.sha256,
        "columns": [*actuation, *tip],
        "unit": unit,
        "actuation_unit": actuation_unit,
        "left_out": len(table.columns[tip[0]]) - len(kept),
    }
    shapes = {"tip": (robot.tip_dimensions,)}
    return write_samples(robot, actuations, shapes, {}, read, settings, output, block=_BLOCK, progress=progress)
