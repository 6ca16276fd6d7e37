"""Checks of imported samples: what a simulator of the robot cannot have said is named before it is learned."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.table import Table, read_table
from softform_core.robots import Robot
from softform_core.units import MM_PER_M, PA_PER_KPA

_IN_SI = {
    "Pa": ("Pa", 1.0),
    "kPa": ("Pa", PA_PER_KPA),
    "m": ("m", 1.0),
    "mm": ("m", 1.0 / MM_PER_M),
    "s": ("s", 1.0),
    "rad": ("rad", 1.0),
}
_RANGE_SLACK = 1e-6
_LARGEST = 20.0
"""Places further from the origin than so many sizes of the robot are in another unit."""
_SMALLEST = 0.02
"""Places that all lie within this part of the robot's size are in another unit."""
_NEARBY = 3
_FEWEST_TO_COMPARE = 20
_STRAY = 8.0
"""Times the usual distance from the outputs under actuations nearby: one that is further off is told."""
_LEAST_RANGE = 0.005
"""Actuations that use less of the range than this are in another unit."""


def in_si(values: Array, unit: str, wanted: str) -> Array:
    """Values in Pa, kPa, m or mm, in the SI unit that is wanted.

    Raises:
        SoftformError: If the unit is of another quantity.
    """
    base, factor = _IN_SI[unit]
    if base != wanted:
        raise SoftformError(f"The values are stated in {unit}, the robot takes {wanted}.", "Correct the unit.")
    return values * factor


def numbers_in_si(table: Table, columns: Sequence[str], unit: str, wanted: str) -> Array:
    """Columns of a table (n, k), stated in Pa, kPa, m or mm, in the SI unit that is wanted.

    Raises:
        SoftformError: If the unit is of another quantity, or the table's header tells another; as `Table.numbers`.
    """
    for name in columns:
        if table.unit(name).casefold() not in ("", unit.casefold()):
            raise SoftformError(
                f"Column '{name}' of {table.path} is in {table.unit(name)} by its header, not in {unit}.",
                "State what the header says, or convert the column.",
            )
    if wanted == "m" and table.length_unit not in ("", unit):
        raise SoftformError(
            f"{table.path} says above its columns that lengths are in {table.length_unit}, not in {unit}.",
            "State what it says, or export it in m or mm.",
        )
    return in_si(table.numbers(columns), unit, wanted)


def check_columns(robot: Robot, option: str, names: Sequence[str], wanted: Sequence[str]) -> None:
    """See that an option names one column for each that is wanted.

    Raises:
        SoftformError: If not.
    """
    if len(names) != len(wanted):
        raise SoftformError(
            f"{option} names {len(names)} columns, '{robot.name}' has {len(wanted)}: {', '.join(wanted)}.",
            "Name one column for each, in this order, parted by commas.",
        )


def read_actuations(path: Path, robot: Robot, columns: Sequence[str], unit: str) -> tuple[Table, Array]:
    """Read a table (`read_table`), and its actuations (n, m) in the robot's unit.

    Raises:
        SoftformError: If the table or its columns cannot be read; on NaN, a value outside the robot's range, a column
            that never changes, or a wrong unit.
    """
    check_columns(robot, "--actuation", columns, robot.actuation_names)
    table = read_table(path)
    actuations = numbers_in_si(table, columns, unit, robot.unit)
    low, high, names = robot.actuation_min, robot.actuation_max, robot.actuation_names
    absent = np.flatnonzero(~np.isfinite(actuations).all(axis=1))
    if len(absent):
        raise SoftformError(f"{table.path} has no actuation in {table.rows(absent)}.", "Complete or delete these rows.")
    for place, name in enumerate(names):
        column, reach = actuations[:, place], high[place] - low[place]
        slack = _RANGE_SLACK * reach
        outside = np.flatnonzero((column < low[place] - slack) | (column > high[place] + slack))
        if len(outside):
            raise SoftformError(
                f"{name} is {column[outside[0]]:g} {robot.unit} in {table.rows(outside)}, outside {low[place]:g} … "
                f"{high[place]:g} {robot.unit} of '{robot.name}'.",
                "Check --actuation-unit, or the range in the robot's description.",
            )
        if np.ptp(column) < _LEAST_RANGE * reach:
            raise SoftformError(
                f"{name} runs from {column.min():g} to {column.max():g} {robot.unit}: next to nothing of its range, "
                f"{low[place]:g} … {high[place]:g} {robot.unit}.",
                "Check --actuation-unit and the columns of --actuation; each must change.",
            )
    return table, actuations


def check_scale(robot: Robot, table: Table, places: Array) -> None:
    """See that places (…, d) m are of the robot's size, not a thousand times off.

    Raises:
        SoftformError: If they are too far from its origin, or too close together.
    """
    size = robot.body.size
    furthest, nearest = float(np.nanmax(np.abs(places))), _SMALLEST * size
    if furthest > _LARGEST * size or furthest < nearest:
        raise SoftformError(
            f"Places of {table.path} lie up to {furthest:.3g} m from the origin; '{robot.name}' is {size:.3g} m large.",
            "Check --unit, the columns, and the extents in the robot's description.",
        )


def far_off(robot: Robot, actuations: Array, outputs: Array) -> NDArray[np.int64]:
    """Rows whose output lies far from those under the actuations nearest to its own: slips, stray or mixed units.

    Args:
        robot: The robot.
        actuations: (n, m).
        outputs: (n, d) m, tips or points of shapes.

    Returns:
        Numbers of the rows; none of fewer rows than tell what is usual.
    """
    first, _ = groups(robot, actuations)  # of repeats the first: they would have each other for neighbours
    if len(first) < _FEWEST_TO_COMPARE:
        return np.empty(0, dtype=np.int64)
    reach = robot.actuation_max - robot.actuation_min
    near = first[KDTree(actuations[first] / reach).query(actuations / reach, k=_NEARBY + 1)[1][:, 1:]]
    off = np.linalg.norm(outputs - np.median(outputs[near], axis=1), axis=1)
    return np.flatnonzero(off > max(_STRAY * float(np.median(off)), _RANGE_SLACK * robot.body.size))


def groups(robot: Robot, actuations: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of equal actuations (n, m): the first row of each group, and the group of each row (n,)."""
    step = _RANGE_SLACK * (robot.actuation_max - robot.actuation_min)
    _, first, group = np.unique(np.round(actuations / step), axis=0, return_index=True, return_inverse=True)
    return first, group.ravel()


def unique_rows(robot: Robot, table: Table, actuations: Array, outputs: NDArray) -> NDArray[np.int64]:
    """Rows that remain when an actuation (n, m) and what names its output (n,) come twice.

    Raises:
        SoftformError: If one actuation has different outputs: of a body without memory one of them is wrong.
    """
    first, group = groups(robot, actuations)
    differing = np.flatnonzero(outputs != outputs[first[group]])
    if len(differing):
        twin = first[group[differing[0]]]
        raise SoftformError(
            f"{table.path} gives one actuation different outputs: {table.rows(differing)} against an earlier one "
            f"({table.rows(np.array([twin]))}).",
            "Say --in-order if rows follow one another as they were executed; else keep one of each.",
        )
    return np.sort(first)
