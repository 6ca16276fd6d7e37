"""A user's own mesh as a description: files of the body and its cavities, planes that hold it, and its surface."""

from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr, field_validator, model_validator

from softform_core.arrays import Array
from softform_core.bodies.freeform.description import IN_PLANE, MeshedBody
from softform_core.bodies.mesh.source import SURFACES, VOLUMES, Cavity, states_unit
from softform_core.robots.body import Outline
from softform_core.robots.description import Description, Place, Positive
from softform_core.units import AnyUnit

if TYPE_CHECKING:
    from softform_core.bodies.mesh.files import BodyFile

_IN_PLANE = 1e-4
"""Of the size: a node so little above the plane of a support is held; what programs export is rounded."""


class Plane(Description):
    """A plane through a place, m, that looks along its normal, of any length."""

    at: Place
    normal: Place = (0.0, 0.0, 1.0)

    @field_validator("normal")
    @classmethod
    def _looks_somewhere(cls, normal: Place) -> Place:
        if not np.linalg.norm(normal) > 0.0:
            raise ValueError("a normal needs a length")
        return normal

    def heights(self, points: Array) -> Array:
        """Heights (…) m of points (…, 3) above it."""
        return np.asarray((points - self.at) @ (np.array(self.normal) / np.linalg.norm(self.normal)))


