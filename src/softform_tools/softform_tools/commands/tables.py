"""Paths as tables: points of a tip or of a surface, or values of the actuators, with or without times."""

import numpy as np

from softform_client.client import ActuatorPath, PointPath
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.importing.checks import numbers_in_si
from softform_core.importing.table import Table
from softform_core.robots import Robot

_POINT = ["x", "y", "z"]
_TIME = "time"
_MOST_PLACES = 1_000_000


def read_path(
    table: Table, robot: Robot, uv: Array, point: str = "", unit: str = "m"
) -> tuple[PointPath | ActuatorPath, Array | None]:
    """Return the path of a table, and the time at which each waypoint is due, s, or None.

    Args:
        table: Has columns `x,y,z`, or the robot's actuators in their unit,
            in any order; and, if wanted, `time` in s after the start.
        robot: Robot that follows it.
        uv: (2,) which point of a surface is led.
        point: Frame of the robot that is led, if not that point.
        unit: Unit of x, y and z: m or mm.

    Raises:
        SoftformError: If it has other columns, or lacks a value.
    """
    names = {name.casefold() for name in table.columns}
    timed = [_TIME] * (_TIME in names)
    for wanted in (_POINT, robot.actuators):
        if names == {name.casefold() for name in [*wanted, *timed]} and len(names) == len(table.columns):
            units = [(unit, "m")] * len(_POINT) if wanted is _POINT else [(own, own) for own in robot.actuator_units]
            columns = zip(wanted, units, strict=True)
            values = np.column_stack([numbers_in_si(table, [name], *stated) for name, stated in columns])
            if timed:
                values = np.column_stack([values, numbers_in_si(table, timed, "s", "s")])
            lacking = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if len(lacking):
                raise SoftformError(f"{table.path} lacks a value in {table.rows(lacking)}.", "Complete or delete it.")
            led, times = values[:, : len(wanted)], values[:, -1] if timed else None
            return (PointPath(led, uv, point) if wanted is _POINT else ActuatorPath(led)), times
    raise SoftformError(
        f"{table.path} has the columns {', '.join(table.columns)}.",
        f"Give {','.join(_POINT)} or {','.join(robot.actuators)} ({robot.unit}), and {_TIME} (s) if wanted.",
    )


def read_places(table: Table, robot: Robot, rate: float, unit: str = "m") -> Array:
    """Return places (n, 3) m of the tip, so many a second, of a table as `read_path` reads it, on straight lines.

    Raises:
        SoftformError: If it holds no places, the robot has no tip, or the times make no sense.
    """
    points, times = read_path(table, robot, np.full(2, 0.5), unit=unit)
    if robot.surfaces or not isinstance(points, PointPath):
        raise SoftformError(
            f"{table.path} holds no stream for '{robot.name}'.", "Stream places x,y,z of a tip, or shapes."
        )
    if times is None:
        return points.points
    if not (np.diff(times) > 0.0).all():
        raise SoftformError(f"The times of {table.path} do not increase.", "Sort its rows.")
    duration = times[-1] - times[0]
    if duration * rate > _MOST_PLACES:
        raise SoftformError(f"{table.path} lasts {duration:g} s.", "Give times in seconds, or a lower --rate.")
    moments = np.append(np.arange(times[0], times[-1], 1.0 / rate), times[-1])
    return np.stack([np.interp(moments, times, coordinate) for coordinate in points.points.T], axis=1)
