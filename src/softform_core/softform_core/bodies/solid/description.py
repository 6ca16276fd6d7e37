"""The solid as a description: a cylinder of soft segments with chambers, rigid plates between them."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.bodies.loads.description import LoadList
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description, Material, NotNegative, Place, Positive

_TUBE = "tube"
_THINNEST = 0.0005
"""Walls below this are taken for a mistake, m."""


class CrossSection(Description):
    """The cross-section of a segment: chambers as sectors of a ring, spread evenly; SI units.

    Attributes:
        radius: Outer radius of the body, m.
        chambers: Number of chambers; the middle of the first lies at y = 0, x > 0, and they go on counter-clockwise.
        inner: Radius from which the chambers reach, m.
        outer: Radius to which they reach, m.
        angle: Angle that each chamber spans, rad.
    """

    radius: Positive
    chambers: Annotated[int, Field(ge=1, le=12)]
    inner: Positive
    outer: Positive
    angle: Positive

    @model_validator(mode="after")
    def _is_possible(self) -> "CrossSection":
        rib = 2.0 * np.pi / self.chambers - self.angle
        if rib <= 0.0:
            raise ValueError(f"angle {self.angle:g} rad makes its {self.chambers} chambers overlap; reduce angle")
        if self.outer >= self.radius:
            raise ValueError(f"outer {self.outer:g} m leaves the body, whose radius is {self.radius:g} m; reduce outer")
        if self.inner >= self.outer:
            raise ValueError(f"inner {self.inner:g} m must be below outer {self.outer:g} m")
        walls = {"radius - outer": self.radius - self.outer, "the rib that angle leaves at inner": rib * self.inner}
        for name, thickness in (walls | {"outer - inner": self.outer - self.inner}).items():
            if thickness < _THINNEST:
                raise ValueError(f"{name} is {1000.0 * thickness:.2g} mm, too thin to mesh; at least 0.5 mm is needed")
        return self


class Cells(Description):
    """Mesh cells; each is two wedges of 18 nodes.

    Attributes:
        chamber: Cells around each chamber.
        rib: Cells around each rib between two chambers.
        core: Cells along the radius from the axis to the chambers.
        depth: Cells along the radius of the chambers.
        wall: Cells through the outer wall.
        layers: Cells along each segment.
    """

    chamber: Annotated[int, Field(ge=2, le=24)]
    rib: Annotated[int, Field(ge=1, le=12)]
    core: Annotated[int, Field(ge=1, le=6)] = 1
    depth: Annotated[int, Field(ge=1, le=6)] = 1
    wall: Annotated[int, Field(ge=1, le=6)] = 1
    layers: Annotated[int, Field(ge=2, le=40)]


class SolidBody(Body):
    """Soft segments with chambers along the z axis, a rigid plate before each and at the end; SI units.

    The body rests along +z, its base at z = 0. Chambers are numbered segment by segment from the base.

    Attributes:
        kind: `solid` is simulated by finite elements; `solid_rod`, its second model, as a rod whose wall bulges.
        length: Length of the whole body, m.
        segments: Number of segments, all alike.
        plate: Thickness of each of the plates, m.
        cross_section: Cross-section of each segment.
        cells: Cells of the mesh.
        density: kg/m^3.
        material: Law of the change of shape.
        poisson_ratio: At small strain; says how little the volume changes.
        fibre_modulus: Stiffness of the fibres around the outer wall, over its whole volume, Pa.
        plate_stiffness: Modulus of the plates over the material's.
        gravity: m/s^2; +z where it hangs.
        loads: Cables and grips; their inputs follow the chambers'.
    """

    physics: ClassVar[str] = "softform_core.bodies.solid.simulator"
    pictures: ClassVar[str] = "softform_core.bodies.solid.picture"
    kind: Literal["solid", "solid_rod"]
    length: Positive
    segments: Annotated[int, Field(ge=1, le=9)]
    plate: Positive
    cross_section: CrossSection
    cells: Cells
    density: Positive
    material: Material
    poisson_ratio: Annotated[float, Field(ge=0.3, le=0.499)] = 0.49
    fibre_modulus: NotNegative
    plate_stiffness: Annotated[float, Field(ge=1.0, le=1e4)] = 100.0
    gravity: Place
    loads: LoadList = []

    @model_validator(mode="after")
    def _plates_fit(self) -> "SolidBody":
        if self.segment_length <= self.plate:
            raise ValueError(
                f"plate {self.plate:g} m leaves no room for {self.segments} segments in the length of {self.length:g} m"
            )
        if self.loads and self.kind == "solid_rod":
            raise ValueError("loads: a solid as a rod has chambers only")
        return self

    @property
    def segment_length(self) -> float:
        """Length of a segment between its plates, m."""
        return (self.length - (self.segments + 1) * self.plate) / self.segments

    @property
    def inputs(self) -> list[str]:
        """Names of the chambers, segment by segment: c1 … ck; then those of the loads."""
        chambers = [f"c{index + 1}" for index in range(self.segments * self.cross_section.chambers)]
        return [*chambers, *(name for load in self.loads for name in load.inputs)]

    @property
    def size(self) -> float:
        """Length, m."""
        return self.length

    @property
    def box(self) -> tuple[Array, Array]:
        """Half as long again as at rest, and bent to any side."""
        reach = 1.5 * self.length
        return np.array([-reach, -reach, -2.0 * self.cross_section.radius]), np.full(3, reach)

    @property
    def patches(self) -> dict[str, bool]:
        """The outer wall: u runs around it from the middle of the first chamber, v from the base to the end."""
        return {_TUBE: True}

    def faces_of(self, patch: str, vertices: Array, faces: NDArray[np.integer]) -> NDArray[np.bool_]:
        """All faces but those of the end, which lie in a plane across z."""
        return np.asarray(np.ptp(vertices[faces, 2], axis=1) > 1e-6 * self.length)

    def outlines(self) -> list[Outline]:
        """The chambers of each segment, seen from the end, a circle of the area of each; then the loads."""
        section = self.cross_section
        middle = 0.5 * (section.inner + section.outer)
        width = section.outer - section.inner
        angles = 2.0 * np.pi * np.arange(section.chambers) / section.chambers
        chambers = [
            Outline(
                f"segment {segment + 1} of {self.segments}, from the end",
                "ellipse",
                middle * float(np.cos(angle)),
                middle * float(np.sin(angle)),
                width,
                width,
            )
            for segment in range(self.segments)
            for angle in angles
        ]
        return chambers + [outline for load in self.loads for outline in load.outlines(self.size)]

    @property
    def second_model(self) -> "SolidBody | None":
        """The solid as a rod, if it has chambers only."""
        return None if self.loads else self.model_copy(update={"kind": "solid_rod"})

    @property
    def alike_inputs(self) -> NDArray[np.int64]:
        """Each chamber, then the others of its segment, counter-clockwise and clockwise; none where there are loads."""
        if self.loads:
            return super().alike_inputs
        chambers = self.cross_section.chambers
        around = np.arange(chambers)
        orders = [(first + side * around) % chambers for first in range(chambers) for side in (1, -1)]
        return np.array([segment * chambers + order for segment in range(self.segments) for order in orders])

    def symmetric_images(self, actuation: Array, control_points: Array) -> list[tuple[Array, Array]]:
        """Images of each shape under turns by a chamber, and their mirror images in y; the end of the axis stays.

        Args:
            actuation: (n, k) Pa.
            control_points: (n, rows, columns, 3) mm of the outer wall; u begins in the middle of the first chamber.

        Returns:
            Two pairs like the arguments for each chamber of a segment, if the rows can be shared out among them.
        """
        chambers, rows = self.cross_section.chambers, control_points.shape[1]
        if rows % chambers or self.gravity[:2] != (0.0, 0.0) or self.loads:
            return [(actuation, control_points)]
        pressures = actuation.reshape(-1, self.segments, chambers)
        # Rows of control points lie evenly around the base, which does not move; how far before u = 0 the first one
        # lies depends on the degree of the spline.
        first = np.arctan2(control_points[0, 0, 0, 1], control_points[0, 0, 0, 0])
        across = round(-first * rows / np.pi) - np.arange(rows)
        images = []
        for mirrored in (False, True):
            if mirrored:
                pressures = pressures[:, :, -np.arange(chambers)]
                control_points = control_points[:, across % rows] * np.array([1.0, -1.0, 1.0])
            for turn in range(chambers):
                angle = 2.0 * np.pi * turn / chambers
                cosine, sine = np.cos(angle), np.sin(angle)
                turned = control_points @ np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])
                shifted = np.roll(turned, turn * rows // chambers, axis=1)
                images.append((np.roll(pressures, turn, axis=2).reshape(actuation.shape), shifted))
        return images