class MeshBody(MeshedBody):
    """A soft body whose shape is a file, with closed chambers, cables and grips; SI units.

    Attributes:
        kind: `mesh`.
        file: A closed surface or a mesh of tetrahedra; its path from the folder of the description.
        unit: Of the file; files of CAD state their own.
        origin: Place in the file that becomes the origin, m.
        up: Axis of the file that becomes z.
        cavities: Its chambers; named c1 … ck in this order.
        supports: What lies in one of these planes or behind it is held.
        mesh_size: Length of the edges of its tetrahedra, m; none of a mesh of tetrahedra, which is taken as it is.
        surface: Form of its surface, and the name of its patch: `sheet` is all its outside above the supports, with
            one rim; a `tube` has two. Without one it is asked for its tip alone. `whole` is all the outside of what
            grips alone hold, such as an object between two grippers.
        end: Plane in which a tube ends; its flat end, the highest plane, if left out.
        tip: A place of the material, m, where it is asked for a tip.
    """

    physics: ClassVar[str] = "softform_core.bodies.mesh.simulator"
    kind: Literal["mesh"]
    file: str
    unit: AnyUnit | None = None
    origin: Place = (0.0, 0.0, 0.0)
    up: Literal["x", "y", "z", "-x", "-y", "-z"] = "z"
    cavities: Annotated[list[Cavity], Field(max_length=64)] = []
    supports: list[Plane] = [Plane(at=(0.0, 0.0, 0.0))]
    mesh_size: Positive | None = None
    surface: Literal["sheet", "tube", "none", "whole"] = "tube"
    end: Plane | None = None
    tip: Place | None = None
    _folder: Path = PrivateAttr(Path())
    _digests: dict[str, str] = PrivateAttr({})

    def model_post_init(self, context: Any) -> None:
        """Find the files from the folder that `context` names, the current one if it names none."""
        self._folder = Path((context or {}).get("folder", "")).absolute()

    @model_validator(mode="after")
    def _is_possible(self) -> "MeshBody":
        self.check_inputs(bool(self.supports))
        if self.surface == "none" and self.tip is None:
            raise ValueError("surface: none needs a tip, or nothing of it can be asked for")
        if self.surface == "whole" and self.supports:
            raise ValueError("surface: whole is of a body that grips alone hold: give supports: []")
        if self.elements == "corotational" and self.surface != "whole":
            raise ValueError("elements: corotational ones need surface: whole")
        if self.surface != "tube" and self.end is not None:
            raise ValueError("end: a tube alone has one; leave it out")
        for file, unit in self._files():
            self._check_file(file, unit)
        if self.is_surely_surface and self.mesh_size is None:
            raise ValueError("mesh_size: give the length of the tetrahedra's edges, m")
        return self

    def _files(self) -> list[tuple[str, AnyUnit | None]]:
        """Each file and its unit, the body's first."""
        files: list[tuple[str, AnyUnit | None]] = [(self.file, self.unit)]
        for cavity in self.cavities:
            if cavity.file is not None:
                files.append((cavity.file, cavity.unit or (None if states_unit(cavity.file) else self.unit)))
        return files

    def _check_file(self, file: str, unit: AnyUnit | None) -> None:
        """See that a file is there, of a known type and unit, and note its digest."""
        path, kind = self.path_of(file), Path(file).suffix.lower()
        if kind not in (*SURFACES, *VOLUMES):
            known = ", ".join((*SURFACES, *VOLUMES))
            raise ValueError(f"file {file} is not of a type that is read; export it as one of: {known}")
        if not path.is_file():
            raise ValueError(f"file {path} does not exist; its path begins at the folder of the description")
        if states_unit(file) and unit is not None:
            raise ValueError(f"unit: {file} states its own; leave it out")
        if not states_unit(file) and unit is None:
            from softform_core.bodies.mesh.files import in_either_unit

            raise ValueError(f"unit: {in_either_unit(path)}")
        try:
            self._digests[file] = sha256(path.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise ValueError(f"file {path} cannot be read: {error.strerror or error}") from error

    @property
    def is_surely_surface(self) -> bool:
        """Whether its file can hold no tetrahedra."""
        return Path(self.file).suffix.lower() in SURFACES

    def path_of(self, file: str) -> Path:
        """Where one of its files lies."""
        from softform_core.shapes.read import on_disk

        return on_disk(self._folder / file)

    @property
    def contents(self) -> dict[str, str]:
        """Digests of its files."""
        return self._digests

    @property
    def chamber_count(self) -> int:
        """Number of its cavities."""
        return len(self.cavities)

    @cached_property
    def read(self) -> "BodyFile":
        """What its files hold, m, where the description puts it; checked.

        Raises:
            SoftformError: As `files.read_body`.
        """
        from softform_core.bodies.mesh.files import read_body

        return read_body(self)

    def prepare(self) -> None:
        """Read the files; errors as of `read`."""
        _ = self.read

    @property
    def bounds(self) -> Array:
        """Lowest and highest corner, (2, 3) m."""
        return self.read.bounds

    @property
    def held_within(self) -> float:
        """How little above the plane of a support is held, m."""
        return _IN_PLANE * self.size

    @property
    def patches(self) -> dict[str, bool]:
        """Its surface, if it has one."""
        return {} if self.surface in ("none", "whole") else {self.surface: self.surface == "tube"}

    @property
    def frames(self) -> dict[str, int]:
        """The tip, if it has one and no surface that has it."""
        return {"tip": 3} if self.surface == "none" else {}

    @property
    def goes_around(self) -> bool:
        """It looks to all sides, whatever its patch is."""
        return True

    def faces_of(self, patch: str, vertices: Array, faces: NDArray[np.integer]) -> NDArray[np.bool_]:
        """All faces; of a tube those before its end, or but those in the highest plane."""
        if self.surface != "tube":
            return super().faces_of(patch, vertices, faces)
        if self.end is not None:
            return np.asarray(self.end.heights(vertices[faces].mean(axis=1)) < 0.0)
        highest = vertices[:, 2].max() - IN_PLANE * self.size
        return np.asarray((vertices[faces, 2] < highest).any(axis=1))

    def outlines(self) -> list[Outline]:
        """The cavities from above, then the loads."""
        low, high = self.bounds
        panel = f"cavities of {Path(self.file).name}, from above"
        outlines = []
        for wall in self.read.cavity_bounds:
            (x, y, _), (width, length, _) = wall.mean(axis=0), np.ptp(wall, axis=0)
            outlines.append(Outline(panel, "ellipse", x, y, width, length))
        return outlines + [outline for load in self.loads for outline in load.outlines(self.size)]
