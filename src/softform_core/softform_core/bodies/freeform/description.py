"""The solid of free form as a description: joined parts, chambers cut out of them, and other loads."""

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from softform_core.arrays import Array
from softform_core.bodies.loads.description import GripLoad, LoadList
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description, Material, NotNegative, Place, Positive

MOST_CELLS = 200_000
"""Cubes with the edges of the tetrahedra that would fill the box around the body: more are taken for a mistake."""
IN_PLANE = 1e-6
"""Of the size: what lies this close to the highest or lowest point lies in one plane with it."""


class Box(Description):
    """A box along the axes between two opposite corners, m."""

    part: Literal["box"]
    begin: Place
    end: Place

    @model_validator(mode="after")
    def _is_possible(self) -> "Box":
        if not all(low < high for low, high in zip(self.begin, self.end, strict=True)):
            raise ValueError(f"begin {self.begin} must lie below end {self.end} in x, y and z")
        return self

    @property
    def bounds(self) -> Array:
        """Lower and upper corner, (2, 3) m."""
        return np.array([self.begin, self.end])


class Cylinder(Description):
    """A cylinder about the line from `begin` to `end`, or a cone if it ends with another radius; m."""

    part: Literal["cylinder"]
    begin: Place
    end: Place
    radius: Positive
    end_radius: Positive | None = None

    @model_validator(mode="after")
    def _is_possible(self) -> "Cylinder":
        if self.begin == self.end:
            raise ValueError(f"begin and end are the same place, {self.begin}")
        return self

    @property
    def bounds(self) -> Array:
        """Lower and upper corner, (2, 3) m."""
        begin, end = np.array(self.begin), np.array(self.end)
        across = np.sqrt(np.maximum(1.0 - ((end - begin) / np.linalg.norm(end - begin)) ** 2, 0.0))
        radii = self.radius, self.end_radius or self.radius
        discs = [(centre, radius * across) for centre, radius in zip((begin, end), radii, strict=True)]
        return np.array([np.min([c - r for c, r in discs], axis=0), np.max([c + r for c, r in discs], axis=0)])


class Ellipsoid(Description):
    """An ellipsoid with its half axes along x, y and z, m."""

    part: Literal["ellipsoid"]
    centre: Place
    radii: tuple[Positive, Positive, Positive]

    @property
    def bounds(self) -> Array:
        """Lower and upper corner, (2, 3) m."""
        return np.array([np.subtract(self.centre, self.radii), np.add(self.centre, self.radii)])


Part = Annotated[Box | Cylinder | Ellipsoid, Field(discriminator="part")]


def _some(parts: list[Part]) -> list[Part]:
    if not parts:
        raise ValueError("give at least one part")
    return parts


Parts = Annotated[list[Part], AfterValidator(_some)]
"""Parts that are one: their union."""


def bounds_of(parts: list[Part]) -> Array:
    """Lower and upper corner of all parts, (2, 3) m."""
    low, high = np.stack([part.bounds for part in parts], axis=1)
    return np.array([low.min(axis=0), high.max(axis=0)])


class MeshedBody(Body):
    """A soft body of tetrahedra with closed chambers, cables and grips, whatever its shape comes from; SI units.

    Attributes:
        loads: Cables and grips; their inputs follow the chambers'.
        rigid: What of the body is stiff, such as plates.
        density: kg/m^3.
        material: Law of the change of shape.
        poisson_ratio: At small strain; says how little the volume changes.
        fibre_modulus: Stiffness of fibres around the z axis, over the volume of what is soft, Pa.
        rigid_stiffness: Modulus of what is rigid over the material's.
        gravity: m/s^2; +z where it hangs.
        elements: `quadratic`, hyperelastic; or `corotational`, linear elements that turn, of a body that grips alone
            hold: coarser, and a shape in milliseconds.
    """

    loads: LoadList = []
    rigid: list[Part] = []
    density: Positive
    material: Material
    poisson_ratio: Annotated[float, Field(ge=0.3, le=0.499)] = 0.49
    fibre_modulus: NotNegative = 0.0
    rigid_stiffness: Annotated[float, Field(ge=1.0, le=1e4)] = 100.0
    gravity: Place
    elements: Annotated[
        Literal["quadratic", "corotational"], Field(exclude_if=lambda elements: elements == "quadratic")
    ] = "quadratic"

    @property
    @abstractmethod
    def chamber_count(self) -> int:
        """Number of closed chambers."""

    @property
    @abstractmethod
    def bounds(self) -> Array:
        """Lowest and highest corner at rest, (2, 3) m."""

    @property
    def inputs(self) -> list[str]:
        """Names of the chambers, c1 … ck, then of the loads' inputs."""
        chambers = [f"c{index + 1}" for index in range(self.chamber_count)]
        return [*chambers, *(name for load in self.loads for name in load.inputs)]

    @property
    def size(self) -> float:
        """Largest extent, m."""
        return float(self.extents.max())

    @property
    def extents(self) -> Array:
        """Extents at rest along x, y and z, (3,) m."""
        return np.asarray(np.ptp(self.bounds, axis=0))

    @property
    def extent(self) -> Array:
        """Extents at rest along x and y, (2,) m."""
        return self.extents[:2]

    @property
    def box(self) -> tuple[Array, Array]:
        """As large again to every side as at rest."""
        low, high = self.bounds
        return low - self.size, high + self.size

    def check_inputs(self, is_held: bool) -> None:
        """Reject what nothing would move, or nothing would hold.

        Raises:
            ValueError: If it has no input, two of one name, or neither a support nor a grip.
        """
        if not self.inputs:
            raise ValueError("give it a chamber or a load: nothing would move it")
        if len(set(self.inputs)) < len(self.inputs):
            raise ValueError(f"loads: a name repeats among the inputs {', '.join(self.inputs)}")
        if not is_held and not any(isinstance(load, GripLoad) for load in self.loads):
            raise ValueError("without a support it needs a grip, or nothing holds the body")
        if self.elements == "quadratic":
            return
        if is_held or self.chamber_count or not all(isinstance(load, GripLoad) for load in self.loads):
            raise ValueError("elements: corotational ones take grips alone: no support, no chambers and no cables")
        if self.fibre_modulus:
            raise ValueError("elements: corotational ones have no fibres; leave fibre_modulus out")


