"""The rod as a description."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from softform_core.arrays import Array
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description, Finite, Material, NotNegative, Place, Positive

OutlineKind = Literal["ellipse", "rectangle"]


class RodChamber(Description):
    """A straight chamber along a section: a hole in its cross-section, where `centre` is from the rod's axis, m."""

    centre: tuple[Finite, Finite]
    outline: OutlineKind
    width: Positive
    height: Positive


class SolidSection(Description):
    """A section of soft rod without chambers; SI units.

    Width lies along the cross-section's first axis, height along its second. `taper` is the size of the cross-section
    at the end over that at the beginning. `strain_limiter` is the axial stiffness, N, of a strip of cloth or a thin
    tube in the axis, which bends with the rod and hardly stretches.
    """

    length: Positive
    outline: OutlineKind
    width: Positive
    height: Positive
    taper: Annotated[float, Field(gt=0.2, le=1.0)] = 1.0
    density: Positive
    material: Material
    strain_limiter: NotNegative = 0.0


class RodSection(SolidSection):
    """A section of soft rod with chambers."""

    chambers: Annotated[list[RodChamber], Field(min_length=1)]


class RodShape(Body):
    """Equal sections, each followed by a rigid link; SI units.

    Attributes:
        planar: The rod rests along x and moves in the plane z = 0; width is across, in that plane. If not, it rests
            along z, width lies along x and height along y.
        sections: Number of sections.
        section: Each of them.
        link_length: Length of the rigid link behind each section, m.
        link_mass: kg.
        gravity: m/s^2.
        elements: Number of elements of each section.
    """

    planar: bool
    sections: Annotated[int, Field(ge=1, le=9)]
    section: SolidSection
    link_length: NotNegative
    link_mass: NotNegative
    gravity: Place
    elements: Annotated[int, Field(ge=2, le=100)]

    @property
    def chambers(self) -> list[RodChamber]:
        """The chambers of each section; none by default."""
        return []

    @property
    def size(self) -> float:
        """Length at rest, m."""
        return self.sections * (self.section.length + self.link_length)

    @property
    def box(self) -> tuple[Array, Array]:
        """Half as long again as at rest, to any side."""
        reach = np.full(3, 1.5 * self.size)
        return -reach, reach

    @property
    def frames(self) -> dict[str, int]:
        """The tip: the end of the last link."""
        return {"tip": 2 if self.planar else 3}

    @property
    def has_centre_line(self) -> bool:
        """The axis of the rod and of the links behind its sections."""
        return True

    def shell(self) -> tuple[Array, NDArray[np.int64]] | None:
        """Its sections and links, or discs."""
        from softform_core.bodies.rod.shell import RodOutside, rod_shell

        one = self.section
        return rod_shell(
            RodOutside(
                self.sections,
                self.elements,
                one.length,
                self.link_length,
                (one.width, one.height),
                one.taper,
                one.outline == "rectangle",
                self.planar,
                self.discs,
            )
        )

    @property
    def discs(self) -> float:
        """Radius of the discs that the links are, m; 0, by default, of none."""
        return 0.0

    def panel(self, section: int) -> str:
        """Name of the picture of a section, from 0."""
        count = self.sections
        return f"section {section + 1} of {count}, seen along it" if count > 1 else "seen along it, from its end"


class RodBody(RodShape):
    """A rod that is bent by pressure in its chambers."""

    physics: ClassVar[str] = "softform_core.bodies.rod.simulator"
    kind: Literal["rod"]
    section: RodSection

    @property
    def inputs(self) -> list[str]:
        """Names of the chambers, section by section: c1 … ck."""
        return [f"c{index + 1}" for index in range(self.sections * len(self.section.chambers))]

    @property
    def chambers(self) -> list[RodChamber]:
        """The chambers of each section."""
        return self.section.chambers

    def outlines(self) -> list[Outline]:
        """The chambers in the cross-section of each section."""
        return [
            Outline(self.panel(section), chamber.outline, *chamber.centre, chamber.width, chamber.height)
            for section in range(self.sections)
            for chamber in self.section.chambers
        ]
