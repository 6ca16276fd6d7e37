"""The membrane as a description."""

from itertools import product
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from softform_core.arrays import Array
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Material, NotNegative, Positive

_SHEET, _LEFT, _RIGHT = "sheet", "left", "right"


class MembraneBody(Body):
    """A rectangular membrane over a grid of chambers; SI units.

    Chambers are numbered row by row: c1 at the least x and the least y, then along x. The sheet lies in z = 0 at rest,
    centred on the origin, and bulges towards +z.

    Attributes:
        width: Extent along x, m.
        length: Extent along y, m.
        thickness: Thickness before it is stretched, m.
        prestretch: Stretch at which the sheet is mounted: 1 is slack, 1.03 is 3 % taut in both directions.
        rows: Chambers along y.
        columns: Chambers along x.
        cells: Mesh cells a side.
        density: kg/m^3.
        material: Hyperelastic law.
        wall_stiffness: Elastic tether of the inner chamber walls, per metre of wall, N/m^2.
    """

    physics: ClassVar[str] = "softform_core.bodies.membrane.simulator"
    kind: Literal["membrane"]
    width: Positive
    length: Positive
    thickness: Positive
    prestretch: Annotated[float, Field(ge=1.0, le=2.0)] = 1.0
    rows: Annotated[int, Field(ge=1, le=20)]
    columns: Annotated[int, Field(ge=1, le=20)]
    cells: Annotated[int, Field(ge=2, le=400)]
    density: Positive
    material: Material
    wall_stiffness: NotNegative

    @property
    def inputs(self) -> list[str]:
        """Names of the chambers, row by row: c1 … ck."""
        return [f"c{index + 1}" for index in range(self.rows * self.columns)]

    @property
    def size(self) -> float:
        """Longer side, m."""
        return max(self.width, self.length)

    @property
    def extent(self) -> Array:
        """Width and length, (2,) m."""
        return np.array([self.width, self.length])

    @property
    def patches(self) -> dict[str, bool]:
        """The whole sheet and its halves, which meet along the mesh line next to x = 0; u is along x, v along y."""
        return {_SHEET: False, _LEFT: False, _RIGHT: False}

    def faces_of(self, patch: str, vertices: Array, faces: NDArray[np.integer]) -> NDArray[np.bool_]:
        """All faces, or those of a half."""
        x = vertices[:, 0]
        line, slack = x[np.abs(x).argmin()], 1e-9 * self.width
        inside = {_SHEET: np.isfinite(x), _LEFT: x <= line + slack, _RIGHT: x >= line - slack}
        return np.asarray(inside[patch][faces].all(axis=1))

    def outlines(self) -> list[Outline]:
        """The chambers seen from above."""
        width, height = self.width / self.columns, self.length / self.rows
        return [
            Outline(
                "from above: x to the right, y upwards",
                "rectangle",
                width * (column + 0.5) - self.width / 2.0,
                height * (row + 0.5) - self.length / 2.0,
                width,
                height,
            )
            for row in range(self.rows)
            for column in range(self.columns)
        ]

    def symmetric_images(self, actuation: Array, control_points: Array) -> list[tuple[Array, Array]]:
        """Images of each shape: 8 pairs like the arguments for a square membrane, 4 for another.

        A membrane of one material over equal chambers maps to itself when it is mirrored in x or in y, and if it and
        its grid of chambers are square, when x and y are swapped. The image of an equilibrium is that of the permuted
        pressures.

        Args:
            actuation: (n, k) Pa.
            control_points: (n, rows, columns, 3) mm, about the centre of the membrane.
        """
        square_grid = control_points.shape[1] == control_points.shape[2]
        swappable = self.width == self.length and self.rows == self.columns and square_grid
        chambers = actuation.reshape(-1, self.rows, self.columns)
        images = []
        for swapped, mirrored_x, mirrored_y in product(
            (False, True) if swappable else (False,), (False, True), (False, True)
        ):
            pressures, shapes = chambers, control_points
            if swapped:
                pressures, shapes = pressures.transpose(0, 2, 1), shapes.transpose(0, 2, 1, 3)[..., [1, 0, 2]]
            if mirrored_x:
                pressures, shapes = pressures[:, :, ::-1], shapes[:, ::-1] * np.array([-1.0, 1.0, 1.0])
            if mirrored_y:
                pressures, shapes = pressures[:, ::-1], shapes[:, :, ::-1] * np.array([1.0, -1.0, 1.0])
            images.append((pressures.reshape(actuation.shape), shapes))
        return images
