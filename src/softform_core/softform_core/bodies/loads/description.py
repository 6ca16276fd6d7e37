"""Cables and grips as parts of a description."""

from collections import Counter
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from softform_core.robots.body import Outline
from softform_core.robots.description import Description, Place, Positive

_DRAWN = 0.05
"""Size of a cable in pictures, of the body's."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
Run = Annotated[list[Place], Field(min_length=2)]


class CableLoad(Description):
    """A cable through points of the body; SI units. It is straight between them, and slides through them freely.

    Attributes:
        name: Of its input: the pull of its motor, m, or its tension, N.
        runs: Points of each run, in their order along the cable. Between runs it lies in a Bowden tube.
        stiffness: Axial stiffness EA, N, of a cable that is pulled; left out, its tension is the input.
    """

    load: Literal["cable"]
    name: Name
    runs: Annotated[list[Run], Field(min_length=1)]
    stiffness: Positive | None = None

    @model_validator(mode="after")
    def _runs_somewhere(self) -> "CableLoad":
        for run in self.runs:
            if any(one == other for one, other in zip(run, run[1:], strict=False)):
                raise ValueError(f"cable '{self.name}' has the same point twice in a row")
        return self

    @property
    def inputs(self) -> list[str]:
        """Its name."""
        return [self.name]

    def outlines(self, size: float) -> list[Outline]:
        """Where it ends, from above, in a body of this size, m."""
        x, y, _ = self.runs[-1][-1]
        return [Outline("cables, from above", "ellipse", x, y, _DRAWN * size, _DRAWN * size)]


class GripLoad(Description):
    """A gripper that holds what of the body lies in a box, m; the middle of the box is the centre of its pose.

    Attributes:
        name: Of its six inputs, NAME_x, NAME_y, NAME_z in m and NAME_rx, NAME_ry, NAME_rz, a rotation vector in rad,
            all relative to the grasp.
        begin: Lowest corner.
        end: Highest corner.
    """

    load: Literal["grip"]
    name: Name
    begin: Place
    end: Place

    @model_validator(mode="after")
    def _is_possible(self) -> "GripLoad":
        if not all(low < high for low, high in zip(self.begin, self.end, strict=True)):
            raise ValueError(f"begin {self.begin} of grip '{self.name}' must lie below end {self.end} in x, y and z")
        return self

    @property
    def inputs(self) -> list[str]:
        """Its six channels."""
        return [f"{self.name}_{channel}" for channel in ("x", "y", "z", "rx", "ry", "rz")]

    def outlines(self, size: float) -> list[Outline]:
        """The box, from above, for each channel."""
        (x, y, z), (width, length, _) = (
            0.5 * np.add(self.begin, self.end),
            np.subtract(self.end, self.begin),
        )
        panel = f"grip at z = {1000.0 * z:.0f} mm, from above"
        return [Outline(panel, "rectangle", float(x), float(y), float(width), float(length))] * len(self.inputs)


def _named_once(loads: list["CableLoad | GripLoad"]) -> list["CableLoad | GripLoad"]:
    again = [name for name, count in Counter(load.name for load in loads).items() if count > 1]
    if again:
        raise ValueError(f"two loads are named '{again[0]}'")
    return loads


AnyLoad = Annotated[CableLoad | GripLoad, Field(discriminator="load")]
LoadList = Annotated[
    list[AnyLoad], AfterValidator(_named_once), Field(max_length=64, exclude_if=lambda loads: not loads)
]
"""Loads of a body besides its chambers; a body without any is described, and known, as one of before there were."""
