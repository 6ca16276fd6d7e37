"""Conversion of the client's inputs: accepted where the meaning is clear, else an error says what to give."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softform_client.follow_messages import ActuatorPath, Path, PointPath, ShapePath
from softform_client.reach_goal import Mode
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.shapes.shape import Shape


def as_shape(given: Any, what: str = "target") -> Shape:
    """Return a shape, m: given as one, as points (N, 3), or as any mesh with `vertices` (V, 3) and `faces` (F, 3).

    Raises:
        SoftformError: If it is something else, such as a path, which names no unit; or cannot be a shape.
    """
    if isinstance(given, Shape):
        return given
    if isinstance(given, str | PathLike):
        raise SoftformError(
            f"The {what} is given as a path, '{given}', which does not tell the unit.",
            f"Read it first: read_shape({str(given)!r}, unit='mm'), from softform_core.shapes.read.",
        )
    if hasattr(given, "vertices") and hasattr(given, "faces"):
        return Shape.from_mesh(np.asarray(given.vertices), np.asarray(given.faces))
    points = _numbers(given, what, "Give a Shape, points (N, 3) in metres, or a mesh with vertices and faces.")
    if points.ndim != 2 or points.shape[1] != 3:
        raise SoftformError(
            f"The {what} has shape {points.shape}, and points of a shape have (N, 3).",
            "Give x, y and z in metres for each; actuator values go to follow(ActuatorPath(values)).",
        )
    return Shape.from_cloud(points)


def as_shape_or_values(given: Any) -> Shape | Array:
    """Return a shape as `as_shape` takes it, or numbers (k,): actuator values, or a place.

    Raises:
        SoftformError: If it is neither.
    """
    if isinstance(given, Shape | str | PathLike) or hasattr(given, "vertices"):
        return as_shape(given)
    numbers = _numbers(given, "target", "Give a shape, or a number for each actuator or coordinate.")
    return numbers if numbers.ndim == 1 else as_shape(numbers)


def as_mode(given: Any) -> Mode:
    """Return what a goal does with its target: a mode, its number, or its name as `./softform reach --mode` takes it.

    Raises:
        SoftformError: If it is none.
    """
    try:
        return Mode[given.upper().replace("-", "_")] if isinstance(given, str) else Mode(given)
    except (KeyError, ValueError):
        known = ", ".join(f"Mode.{one.name}" for one in Mode)
        raise SoftformError(
            f"There is no mode {given!r}.", f"Give one of {known}; from softform_client.client."
        ) from None


def as_values(given: ArrayLike | None, what: str, each: str = "actuator") -> Array | None:
    """Return values, one for each of something, as an array; or None.

    Raises:
        SoftformError: If they are no numbers.
    """
    return None if given is None else _numbers(given, what, f"Give one number for each {each}, or None.")


def as_path(given: Any) -> Path:
    """Return a path, given as one or as shapes; numbers do not tell whether they are places or actuator values.

    Raises:
        SoftformError: If it is something else, or a path whose numbers are of another shape.
    """
    if isinstance(given, PointPath):
        points = _numbers(given.points, "path", "Give points (m, 3) in metres.")
        uv = _numbers(given.uv, "point of the surface", "Give u and v.")
        if points.ndim != 2 or points.shape[1] != 3 or uv.shape != (2,):
            raise SoftformError(
                f"The path has points of shape {points.shape} and uv of {uv.shape}.", "Give (m, 3) in metres, and (2,)."
            )
        return PointPath(points, uv, given.output)
    if isinstance(given, ShapePath):
        return ShapePath(tuple(as_shape(one, f"waypoint {at + 1}") for at, one in enumerate(given.shapes)))
    if isinstance(given, ActuatorPath):
        return ActuatorPath(_numbers(given.values, "path", "Give actuator values (m, k)."))
    if isinstance(given, list | tuple) and given and all(isinstance(one, Shape) for one in given):
        return ShapePath(tuple(given))
    raise SoftformError(
        f"The path is a {type(given).__name__}, which does not tell what its numbers are.",
        "Say it: PointPath(points) of places (m, 3) in metres, ActuatorPath(values) of actuator values (m, k), or "
        "ShapePath(shapes); from softform_client.client.",
    )


def _numbers(given: Any, what: str, next_step: str) -> Array:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SoftformError(
            f"The {what} is a {type(given).__name__} and not an array of numbers.", next_step
        ) from error
