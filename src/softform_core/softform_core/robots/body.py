"""What a kind of body gives to the rest of the system. Nothing outside a body's own folder knows its kind.

A package adds a kind by an entry point of the group `softform.bodies`: `kind = module:ClassDerivedFromBody`.
"""

from abc import abstractmethod
from functools import cache
from importlib import import_module
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.plugins import load_plugin
from softform_core.robots.contact import Contact
from softform_core.robots.description import Description

__all__ = ["Body", "Outline", "body_class"]

_DEPTH_BELOW, _HEIGHT_ABOVE = 0.25, 0.5  # of the longer side: a soft sheet sags, and bulges

_CONTACT = "softform_core.contact.touching_body"


class Outline(NamedTuple):
    """Where one input of a body lies, for pictures: an ellipse or rectangle in one panel; m."""

    panel: str
    shape: str
    x: float
    y: float
    width: float
    height: float


class Body(Description):
    """The description of a body; each kind is a subclass, found by the entry-point group `softform.bodies`.

    Modules of bodies import nothing heavy at their top: the driver reads descriptions, too.

    Attributes:
        physics: Module that is imported once shapes are asked for. It has functions `simulator(body)` and
            `sampled(body)`, each as the method of the same name says; a kind may instead have methods of its own.
            `batched(body, device)` is there where many samples can be solved at once on a GPU.
        realities: Module with functions `real_simulator(body, reality)` and `drawn_reality(body, draw)`, and a type
            `Reality`, likewise; that of its physics, if nothing is said.
        pictures: Module with a function `draw(robot, body)`, if the kind has a picture of its own.
        contact: What the body touches, in its simulator and in every reality; nothing, if left out.
    """

    physics: ClassVar[str] = ""
    realities: ClassVar[str] = ""
    pictures: ClassVar[str] = ""
    kind: str
    contact: Annotated[Contact | None, Field(exclude_if=lambda contact: contact is None)] = None

    @property
    @abstractmethod
    def inputs(self) -> list[str]:
        """Names of the k inputs that the actuators drive, such as chambers."""

    @property
    @abstractmethod
    def size(self) -> float:
        """Largest extent of the resting body, m."""

    @property
    def extent(self) -> Array:
        """Size of the resting body along x and y, (2,) m; by default its largest extent in both."""
        return np.array([self.size, self.size])

    @property
    def box(self) -> tuple[Array, Array]:
        """Lower and upper corner, (3,) m each, around every shape; by default those of a sheet in z = 0 that bulges."""
        half, longer = self.extent / 2.0, float(self.extent.max())
        return np.append(-half, -_DEPTH_BELOW * longer), np.append(half, _HEIGHT_ABOVE * longer)

    @property
    def patches(self) -> dict[str, bool]:
        """Names of the patches of its surface and whether each is a tube, open at two ends; none by default."""
        return {}

    def faces_of(self, patch: str, vertices: Array, faces: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which of the faces (F, 3) of its resting mesh (V, 3) m belong to a patch, (F,); by default all."""
        return np.ones(len(faces), dtype=bool)

    @property
    def goes_around(self) -> bool:
        """Whether its surface goes around and looks to all sides, as that of an arm or a torso; a sheet looks to +z.

        By default that of a body with a tube among its patches does.
        """
        return any(self.patches.values())

    @property
    def frames(self) -> dict[str, int]:
        """Named points and how many coordinates each moves in (2 of a planar body, else 3); none by default."""
        return {}

    @property
    def has_centre_line(self) -> bool:
        """Whether its simulator tells a centre line (`simulation.simulated_body.LinedBody`)."""
        return False

    @property
    def held(self) -> "Body | None":
        """The body of an object that this one holds, and whose shape is what is asked for; None of most."""
        return None

    @abstractmethod
    def outlines(self) -> list[Outline]:
        """Where each input lies, in the order of `inputs`."""

    def picture(self, robot: Any) -> Any:
        """A figure (matplotlib) of a `Robot` with this body, at rest, at its corners and in section, or None.

        By default that of `pictures`; without one `./softform picture` draws what it draws of any surface.
        """
        return import_module(self.pictures).draw(robot, self) if self.pictures else None

    @property
    def is_unrolled(self) -> bool:
        """Whether outlines lie on a surface around the z axis, unrolled: x along it from the front, y upwards."""
        return False

    @property
    def is_simulated(self) -> bool:
        """Whether it has physics; a body of which only data are known has none."""
        return True

    @property
    def contents(self) -> dict[str, str]:
        """Digests, by name, of files that decide its shapes beside its fields; none by default."""
        return {}

    def prepare(self) -> None:
        """Read what it would else read when it is first asked for its size: nodes that answer in time do so first."""

    def join(self, robot: Any) -> None:
        """Become the body of a `Robot`; one of which only data are known finds them by this."""

    @classmethod
    def _physics(cls) -> Any:
        if not cls.physics:
            raise TypeError(f"{cls.__name__} names no module of its physics, and has no method of its own for this")
        return import_module(cls.physics)

    @classmethod
    def _realities(cls) -> Any:
        return import_module(cls.realities) if cls.realities else cls._physics()

    def simulator(self) -> Any:
        """Its model for the simulation, a `simulation.simulated_body.SimulatedBody`."""
        return self._touching(self._physics().simulator(self))

    def _touching(self, body: Any) -> Any:
        """A simulator with what it touches."""
        if self.contact is None:
            return body
        return import_module(_CONTACT).touching(body, self.contact, self.goes_around)

    def sampled(self) -> Any:
        """Its simulator as data sets use it, a `simulation.sampled_body.SampledBody`."""
        if self.contact is None:
            return self._physics().sampled(self)
        return import_module(_CONTACT).sampled(self.simulator())

    def batched(self, device: str) -> Any:
        """As `sampled`, many samples at once on a device: `cpu`, or `cuda:0` and so on.

        Raises:
            SoftformError: If this kind of body cannot, what it needs is not installed, or there is no such device.
        """
        if self.contact is not None:
            raise SoftformError("Contact is not simulated on a device.", "Leave out --device.")
        batched = getattr(self._physics(), "batched", None) if self.physics else None
        if batched is None:
            raise SoftformError(f"Bodies of kind '{self.kind}' are not simulated on a device.", "Leave out --device.")
        return batched(self, device)

    @classmethod
    def reality_type(cls) -> type[Description]:
        """Fields by which a reality of this kind of body may differ from the simulator."""
        found: type[Description] = cls._realities().Reality
        return found

    def real_simulator(self, reality: Any) -> Any:
        """As `simulator`, with the differences of a reality (of `reality_type`): the body on the virtual rig."""
        return self._touching(self._realities().real_simulator(self, reality))

    def drawn_reality(self, draw: np.random.Generator) -> Description:
        """A reality (of `reality_type`) at random, from the distribution of this kind of body."""
        found: Description = self._realities().drawn_reality(self, draw)
        return found

    def skin(self) -> Any:
        """The skin that its simulator's stations carry, a `bodies.swept.Skin` in m, if it is a slender body with one.

        The simulator then is a `simulation.simulated_body.SweptBody`.
        """
        return None

    def shell(self) -> tuple[Array, NDArray[np.int64]] | None:
        """Points (V, 3) m and outward triangles (F, 3) of its outside at rest, if it has bones and no surface.

        It is shown, picked and dragged as a skin on those bones; None by default.
        """
        return None

    @property
    def second_model(self) -> "Body | None":
        """The same body with another simulator, independent of its own, for studies; none by default."""
        return None

    @property
    def alike_inputs(self) -> NDArray[np.int64]:
        """How inputs that act alike see their section of the body, (r, c) indices; none, (0, 0), by default.

        A body of equal sections, each of which deforms by its own c inputs, gives a row for each order in which turned
        and mirrored sections look the same: first an input, then the others of its section as seen from there. Each
        input that is alike comes first in as many rows.
        """
        return np.zeros((0, 0), dtype=np.int64)

    def symmetric_images(self, actuation: Array, control_points: Array) -> list[tuple[Array, Array]]:
        """Images of shapes, (n, k) and (n, rows, columns, 3) mm, under the body's symmetries; first they themselves."""
        return [(actuation, control_points)]


@cache
def body_class(kind: str) -> type[Body]:
    """The class of a kind.

    Raises:
        SoftformError: If there is no such kind, or its package cannot be loaded.
    """
    found, origin = load_plugin("softform.bodies", kind, "body")
    if not (isinstance(found, type) and issubclass(found, Body)):
        raise SoftformError(
            f"The body '{kind}' of {origin} is not a class derived from Body.", "See docs/extending.md."
        )
    return found
