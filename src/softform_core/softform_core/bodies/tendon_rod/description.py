"""The tendon-driven rod as a description."""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from softform_core.bodies.rod.description import RodShape
from softform_core.robots.body import Outline
from softform_core.robots.description import Description, Finite, NotNegative, Positive

_DRAWN = 0.1
"""Size of a tendon in pictures, of the section's width."""


class Tendon(Description):
    """A tendon along the rod; SI units.

    It is fixed at the end of its last section and leaves the rod at the beginning of its first one, from where a sheath
    leads it to its motor. Between these it is guided all the way, without friction.

    Attributes:
        place: Position in the cross-section, from the rod's axis, m.
        turns: About the rod's axis on its way, right-handed along the rod; 0 of a straight tendon.
        sections: First and last section that it runs through, from 1; all by default.
        stiffness: Axial stiffness EA, N.
    """

    place: tuple[Finite, Finite]
    turns: Finite = 0.0
    sections: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None
    stiffness: Positive

    @model_validator(mode="after")
    def _beside_the_axis(self) -> "Tendon":
        if self.place == (0.0, 0.0):
            raise ValueError("place must lie beside the rod's axis")
        return self


class TendonRodBody(RodShape):
    """A rod that is bent by tendons.

    The value of an actuator is the pull of a tendon at its motor, m: how much shorter the tendon is than its way along
    the rod at rest. Below 0 it hangs slack at rest.

    Attributes:
        tendons: Along the rod.
        disc_radius: Of the discs that the links are, if they are, m; 0 of none.
    """

    physics: ClassVar[str] = "softform_core.bodies.tendon_rod.simulator"
    kind: Literal["tendon_rod"]
    tendons: Annotated[list[Tendon], Field(min_length=1)]
    disc_radius: NotNegative = 0.0

    @model_validator(mode="after")
    def _fits(self) -> "TendonRodBody":
        for name, tendon in zip(self.inputs, self.tendons, strict=True):
            first, last = tendon.sections or (1, self.sections)
            if not first <= last <= self.sections:
                raise ValueError(f"tendon {name} runs through sections {first} to {last} of {self.sections}")
            if self.planar and (tendon.place[1] != 0.0 or tendon.turns != 0.0):
                raise ValueError(f"tendon {name} leaves the plane in which the rod bends")
        return self

    @property
    def inputs(self) -> list[str]:
        """Names of the tendons: t1 … tk."""
        return [f"t{index + 1}" for index in range(len(self.tendons))]

    def sections_of(self, tendon: Tendon) -> range:
        """Sections that a tendon runs through, from 0."""
        first, last = tendon.sections or (1, self.sections)
        return range(first - 1, last)

    def skin(self) -> Any:
        """Its tube and discs."""
        from softform_core.bodies.swept import swept_skin

        rim = 0.5 * np.array([self.section.width, self.section.height])
        return swept_skin(self.sections, rim, self.disc_radius)

    @property
    def discs(self) -> float:
        """See `RodShape`."""
        return self.disc_radius

    def outlines(self) -> list[Outline]:
        """Where each tendon begins in the cross-section of its first section."""
        size = _DRAWN * self.section.width
        return [
            Outline(self.panel(self.sections_of(tendon)[0]), "ellipse", *tendon.place, size, size)
            for tendon in self.tendons
        ]
