"""Friction of cables in their sheaths and guides, as fields of a reality."""

from typing import Annotated

from pydantic import Field

from softform_core.robots.description import Description, NotNegative, Positive

__all__ = ["CableFriction"]


class CableFriction(Description):
    """Cables that rub; see `bodies.loads.stick_slip`.

    Attributes:
        coefficient: mu of the capstan's law.
        drag: Force that a guide holds without tension, N.
        give: Stiffness of a cable that sticks in a guide, N/m.
        run: Length of the sheath from the motor to the body, m.
        sheath: Angle by which it is bent, rad.
    """

    coefficient: Annotated[float, Field(ge=0.0, le=1.0)] = 0.3
    drag: NotNegative = 0.02
    give: Positive = 2e4
    run: Positive = 0.3
    sheath: NotNegative = 0.0