class FreeformBody(MeshedBody):
    """A soft body of any shape with closed chambers, cables and grips; SI units. It lies above z = 0.

    Attributes:
        kind: `freeform`.
        shape: The body with its chambers filled; what lies below z = 0 is cut off.
        chambers: Parts of each chamber, which lie within the body; named c1 … ck in this order.
        support: What holds it besides grips: `base`, all of it that lies in the plane z = 0, or nothing.
        mesh_size: Length of the edges of its tetrahedra, m.
        surface: Form of its surface, and the name of its patch: `sheet` is all its outside above z = 0, a `tube` lacks
            its flat end, the highest plane, too.
    """

    physics: ClassVar[str] = "softform_core.bodies.freeform.simulator"
    kind: Literal["freeform"]
    shape: Parts
    chambers: Annotated[list[Parts], Field(max_length=64)] = []
    support: Annotated[Literal["base", "none"], Field(exclude_if=lambda support: support == "base")] = "base"
    mesh_size: Positive
    surface: Literal["sheet", "tube"] = "tube"

    @model_validator(mode="after")
    def _can_be_meshed(self) -> "FreeformBody":
        low, high = self.bounds
        if bounds_of(self.shape)[0][2] > 0.0 or high[2] <= 0.0:
            raise ValueError("the shape must reach down to z = 0, where it is held, and lie above it")
        self.check_inputs(self.support != "none")
        for name, parts in zip(self.inputs, self.chambers, strict=False):
            begin, end = bounds_of(parts)
            if (begin <= low).any() or (end >= high).any():
                raise ValueError(f"chamber {name} leaves the body, which reaches from {low} to {high} m")
        if self.mesh_size > 0.5 * self.size:
            raise ValueError(f"mesh_size {self.mesh_size:g} m is too large for a body of {self.size:g} m")
        if np.prod((high - low) / self.mesh_size) > MOST_CELLS:
            raise ValueError(f"mesh_size {self.mesh_size:g} m is too small for a body of {self.size:g} m; enlarge it")
        return self

    @property
    def chamber_count(self) -> int:
        """Number of its chambers."""
        return len(self.chambers)

    @property
    def bounds(self) -> Array:
        """Lowest and highest corner, (2, 3) m, without what is cut off."""
        return np.maximum(bounds_of(self.shape), [-np.inf, -np.inf, 0.0])

    @property
    def patches(self) -> dict[str, bool]:
        """The outside above the base; of a tube without its end."""
        return {self.surface: self.surface == "tube"}

    def faces_of(self, patch: str, vertices: Array, faces: NDArray[np.integer]) -> NDArray[np.bool_]:
        """All faces; of a tube, but those in the highest plane."""
        if self.surface == "sheet":
            return super().faces_of(patch, vertices, faces)
        highest = vertices[:, 2].max() - IN_PLANE * self.size
        return np.asarray((vertices[faces, 2] < highest).any(axis=1))

    def outlines(self) -> list[Outline]:
        """The chambers from above, those at one height in one panel; then the loads."""
        chambers = [self._outline(parts) for parts in self.chambers]
        return chambers + [outline for load in self.loads for outline in load.outlines(self.size)]

    def _outline(self, parts: list[Part]) -> Outline:
        low, high = bounds_of(parts)
        (x, y, z), (width, length, _) = 0.5 * (low + high), high - low
        form = "rectangle" if all(isinstance(part, Box) for part in parts) else "ellipse"
        return Outline(f"chambers at z = {1000.0 * z:.0f} mm, from above", form, x, y, width, length)
