"""The arm of bellows as a description."""

from itertools import product
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description, NotNegative, Positive

SKIN = "skin"
"""The one patch: a tube around all bellows."""

_SAME_ROW = 1e-3  # of the width of the arm: rows of the control grid that lie on each other are nearer


class BellowsSection(Description):
    """Parallel bellows between two plates; SI units.

    Attributes:
        length: Length of the bellows without load, m.
        count: Number of bellows, evenly around the axis; the first lies on the x axis.
        pitch_radius: Distance of the bellows' axes from the section's axis.
        radius: Outer radius of a bellow.
        area: Effective area on which the pressure of a bellow acts.
        stiffness: Force over strain of one bellow at its natural length, N.
        shortest: Length at which its folds touch over its natural length.
        longest: Length at which its folds are flat over its natural length.
        bending: Bending stiffness of one bellow about its own axis, N m^2.
        torsion: Torsional stiffness of one bellow about the section's axis, N m^2.
        mass: Mass of one bellow, kg.
    """

    length: Positive
    count: Annotated[int, Field(ge=3, le=6)] = 3
    pitch_radius: Positive
    radius: Positive
    area: Positive
    stiffness: Positive
    shortest: Annotated[float, Field(gt=0.0, lt=1.0)]
    longest: Annotated[float, Field(gt=1.0, le=5.0)]
    bending: NotNegative
    torsion: Positive
    mass: Positive

    @model_validator(mode="after")
    def _apart(self) -> "BellowsSection":
        if self.radius > self.pitch_radius * np.sin(np.pi / self.count):
            raise ValueError("bellows overlap: make radius smaller, or pitch_radius larger")
        if self.area > np.pi * self.radius**2:
            raise ValueError("area is larger than that of a circle of the bellow's outer radius")
        return self

    @property
    def places(self) -> Array:
        """Axes of the bellows in the cross-section, (count, 2) m."""
        angle = 2.0 * np.pi * np.arange(self.count) / self.count
        return self.pitch_radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


class BellowsBody(Body):
    """Equal sections of bellows, each followed by a rigid plate; SI units.

    Attributes:
        sections: Number of sections.
        section: Each of them.
        plate_length: Thickness of the plate behind each section, m.
        plate_mass: kg.
        hanging: Whether it hangs along -z from its base; else it stands along +z.
        elements: Number of elements of each section.
    """

    physics: ClassVar[str] = "softform_core.bodies.bellows.simulator"
    kind: Literal["bellows"]
    sections: Annotated[int, Field(ge=1, le=9)]
    section: BellowsSection
    plate_length: NotNegative
    plate_mass: NotNegative
    hanging: bool = True
    elements: Annotated[int, Field(ge=2, le=40)]

    @property
    def inputs(self) -> list[str]:
        """Names of the bellows, section by section from the base: c1 … ck."""
        return [f"c{index + 1}" for index in range(self.sections * self.section.count)]

    @property
    def size(self) -> float:
        """Length without load, m."""
        return self.sections * (self.section.length + self.plate_length)

    @property
    def box(self) -> tuple[Array, Array]:
        """Around the base as far as all bellows reach with their folds flat; behind it half as far."""
        reach = self.sections * (self.section.length * self.section.longest + self.plate_length)
        low, high = np.full(3, -reach), np.full(3, reach)
        (high if self.hanging else low)[2] *= 0.5
        return low, high

    @property
    def patches(self) -> dict[str, bool]:
        """The skin around the bellows: u runs around the arm, v along it."""
        return {SKIN: True}

    def outlines(self) -> list[Outline]:
        """The bellows in the cross-section of each section."""
        side = 2.0 * self.section.radius
        return [
            Outline(f"section {section + 1} of {self.sections}, seen from its end", "ellipse", x, y, side, side)
            for section in range(self.sections)
            for x, y in self.section.places.tolist()
        ]

    def symmetric_images(self, actuation: Array, control_points: Array) -> list[tuple[Array, Array]]:
        """The arm turned about its axis from bellow to bellow, and mirrored in the plane of its first bellows.

        Args:
            actuation: (n, k) Pa.
            control_points: (n, rows, columns, 3) mm.

        Returns:
            Two pairs for each bellow of a section; fewer if an image of the control grid falls between its rows.
        """
        count = self.section.count
        by_section = actuation.reshape(len(actuation), self.sections, count)
        # Seen in the robot's frame, the bellows of a hanging arm follow each other clockwise.
        step = (-2.0 if self.hanging else 2.0) * np.pi / count
        images = []
        for mirrored, turn in product((False, True), range(count)):
            order = (np.arange(count) - turn) * (-1 if mirrored else 1) % count
            cosine, sine, side = np.cos(turn * step), np.sin(turn * step), -1.0 if mirrored else 1.0
            rotation = np.array([[cosine, -side * sine, 0.0], [sine, side * cosine, 0.0], [0.0, 0.0, 1.0]])
            rows = self._rows_under(rotation, control_points)
            if rows is not None:
                images.append((by_section[:, :, order].reshape(actuation.shape), control_points[:, rows] @ rotation.T))
        return images

    def _rows_under(self, rotation: Array, control_points: Array) -> NDArray[np.int64] | None:
        """Which row comes to lie on each row as the grid is turned or mirrored; None if they do not meet.

        The rows are told by their ends at the clamped base, which no shape moves.
        """
        base = control_points[0, :, -1 if self.hanging else 0, :2]
        moved = base @ rotation[:2, :2].T
        apart = np.linalg.norm(moved[None] - base[:, None], axis=2)
        if apart.max() == 0.0:  # a grid of nothing, whose actuations alone are asked for
            return np.arange(len(base))
        nearest = apart.argmin(axis=1)
        return nearest if apart.min(axis=1).max() < _SAME_ROW * apart.max() else None
