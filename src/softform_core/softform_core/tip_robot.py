"""Robots that are asked for the place of their tip: pneumatic rods, one section behind the other (paper 001)."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from softform_core.errors import SoftformError
from softform_core.pneumatic_robot import (
    Description,
    Finite,
    Material,
    NotNegative,
    Place,
    PneumaticRobot,
    Positive,
    check_within,
)

Layers = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
Outline = Literal["ellipse", "rectangle"]

TIP_MARKER = "tip"
"""Name of the motion-capture marker at the tip."""


class RodChamber(Description):
    """A straight chamber along a section: a hole in its cross-section, where `centre` is from the rod's axis, m."""

    centre: tuple[Finite, Finite]
    outline: Outline
    width: Positive
    height: Positive


class RodSection(Description):
    """A section of soft rod; SI units.

    Width lies along the cross-section's first axis, height along its second. `taper` is the size of the cross-section
    at the end over that at the beginning. `strain_limiter` is the axial stiffness, N, of a strip of cloth in the axis,
    which bends with the rod and hardly stretches.
    """

    length: Positive
    outline: Outline
    width: Positive
    height: Positive
    taper: Annotated[float, Field(gt=0.2, le=1.0)] = 1.0
    density: Positive
    material: Material
    strain_limiter: NotNegative = 0.0
    chambers: Annotated[list[RodChamber], Field(min_length=1)]


class RodDescription(Description):
    """Equal sections, each followed by a rigid link; SI units.

    `planar`: the rod rests along x and moves in the plane z = 0; width is across, in that plane. If not, it rests along
    z, width lies along x and height along y. `elements` are of each section.
    """

    planar: bool
    sections: Annotated[int, Field(ge=1, le=9)]
    section: RodSection
    link_length: NotNegative
    link_mass: NotNegative
    gravity: Place
    elements: Annotated[int, Field(ge=2, le=100)]


class TipNetworks(Description):
    """Widths of the hidden layers of N_fk and N_J (paper 001, Sec. III-D)."""

    forward_kinematics: Layers
    jacobian: Layers


class TipRobot(PneumaticRobot):
    """A chain of pneumatic rods with a marker at its tip.

    An actuation has m values, Pa: one for each chamber. If `antagonistic`, it has one for each pair of chambers,
    of which one is inflated at a time: +p inflates the first and -p the second (paper 001, Sec. III-A2).
    `segments` is N of Sec. III-B: values of each actuation in the simulated data, N^m samples in all.
    """

    rod: RodDescription
    antagonistic: bool = False
    segments: Annotated[int, Field(ge=2)]
    networks: TipNetworks

    @model_validator(mode="after")
    def _pairs(self) -> "TipRobot":
        if self.antagonistic and len(self.rod.section.chambers) % 2:
            raise ValueError("antagonistic chambers come in pairs: give an even number of them a section")
        if self.antagonistic and self.actuation.pressure_min != 0.0:
            raise ValueError("antagonistic chambers idle at pressure_min 0")
        return self

    @property
    def chambers(self) -> list[str]:
        """Names of the chambers, section by section: c1 … ck; of a pair s1+, s1-, s2+ …."""
        count = self.rod.sections * len(self.rod.section.chambers)
        if self.antagonistic:
            return [f"s{pair + 1}{side}" for pair in range(count // 2) for side in "+-"]
        return [f"c{index + 1}" for index in range(count)]

    @property
    def actuators(self) -> list[str]:
        """Names of the m actuations."""
        return [name[:-1] for name in self.chambers[::2]] if self.antagonistic else self.chambers

    @property
    def degrees_of_freedom(self) -> int:
        """Number m of actuations."""
        return len(self.actuators)

    @property
    def tip_dimensions(self) -> int:
        """Number n of the tip's coordinates."""
        return 2 if self.rod.planar else 3

    @property
    def actuation_min(self) -> NDArray[np.float64]:
        """Lowest value of each actuation, (m,) Pa."""
        return -self.actuation_max if self.antagonistic else self.pressure_min

    @property
    def actuation_max(self) -> NDArray[np.float64]:
        """Highest value of each actuation, (m,) Pa."""
        return np.full(self.degrees_of_freedom, self.actuation.pressure_max)

    def chamber_pressures(self, actuation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pressures (…, k) Pa of the chambers under an actuation (…, m) Pa.

        Raises:
            SoftformError: If the actuation has another number of values.
        """
        actuation = self._sized(actuation, self.degrees_of_freedom)
        if not self.antagonistic:
            return actuation
        sides = np.stack([np.maximum(actuation, 0.0), np.maximum(-actuation, 0.0)], axis=-1)
        return sides.reshape(*actuation.shape[:-1], -1)

    def actuation_of(self, pressures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Actuation (…, m) Pa of chamber pressures (…, k) Pa, as measured; of a pair, the difference.

        Raises:
            SoftformError: If there is another number of pressures.
        """
        pressures = self._sized(pressures, len(self.chambers))
        return pressures[..., ::2] - pressures[..., 1::2] if self.antagonistic else pressures

    def check_actuation(self, actuation: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `actuation` as an (m,) float array if this robot may be given it.

        Raises:
            SoftformError: On a wrong number of values, NaN or infinity, or a value outside the working range.
        """
        return check_within(self.name, "Actuation", self.actuators, actuation, self.actuation_min, self.actuation_max)

    def fingerprint(self) -> str:
        """Digest of all that decides simulated tips."""
        return self._digest({"rod", "antagonistic"})

    def _sized(self, values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        values = np.asarray(values, dtype=np.float64)
        if values.ndim == 0 or values.shape[-1] != size:
            raise SoftformError(
                f"Robot '{self.name}' takes {size} values here, got shape {values.shape}.",
                f"Its actuations are {', '.join(self.actuators)}; its chambers {', '.join(self.chambers)}.",
            )
        return values
