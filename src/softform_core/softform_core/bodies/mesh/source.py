"""What a description says of the files of a body: which they are, in which unit, and where its cavities are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pydantic import model_validator

from softform_core.robots.description import Description, Place
from softform_core.units import AnyUnit

SURFACES = (".stl", ".obj", ".ply", ".step", ".stp")
"""Files of closed surfaces; those of CAD state their unit."""
VOLUMES = (".vtk", ".vtu", ".msh")
"""Files that may hold tetrahedra, or triangles."""


def states_unit(file: str) -> bool:
    """Whether files of this type say their unit: those of CAD do."""
    return Path(file).suffix.lower() in (".step", ".stp")


class Cavity(Description):
    """A closed surface within the body: that of a file of its own, or the one around a place.

    Attributes:
        file: Its file; that of the body, if left out.
        unit: Of that file; the body's, if left out.
        at: A place within it, m; of a file that has one closed surface it is not needed.
    """

    file: str | None = None
    unit: AnyUnit | None = None
    at: Place | None = None

    @model_validator(mode="after")
    def _is_somewhere(self) -> "Cavity":
        if self.file is None and self.at is None:
            raise ValueError("a cavity needs a file of its own, or a place within it (at)")
        if self.file is None and self.unit is not None:
            raise ValueError("the unit of a cavity is that of its own file")
        return self


class Source(Protocol):
    """A description that names files; `MeshBody` says what each of these is."""

    @property
    def file(self) -> str:
        """File of the body."""

    @property
    def unit(self) -> AnyUnit | None:
        """Its unit."""

    @property
    def origin(self) -> Place:
        """Place in it that becomes the origin, m."""

    @property
    def up(self) -> str:
        """Its axis that becomes z, such as `-x`."""

    @property
    def cavities(self) -> Sequence[Cavity]:
        """The chambers."""

    @property
    def mesh_size(self) -> float | None:
        """Length of the edges of tetrahedra to be made, m."""

    def path_of(self, file: str) -> Path:
        """Where a file of it is."""
