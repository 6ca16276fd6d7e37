"""The arm of sections with cables as a description."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description, Finite, Material, NotNegative, Place, Positive

_DRAWN = 0.1
"""Size of a cable in pictures, of the arm's radius."""


class ArmSection(Description):
    """A section of an arm; SI units.

    Attributes:
        length: m.
        layers: Layers of elements along it.
        cables: Angles about the axis at which its cables lie, rad; none of a section that is not driven.
    """

    length: Positive
    layers: Annotated[int, Field(ge=2, le=1000)]
    cables: Annotated[list[Finite], Field(max_length=16)] = []


class CableArmBody(Body):
    """A round arm along z of sections, each of which its own cables bend; SI units.

    The value of an actuator is the pull of a cable at its motor, m: how much shorter the cable is than its section at
    rest. Below 0 it is slack at rest. Bowden tubes lead the cables through the sections before their own, so that a
    section moves those beyond it and bends none (paper 002, Sec. II-A).

    Attributes:
        radius: Of the arm, m.
        sections: From the base to the tip.
        cable_circle: Radius of the circle on which all cables lie, m.
        cable_stiffness: Axial stiffness EA of each cable, N.
        most_tension: Tension beyond which a cable is pulled no further where that may be chosen, N; the simulator has
            no such limit.
        take_up: Stretch over which a slack cable takes up its stiffness, m.
        rings: Rings of nodes around the axis in each layer.
        plate_stiffness: Modulus of the last layer of a section with cables, over the material's: their anchor plate.
        density: kg/m^3.
        tip_mass: Of what the tip carries, such as a gripper, kg.
        material: Of the arm as a whole; law `neo_hookean`, its coefficient the shear modulus, Pa.
        poisson_ratio: At small strain.
        gravity: m/s^2; +z where it hangs.
    """

    physics: ClassVar[str] = "softform_core.bodies.cable_arm.simulator"
    kind: Literal["cable_arm"]
    radius: Positive
    sections: Annotated[list[ArmSection], Field(min_length=1, max_length=16)]
    cable_circle: Positive
    cable_stiffness: Positive
    most_tension: Positive = 60.0
    take_up: Positive = 0.001
    rings: Annotated[int, Field(ge=1, le=6)] = 2
    plate_stiffness: Annotated[float, Field(ge=1.0, le=1e4)] = 30.0
    density: Positive
    tip_mass: NotNegative = 0.0
    material: Material
    poisson_ratio: Annotated[float, Field(ge=0.0, le=0.45)] = 0.3
    gravity: Place

    @model_validator(mode="after")
    def _is_possible(self) -> "CableArmBody":
        if self.material.law != "neo_hookean":
            raise ValueError(f"material: the law of an arm is neo_hookean, not {self.material.law}")
        if not self.inputs:
            raise ValueError("sections: none has cables; nothing would move the arm")
        # The mesh of a layer is a polygon: a cable near its outside may lie beyond the middle of an edge.
        inner = self.radius * np.cos(np.pi / (6 * self.rings))
        if self.cable_circle >= inner:
            raise ValueError(f"cable_circle {self.cable_circle:g} m must lie within the mesh, below {inner:.4g} m")
        return self

    @property
    def inputs(self) -> list[str]:
        """Names of the cables, t1 ... tk, from the base on."""
        return [f"t{number + 1}" for number in range(sum(len(section.cables) for section in self.sections))]

    @property
    def length(self) -> float:
        """Length at rest, m."""
        return float(sum(section.length for section in self.sections))

    @property
    def layers(self) -> int:
        """Layers of elements."""
        return sum(section.layers for section in self.sections)

    @property
    def size(self) -> float:
        """Largest extent, m."""
        return max(self.length, 2.0 * self.radius)

    @property
    def extent(self) -> Array:
        """Size at rest along x and y, (2,) m."""
        return np.full(2, 2.0 * self.radius)

    @property
    def box(self) -> tuple[Array, Array]:
        """All that the tip can reach."""
        reach = self.size + self.radius
        return np.array([-reach, -reach, -reach]), np.array([reach, reach, reach])

    @property
    def patches(self) -> dict[str, bool]:
        """Its side, a tube."""
        return {"tube": True}

    def outlines(self) -> list[Outline]:
        """The cables in their section, from above."""
        drawn, found = _DRAWN * self.radius, []
        for number, section in enumerate(self.sections):
            for angle in section.cables:
                x, y = self.cable_circle * np.cos(angle), self.cable_circle * np.sin(angle)
                found.append(Outline(f"cables of section {number + 1}", "ellipse", float(x), float(y), drawn, drawn))
        return found
