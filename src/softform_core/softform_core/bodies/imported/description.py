"""The imported body as a description."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, NoReturn

import numpy as np
from pydantic import Field, PrivateAttr

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import NotNegative, Positive

if TYPE_CHECKING:
    from softform_core.robots.actuation_map import ActuationMap
    from softform_core.robots.robot import Robot


class Owner(NamedTuple):
    """What an imported body knows of its robot: name, fingerprint, actuation at rest (m,), and actuation map."""

    name: str
    fingerprint: str
    rest: tuple[float, ...]
    actuation_map: "ActuationMap"


class ImportedBody(Body):
    """A body without physics: its shapes come from elsewhere, by `./softform import`. SI units.

    Its simulator knows the imported shapes and what lies between them.

    Attributes:
        inputs_count: Number k of inputs that actuators drive.
        width: Extent at rest along x, m.
        length: Extent at rest along y, m.
        height: Extent at rest along z, m.
        surface: Form of its surface, and the name of its patch: a sheet, or a tube that is open at two ends.
        tip_dimensions: Coordinates in which the tip moves: x, y of a planar body, else x, y, z.
    """

    physics: ClassVar[str] = "softform_core.bodies.imported.simulator"
    kind: Literal["imported"]
    inputs_count: Annotated[int, Field(ge=1, le=64)]
    width: Positive
    length: Positive
    height: NotNegative = 0.0
    surface: Literal["sheet", "tube"] | None = None
    tip_dimensions: Literal[2, 3] = 3
    _owner: Owner | None = PrivateAttr(None)

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs: c1 … ck."""
        return [f"c{index + 1}" for index in range(self.inputs_count)]

    @property
    def size(self) -> float:
        """Largest of the three extents, m."""
        return max(self.width, self.length, self.height)

    @property
    def extent(self) -> Array:
        """Width and length, (2,) m."""
        return np.array([self.width, self.length])

    @property
    def box(self) -> tuple[Array, Array]:
        """That of a sheet; of a tube, half its size again to every side of the origin."""
        if self.surface != "tube":
            return super().box
        reach = np.full(3, 1.5 * self.size)
        return -reach, reach

    @property
    def patches(self) -> dict[str, bool]:
        """Its surface, if it has one."""
        return {} if self.surface is None else {self.surface: self.surface == "tube"}

    @property
    def frames(self) -> dict[str, int]:
        """The tip."""
        return {"tip": self.tip_dimensions}

    def outlines(self) -> list[Outline]:
        """The inputs in a row, as nothing says where they lie."""
        side = self.width / self.inputs_count
        return [
            Outline("inputs in their order", "rectangle", side * (index + 0.5) - self.width / 2.0, 0.0, side, side)
            for index in range(self.inputs_count)
        ]

    @property
    def is_simulated(self) -> bool:
        """No: between its imported shapes it is interpolated."""
        return False

    def join(self, robot: "Robot") -> None:
        """Learn whose data are its own."""
        rest = tuple(robot.rest_actuation.tolist())
        self._owner = Owner(robot.name, robot.fingerprint(), rest, robot.actuation_map)

    @property
    def owner(self) -> Owner:
        """The robot that it is the body of.

        Raises:
            SoftformError: If it is described alone.
        """
        if self._owner is None:
            raise SoftformError("This imported body is no robot's, so it has no data.", "Ask the body of a robot.")
        return self._owner

    def sampled(self) -> NoReturn:
        """Rejected.

        Raises:
            SoftformError: Always.
        """
        raise SoftformError(
            "The body is imported: only data of it are known, and it cannot be simulated.",
            "Bring its samples: ./softform import shapes (or tips) TABLE --robot ROBOT.",
        )
