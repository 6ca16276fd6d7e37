"""Layers of chambers over a rigid torso as a description."""

from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description, Finite, Material, NotNegative, Positive

SKIN = "skin"
"""The one patch: the cover around the whole torso."""

LAYERS = ("inner", "middle")
"""Layers of chambers, from the core outwards."""

_TOUCHING = 1e-9  # of a turn, and m: chambers may share a border
_BULGE = 0.5  # of the body's size: how far its surface may be from the resting one


class Station(Description):
    """A horizontal section of the core; SI units.

    Attributes:
        height: Height of the section, m.
        side: Distance from the axis to either side, m.
        front: Distance from the axis to the front, m.
        back: Distance from the axis to the back, m.
    """

    height: NotNegative
    side: Positive
    front: Positive
    back: Positive


class Core(Description):
    """The rigid torso: sections between which it is interpolated.

    Attributes:
        stations: From the base upwards; the first lies at height 0.
        squareness: By how much the sections are wider along their diagonals than ellipses.
    """

    stations: Annotated[list[Station], Field(min_length=3)]
    squareness: Annotated[float, Field(ge=0.0, le=0.15)] = 0.0

    @model_validator(mode="after")
    def _rising(self) -> "Core":
        heights = [station.height for station in self.stations]
        if heights[0] != 0.0 or (np.diff(heights) <= 0.0).any():
            raise ValueError("stations must rise from height 0")
        return self

    @property
    def height(self) -> float:
        """Height of the uppermost station, m."""
        return self.stations[-1].height


class Chamber(Description):
    """A chamber: a part of the torso's surface, between two angles and two heights.

    Attributes:
        layer: Layer that it belongs to.
        turn: Its two ends around the axis, in turns, counter-clockwise from above; 0 is the front.
        height: Its lower and its upper end, m.
    """

    layer: Literal["inner", "middle"]
    turn: tuple[Finite, Finite]
    height: tuple[Finite, Finite]

    @model_validator(mode="after")
    def _is_possible(self) -> "Chamber":
        if not 0.0 < self.turn[1] - self.turn[0] < 1.0:
            raise ValueError(f"turn {list(self.turn)} must rise by less than a whole turn")
        if not self.height[0] < self.height[1]:
            raise ValueError(f"height {list(self.height)} must rise")
        return self

    def overlaps(self, other: "Chamber") -> bool:
        """Whether both lie in one layer and share more than a border."""
        if self.layer != other.layer:
            return False
        above = max(self.height[0], other.height[0]) < min(self.height[1], other.height[1]) - _TOUCHING
        ahead = (other.turn[0] - self.turn[0] + _TOUCHING) % 1.0 - _TOUCHING
        behind = (self.turn[0] - other.turn[0] + _TOUCHING) % 1.0 - _TOUCHING
        width, of_other = self.turn[1] - self.turn[0], other.turn[1] - other.turn[0]
        return above and (ahead < width - _TOUCHING or behind < of_other - _TOUCHING)


class Sheet(Description):
    """A sheet of a layer; SI units.

    Attributes:
        thickness: Before it is stretched, m.
        prestretch: Stretch, alike in both directions, at which it is mounted.
    """

    thickness: Positive
    prestretch: Annotated[float, Field(ge=1.0, le=1.5)]


class LayeredBody(Body):
    """Two layers of chambers on a rigid torso under a passive cover; SI units.

    The torso stands along +z, its base at z = 0; its front looks along +x. Sheets are glued to what lies under them
    wherever there is no chamber of their layer; the cover is held at its upper and lower rim alone.

    Attributes:
        core: The rigid torso.
        chambers: In the order of the inputs.
        inner: Sheet over the inner chambers.
        middle: Sheet over the middle chambers.
        cover: The passive membrane.
        material: Hyperelastic law of all sheets.
        contact_stiffness: Pressure over depth at which sheets give way to each other and to the core, Pa/m.
        cell: Largest size of a mesh cell, about, m.
    """

    physics: ClassVar[str] = "softform_core.bodies.layered.simulator"
    kind: Literal["layered"]
    core: Core
    chambers: Annotated[list[Chamber], Field(min_length=1, max_length=60)]
    inner: Sheet
    middle: Sheet
    cover: Sheet
    material: Material
    contact_stiffness: Positive
    cell: Annotated[float, Field(ge=0.003, le=0.05)]

    @model_validator(mode="after")
    def _chambers_fit(self) -> "LayeredBody":
        for number, chamber in enumerate(self.chambers, start=1):
            if chamber.height[0] <= 0.0 or chamber.height[1] >= self.core.height:
                raise ValueError(
                    f"chamber c{number} leaves the body: its height must lie between 0 and {self.core.height:g} m"
                )
        for (i, one), (j, other) in combinations(enumerate(self.chambers, start=1), 2):
            if one.overlaps(other):
                raise ValueError(f"chambers c{i} and c{j} of the {one.layer} layer overlap: part them")
        return self

    @property
    def inputs(self) -> list[str]:
        """Names of the chambers: c1 … ck."""
        return [f"c{index + 1}" for index in range(len(self.chambers))]

    @property
    def size(self) -> float:
        """Height, m."""
        return self.core.height

    @property
    def extent(self) -> Array:
        """Depth and width of the core, (2,) m."""
        stations = self.core.stations
        depth = max(station.front for station in stations) + max(station.back for station in stations)
        return np.array([depth, 2.0 * max(station.side for station in stations)])

    @property
    def box(self) -> tuple[Array, Array]:
        """Around the torso, and half its height to every side."""
        half, reach = self.extent / 2.0, _BULGE * self.size
        return np.append(-half - reach, -reach), np.append(half + reach, self.size + reach)

    @property
    def patches(self) -> dict[str, bool]:
        """The cover, a tube: u runs around it, v upwards."""
        return {SKIN: True}

    def outlines(self) -> list[Outline]:
        """The chambers of each layer, unrolled and seen from outside: front in the middle, left to the right."""
        around = np.pi * float(self.extent.mean())
        return [
            Outline(
                f"{chamber.layer} layer unrolled, seen from outside",
                "rectangle",
                around * ((sum(chamber.turn) / 2.0 + 0.5) % 1.0 - 0.5),
                sum(chamber.height) / 2.0,
                around * (chamber.turn[1] - chamber.turn[0]),
                chamber.height[1] - chamber.height[0],
            )
            for chamber in self.chambers
        ]

    @property
    def is_unrolled(self) -> bool:
        """They are: chambers lie around the torso."""
        return True
