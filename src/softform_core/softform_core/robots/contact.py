"""What a body touches, as a part of its description: obstacles about it, and itself."""

from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from softform_core.robots.description import Description, Place, Positive

__all__ = ["ITSELF", "AnyObstacle", "Ball", "Block", "Contact", "HalfSpace", "SolidMesh"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
ITSELF = "itself"
"""What a body touches where its own skin meets."""


class Ball(Description):
    """A ball; m."""

    shape: Literal["sphere"]
    name: Name
    centre: Place
    radius: Positive


class Block(Description):
    """A box; m.

    Attributes:
        size: Of its sides, before it is turned.
        turn: Rotation vector about its centre, rad.
    """

    shape: Literal["box"]
    name: Name
    centre: Place
    size: tuple[Positive, Positive, Positive]
    turn: Place = (0.0, 0.0, 0.0)


class HalfSpace(Description):
    """All that lies behind a plane; m.

    Attributes:
        point: Any point of the plane.
        normal: Towards where the body is, of any length.
    """

    shape: Literal["plane"]
    name: Name
    point: Place
    normal: Place

    @model_validator(mode="after")
    def _points_somewhere(self) -> "HalfSpace":
        if not np.linalg.norm(self.normal) > 0.0:
            raise ValueError(f"normal of plane '{self.name}' is zero; let it point to where the robot is")
        return self


class SolidMesh(Description):
    """A closed triangle mesh from a file.

    Attributes:
        file: OBJ, PLY or STL, in the robot's frame.
        unit: Its unit.
    """

    shape: Literal["mesh"]
    name: Name
    file: str
    unit: Literal["m", "mm"] = "m"


def _named_once(obstacles: "list[AnyObstacle]") -> "list[AnyObstacle]":
    names = [one.name for one in obstacles]
    if again := {name for name in names if names.count(name) > 1 or name == ITSELF}:
        raise ValueError(f"obstacles need names of their own, and none is '{ITSELF}'; got '{min(again)}'")
    return obstacles


AnyObstacle = Annotated[Ball | Block | HalfSpace | SolidMesh, Field(discriminator="shape")]


class Contact(Description):
    """What a body touches: it slides along it without friction, and passes through it nowhere.

    Attributes:
        obstacles: What stands about it, in the robot's frame.
        itself: Whether its skin also touches itself, such as folds that close.
        reach: Distance below which it is pushed back, m: to so much of a gap shapes are exact; 0.002 of the size of the
            body, if left out.
    """

    obstacles: Annotated[list[AnyObstacle], AfterValidator(_named_once), Field(max_length=64)] = []
    itself: bool = False
    reach: Positive | None = None

    @model_validator(mode="after")
    def _touches_something(self) -> "Contact":
        if not self.obstacles and not self.itself:
            raise ValueError("contact names neither obstacles nor itself; leave it out, or name what is touched")
        return self
