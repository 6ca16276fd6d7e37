"""The wall of a rod's cross-section as fibres along the rod: places and areas."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.rod.description import OutlineKind, RodChamber, SolidSection
from softform_core.errors import SoftformError

CELLS = 14
"""Cells a side of the grid over the outline; each cell's wall makes a fibre."""

_STRIPS = 28
"""Fibres of a rod that bends in one plane only, across that plane."""

_SAMPLES = 24
"""Points a side of a cell at which it is asked whether there is wall."""


def wall_fibres(section: SolidSection, chambers: list[RodChamber], *, planar: bool) -> tuple[Array, Array]:
    """Places (F, 2) m and areas (F,) m² of the wall's fibres at its beginning; strips of a planar rod.

    Raises:
        SoftformError: If a chamber lies outside the outline or chambers touch.
    """
    _check_chambers(section, chambers)
    columns, rows = (_STRIPS, 1) if planar else (CELLS, CELLS)
    width, height = section.width, section.height
    across = _midpoints(width, columns * _SAMPLES)
    along = _midpoints(height, rows * _SAMPLES * (CELLS if planar else 1))
    x, y = np.meshgrid(across, along, indexing="ij")
    wall = _inside(x, y, section.outline, (0.0, 0.0), width, height)
    for chamber in chambers:
        wall &= ~_in_chamber(x, y, chamber)
    wall_area = wall * (width / across.size * height / along.size)

    def by_cell(values: NDArray[np.floating]) -> Array:
        return values.reshape(columns, across.size // columns, rows, along.size // rows).sum(axis=(1, 3)).ravel()

    area = by_cell(wall_area)
    kept = area > 0.0
    area = area[kept]
    place = np.stack([by_cell(x * wall_area)[kept] / area, by_cell(y * wall_area)[kept] / area], axis=1)
    return place, area


def chamber_area(chamber: RodChamber) -> float:
    """Area of a chamber's cross-section, m²."""
    box = chamber.width * chamber.height
    return float(0.25 * np.pi * box if chamber.outline == "ellipse" else box)


def _check_chambers(section: SolidSection, chambers: list[RodChamber]) -> None:
    x, y = np.meshgrid(_midpoints(2.0 * section.width, 400), _midpoints(2.0 * section.height, 400), indexing="ij")
    body = _inside(x, y, section.outline, (0.0, 0.0), section.width, section.height)
    holes = [_in_chamber(x, y, chamber) for chamber in chambers]
    if any((hole & ~body).any() for hole in holes) or (np.sum(holes, axis=0) > 1).any():
        raise SoftformError(
            "A chamber of the rod lies outside its section's outline, or chambers overlap.",
            "Check centre, width and height of the chambers in the robot's description.",
        )


def _in_chamber(x: Array, y: Array, chamber: RodChamber) -> NDArray[np.bool_]:
    return _inside(x, y, chamber.outline, chamber.centre, chamber.width, chamber.height)


def _inside(
    x: Array, y: Array, outline: OutlineKind, centre: tuple[float, float], width: float, height: float
) -> NDArray[np.bool_]:
    u, v = 2.0 * (x - centre[0]) / width, 2.0 * (y - centre[1]) / height
    inside = u * u + v * v <= 1.0 if outline == "ellipse" else (np.abs(u) <= 1.0) & (np.abs(v) <= 1.0)
    return np.asarray(inside)


def _midpoints(side: float, count: int) -> Array:
    return ((np.arange(count) + 0.5) / count - 0.5) * side
