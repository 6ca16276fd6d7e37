"""A robot: one description that says what it is, what drives it, and what is asked of it."""

import hashlib
import json
from collections.abc import Sequence
from itertools import combinations
from math import dist
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr, SerializeAsAny, ValidationInfo, field_validator, model_validator

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots.actuation_map import AnyMap, Identity
from softform_core.robots.actuators import UNITS, Actuators, Quantity, check_within, each, in_words
from softform_core.robots.body import Body, body_class
from softform_core.robots.description import Description, Place, SurfaceDescription, SurfacePoint
from softform_core.robots.devices import ActuatorTolerances, Device, Tolerance, tolerances_of_each
from softform_core.robots.outputs import (
    CENTRE_LINE,
    TIP,
    Frame,
    Line,
    LineLearning,
    SurfaceLearning,
    TipLearning,
    TubeLine,
)

if TYPE_CHECKING:
    from softform_core.surface.patch_set import ParametrisedSurface, PatchSet

INTERFACE_VERSION = 1
"""Of what the messages between commander and driver mean; another one for each change of that."""

_MARKERS_APART = 0.005
"""m, at least, between two base markers: nearer ones are not told apart."""

USUAL_NAMESPACE = "softform"
"""In which launch files, commands and clients have a stack where none is given."""

_OTHER_FRAMES = ("base_link", "scanner", "mocap")
"""Frames of a laboratory that the robot's named points stand beside on /tf."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_\-]*$")]


class Robot(Description):
    """One robot of any body.

    A robot is asked for shapes of its surfaces and for places of their points, or for the place of a frame. An
    *actuation* has m values, one for each degree of freedom; the `actuation_map` turns it into k commands, one for each
    actuator.

    Attributes:
        name: Folder of its models and data.
        title: Title in reports.
        source: Origin of its numbers.
        body: Body; its `kind` chooses the class.
        surfaces: Patches of the body that are measured and asked for.
        networks: Networks that learn its surfaces.
        frames: Named points of the body that are asked for: where on a surface they are, or, without surfaces, how
            their kinematics are learned.
        centre_line: How its centre line is predicted: by a tube of its surfaces, or, without surfaces, learned for
            itself beside the tip; None if it is not asked for.
        devices: Board and channel of each actuator.
        given_tolerances: Tolerances of the driver that are not the usual ones (`tolerances` of the description): one
            value for all actuators, or a list with one for each.
        markers: Number of motion-capture markers on its surfaces.
        base_markers: Motion-capture markers on its rigid frame, name -> position in the robot's frame, m: by them the
            captured markers come into that frame.
    """

    name: Name
    title: str
    source: str
    body: SerializeAsAny[Body]
    drive: Annotated[Actuators, Field(alias="actuators")]
    actuation_map: AnyMap = Identity()
    devices: Annotated[list[Device], Field(min_length=1)]
    surfaces: list[SurfaceDescription] = []
    networks: SurfaceLearning = SurfaceLearning()
    frames: dict[Name, Frame] = {}
    centre_line: Line | None = None
    given_tolerances: Annotated[dict[Tolerance, float | list[float]], Field(alias="tolerances")] = {}
    markers: Annotated[int, Field(ge=4, le=2000)] = 34
    base_markers: dict[str, Place] = {}
    _path: str = PrivateAttr("")
    _space: str = PrivateAttr("")

    @field_validator("body", mode="before")
    @classmethod
    def _of_its_kind(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, Body):
            return given
        if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
            raise ValueError("a body needs its kind")
        try:
            kind = body_class(given["kind"])
        except SoftformError as error:
            raise ValueError(str(error)) from error
        return kind.model_validate(given, context=info.context)

    @model_validator(mode="after")
    def _consistent(self) -> "Robot":
        count = len(self.body.inputs)
        if wrong := self.drive.wrong_counts(count):
            raise ValueError(f"actuators.{wrong[0]} must have {count} entries, one for each of {self.body.inputs}")
        if not np.isin(self.body.alike_inputs, np.arange(count)).all():
            raise ValueError(f"alike_inputs of the body '{self.body.kind}' must be places of its {count} inputs")
        if complaint := self.actuation_map.wrong(self.actuator_min, self.actuator_max, self.actuator_units):
            raise ValueError(f"actuation_map: {complaint}")
        self._check_safe()
        if len({device.name for device in self.devices}) < len(self.devices):
            raise ValueError(f"devices: names must differ, got {', '.join(device.name for device in self.devices)}")
        served = [name for device in self.devices for name in self.actuators_on(device)]
        if sorted(served) != sorted(self.actuators):
            raise ValueError(f"devices must serve each of {', '.join(self.actuators)} once")
        for device in self.devices:
            needed = len(self.actuators_on(device))
            if len(device.channels) != needed:
                raise ValueError(f"devices: '{device.name}' must name {needed} different channels")
        for surface in self.surfaces:
            if surface.patch not in self.body.patches:
                known = ", ".join(self.body.patches) or "none"
                raise ValueError(f"surfaces: the body has no patch '{surface.patch}' (known: {known})")
        if len({surface.patch for surface in self.surfaces}) < len(self.surfaces):
            raise ValueError("surfaces: each patch may be named once")
        for name, frame in self.frames.items():
            self._check_frame(name, frame)
        self._check_line()
        _ = self.actuator_tolerances
        for (one, place), (other, beside) in combinations(self.base_markers.items(), 2):
            if (distance := dist(place, beside)) < _MARKERS_APART:
                raise ValueError(
                    f"base_markers: '{one}' and '{other}' are {1e3 * distance:.1f} mm apart; place them "
                    f"{1e3 * _MARKERS_APART:g} mm apart at least"
                )
        if not self.surfaces and not self.frames:
            raise ValueError("name a surface or a frame that the robot can be asked for")
        self.body.join(self)
        return self

    def _check_safe(self) -> None:
        """Within the range; a displacement may lie below it, where a tendon is slack."""
        limits = zip(self.safe, self.actuator_min, self.actuator_max, strict=True)
        for name, quantity, (safe, low, high) in zip(self.actuators, self.actuator_quantities, limits, strict=True):
            if safe > high or (safe < low and quantity != "displacement"):
                unit = UNITS[quantity]
                raise ValueError(
                    f"actuators.safe {safe:g} {unit} of {name} is outside {low:g} … {high:g} {unit}: choose one within"
                )

    def _check_frame(self, name: str, frame: TipLearning | SurfacePoint) -> None:
        measured = [surface.patch for surface in self.surfaces]
        if isinstance(frame, SurfacePoint):
            if frame.patch not in measured:
                known = ", ".join(measured) or "none"
                raise ValueError(f"frames: '{name}' lies on '{frame.patch}', which is no surface (known: {known})")
        elif measured:
            raise ValueError(f"frames: '{name}' needs the patch that it lies on, as the robot has surfaces")
        elif name not in self.body.frames:
            known = ", ".join(self.body.frames) or "none"
            raise ValueError(f"frames: the body has no frame '{name}' (known: {known})")
        if name in _OTHER_FRAMES:
            raise ValueError(f"frames: '{name}' is the name of another frame; choose a name of its own")

    def _check_line(self) -> None:
        if CENTRE_LINE in (*self.body.patches, *self.frames):
            raise ValueError(f"'{CENTRE_LINE}' is the name of the centre line; call patch or frame by another")
        if self.centre_line is None:
            return
        measured = [surface.patch for surface in self.surfaces]
        if isinstance(self.centre_line, TubeLine):
            if self.centre_line.patch not in measured or not self.body.patches[self.centre_line.patch]:
                tubes = ", ".join(name for name in measured if self.body.patches[name]) or "none"
                raise ValueError(f"centre_line: '{self.centre_line.patch}' is no tube of its surfaces (known: {tubes})")
        elif measured:
            raise ValueError("centre_line: name the patch, a tube, whose middle it is, as the robot has surfaces")
        elif not self.body.has_centre_line or TIP not in self.frames:
            raise ValueError("centre_line: it is learned beside a tip, of a body whose simulator tells it")

    @property
    def given_as(self) -> str:
        """What commands call it by: its name, or the path of a description outside `config/robots`."""
        return self._path or self.name

    @property
    def first_command(self) -> str:
        """The command that brings what N_fk learns from: shapes or tips, simulated here or elsewhere."""
        if self.body.is_simulated:
            return f"./softform simulate --robot {self.given_as}"
        what = "shapes" if self.surfaces else "tips"
        return f"./softform import {what} TABLE --robot {self.given_as} --unit mm --actuation-unit kPa"

    @property
    def base_frame(self) -> str:
        """The robot's frame among those of a laboratory: what is in it needs no transformation."""
        return self.frame_of("base_link")

    def frame_of(self, device: str) -> str:
        """Name of the frame of `scanner`, `mocap` or a tip among those of a laboratory."""
        return f"{self._space}{self.name}/{device}"

    def in_namespace(self, namespace: str) -> "Robot":
        """The robot as a stack in a namespace has it: but for the usual one's, its frames begin with the namespace.

        So that robots of one description, each in a namespace of its own, stand beside each other on one /tf.
        """
        self._space = "" if namespace.strip("/") in ("", USUAL_NAMESPACE) else f"{namespace.strip('/')}/"
        return self

    @property
    def actuators(self) -> list[str]:
        """Names of the k actuators."""
        return self.drive.names or self.body.inputs

    @property
    def actuator_quantities(self) -> list[Quantity]:
        """What each actuator is commanded in."""
        given = self.drive.quantity
        return given if isinstance(given, list) else [given] * len(self.actuators)

    @property
    def actuator_units(self) -> list[str]:
        """SI unit of each actuator's command."""
        return [UNITS[quantity] for quantity in self.actuator_quantities]

    @property
    def actuation_units(self) -> list[str]:
        """SI unit of each degree of freedom."""
        return self.actuation_map.units_of(self.actuator_units)

    @property
    def actuation_unit(self) -> str:
        """SI unit of actuations, in words: the one of all degrees of freedom, or one for each."""
        return in_words(self.actuation_units)

    @property
    def quantity(self) -> str:
        """What the actuators are commanded in, in words: the one of all, or one for each."""
        return in_words(self.actuator_quantities)

    @property
    def unit(self) -> str:
        """SI unit of commands, in words: the one of all, or one for each."""
        return in_words(self.actuator_units)

    @property
    def actuator_min(self) -> Array:
        """Lowest command of each actuator, (k,)."""
        return each(self.drive.minimum, len(self.actuators))

    @property
    def actuator_max(self) -> Array:
        """Highest command of each actuator, (k,)."""
        return each(self.drive.maximum, len(self.actuators))

    @property
    def slew_rate(self) -> Array:
        """Fastest change of each actuator's command, (k,) per second."""
        return each(self.drive.slew_rate, len(self.actuators))

    @property
    def safe(self) -> Array:
        """Command of each actuator at which the robot is safe, (k,)."""
        return each(self.drive.safe, len(self.actuators))

    @property
    def actuator_tolerances(self) -> ActuatorTolerances:
        """Tolerances of the driver for each actuator, (k,) each, in its unit."""
        spans = self.actuator_max - self.actuator_min
        each_of = tolerances_of_each(self.given_tolerances, spans, self.actuator_quantities)
        names = ActuatorTolerances._fields
        return ActuatorTolerances(*(np.array([getattr(one, name) for one in each_of], dtype=float) for name in names))

    def actuators_on(self, device: Device) -> list[str]:
        """Names of the actuators that one of its devices serves, in the order of the device's channels."""
        return self.actuators if device.actuators is None else device.actuators

    def served_by(self, device: Device) -> NDArray[np.int64]:
        """Indices (c,) of the actuators that one of its devices serves, in the order of the device's channels."""
        return self.indices_of(self.actuators_on(device))

    def indices_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Indices (c,) of named actuators."""
        return np.array([self.actuators.index(name) for name in names], dtype=np.int64)

    @property
    def actuation_names(self) -> list[str]:
        """Names of the m degrees of freedom."""
        return self.actuation_map.names_of(self.actuators)

    @property
    def degrees_of_freedom(self) -> int:
        """Number m of independent actuations."""
        return len(self.actuation_names)

    @property
    def actuation_min(self) -> Array:
        """Lowest value of each degree of freedom, (m,)."""
        return self.actuation_map.range_of(self.actuator_min, self.actuator_max)[0]

    @property
    def actuation_max(self) -> Array:
        """Highest value of each degree of freedom, (m,)."""
        return self.actuation_map.range_of(self.actuator_min, self.actuator_max)[1]

    @property
    def actuation_slew(self) -> Array:
        """Fastest change of each degree of freedom at which no actuator exceeds its own, (m,) per second."""
        return self.actuation_map.slew_of(self.slew_rate)

    @property
    def alike_actuations(self) -> NDArray[np.int64]:
        """`body.alike_inputs` where actuations are these inputs and have one range; else none, (0, 0)."""
        own = (
            isinstance(self.actuation_map, Identity)
            and not np.ptp([self.actuator_min, self.actuator_max], axis=1).any()
        )
        return self.body.alike_inputs if own else np.zeros((0, 0), dtype=np.int64)

    @property
    def rest_actuation(self) -> Array:
        """Actuation nearest to that of the safe commands, (m,)."""
        return self.nearest_actuation(self.safe)

    @property
    def extent(self) -> Array:
        """Size of the resting body along x and y, (2,) m."""
        return self.body.extent

    @property
    def patches(self) -> "PatchSet":
        """Control grids, samples and borders of its surfaces.

        Raises:
            SoftformError: If it has none.
        """
        from softform_core.surface.patch import Patch
        from softform_core.surface.patch_set import PatchSet

        if not self.surfaces:
            raise SoftformError(
                f"Robot '{self.name}' has a tip and no surface.", "Choose a robot with a surface, such as 'membrane'."
            )
        return PatchSet(
            tuple(Patch(one.rows, one.columns, one.degree, self.body.patches[one.patch]) for one in self.surfaces)
        )

    def parametrised(self, vertices: Array, faces: NDArray[np.integer]) -> "ParametrisedSurface":
        """The mesh (V, 3), (F, 3) of its resting body, flattened patch by patch.

        Raises:
            SoftformError: If it has no surface, or the mesh cannot be flattened.
        """
        parts = [self.body.faces_of(one.patch, vertices, faces) for one in self.surfaces]
        return self.patches.parametrised(vertices, faces, parts)

    def point_parameters(self, frame: str) -> Array:
        """Parameters (M, 2) of the surface, see `surface.patch_set`; a frame on it is the mean of their points.

        Raises:
            SoftformError: If no point of its surface has this name.
        """
        point = self.frames.get(frame)
        if not isinstance(point, SurfacePoint):
            known = ", ".join(self.frames) or "none"
            raise SoftformError(
                f"The surface of '{self.name}' has no point '{frame}' (known: {known}).",
                "Name one in `frames` of its description, or give u and v.",
            )
        patch = [surface.patch for surface in self.surfaces].index(point.patch)
        return self.patches.joined(patch, point.parameters)

    def line_parameters(self, along: float) -> Array:
        """Parameters (M, 2) of the point at `along`, 0 ... 1, of the centre line: the mean of a ring of the surface.

        Of a robot without surfaces they are those of `forward.outputs`, (1, 2).

        Raises:
            SoftformError: If it has no centre line, or no such point.
        """
        if self.centre_line is None:
            raise SoftformError(f"Robot '{self.name}' has no centre line.", "Name one in its description.")
        if not 0.0 <= along <= 1.0:
            raise SoftformError(f"The centre line has no point v = {along:g}.", "Give v between 0 and 1, its ends.")
        from softform_core.surface.patch_set import APART

        if not isinstance(self.centre_line, TubeLine):
            return np.array([[APART, along]])
        ring = SurfacePoint(patch=self.centre_line.patch, v=along)
        patch = [surface.patch for surface in self.surfaces].index(ring.patch)
        return self.patches.joined(patch, ring.parameters)

    def rider_parameters(self, count: int) -> Array:
        """Parameters (count, 2) of what a skin rides on: the samples of the surface, or three places of each bone.

        Those of bones are for `forward.outputs`, with the number of the place as v (`BodyOfBones.bones`).
        """
        from softform_core.surface.patch_set import APART

        if self.surfaces:
            return self.patches.samples(count)
        return np.column_stack([np.full(count, 2.0 * APART), np.arange(count)])

    @property
    def line_learning(self) -> LineLearning:
        """How its centre line is learned for itself.

        Raises:
            SoftformError: If it has none, or one that its surface predicts.
        """
        if not isinstance(self.centre_line, LineLearning):
            raise SoftformError(
                f"Robot '{self.name}' has no centre line that is learned for itself.",
                "Name its control_points and forward_kinematics in centre_line of its description.",
            )
        return self.centre_line

    @property
    def learns_line(self) -> bool:
        """Whether its centre line is learned for itself."""
        return isinstance(self.centre_line, LineLearning)

    @property
    def tip(self) -> TipLearning:
        """How the kinematics of its tip are learned.

        Raises:
            SoftformError: If it has none, or one that its surface predicts.
        """
        tip = self.frames.get(TIP)
        if not isinstance(tip, TipLearning):
            raise SoftformError(
                f"Robot '{self.name}' has a surface and no tip that is learned for itself.",
                "Choose a robot without a surface, such as 'three_chamber'.",
            )
        return tip

    @property
    def tip_dimensions(self) -> int:
        """Number n of the tip's coordinates."""
        return self.body.frames[TIP]

    def actuators_of(self, actuation: Array) -> Array:
        """Commands (…, k) of the actuators under an actuation (…, m).

        Raises:
            SoftformError: If the actuation has another number of values.
        """
        return self.actuation_map.actuators_of(self._sized(actuation, self.actuation_names))

    def actuation_of(self, values: Array) -> Array:
        """Actuation (…, m) that explains values of the actuators (…, k), as measured.

        Raises:
            SoftformError: If there is another number of values.
        """
        return self.actuation_map.actuation_of(self._sized(values, self.actuators))

    def nearest_actuation(self, values: Array) -> Array:
        """Actuation (…, m) within its range that explains commands or measured values of the actuators (…, k) best.

        Raises:
            SoftformError: If there is another number of values.
        """
        return np.clip(self.actuation_of(values), self.actuation_min, self.actuation_max)

    def in_order(self, names: Sequence[str], values: Sequence[float]) -> Array:
        """Values (k,) of named actuators in the order of the robot's.

        Raises:
            SoftformError: Unless each actuator is named once, with a value.
        """
        actuators = self.actuators
        if len(names) != len(values) or sorted(names) != sorted(actuators):
            raise SoftformError(
                f"{len(values)} values came for the actuators {', '.join(names) or '(none)'}.",
                f"Name each actuator of '{self.name}' once: {', '.join(actuators)}.",
            )
        value_of = dict(zip(names, values, strict=True))
        return np.array([value_of[name] for name in actuators], dtype=np.float64)

    def check_commands(self, commands: Array) -> Array:
        """Return `commands` as a (k,) float array if the actuators may be given them.

        Raises:
            SoftformError: On a wrong number of values, NaN or infinity, or a value outside the range.
        """
        low, high = self.actuator_min, self.actuator_max
        quantities, units = self.actuator_quantities, self.actuator_units
        return check_within(self.name, quantities, units, self.actuators, commands, low, high)

    def fingerprint(self) -> str:
        """Digest of all that decides simulated shapes; a store or model made for another body does not match."""
        decisive = self.model_dump(mode="json", include={"name", "body", "drive", "actuation_map", "surfaces"})
        for name in ("slew_rate", "safe"):
            decisive["drive"].pop(name)
        decisive |= self._contents()
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]

    def command_fingerprint(self) -> str:
        """Digest of the whole description and of `INTERFACE_VERSION`: commands for one robot are not another's."""
        told = {"interface": INTERFACE_VERSION, "robot": self.model_dump(mode="json")} | self._contents()
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

    def _contents(self) -> dict[str, Any]:
        """What digests of the description have besides its fields: nothing, of a body without files."""
        return {"contents": self.body.contents} if self.body.contents else {}

    def _sized(self, values: Array, names: list[str]) -> Array:
        values = np.asarray(values, dtype=np.float64)
        if values.ndim == 0 or values.shape[-1] != len(names):
            raise SoftformError(
                f"Robot '{self.name}' takes {len(names)} values here, got shape {values.shape}.",
                f"Its actuations are {', '.join(self.actuation_names)}; its actuators {', '.join(self.actuators)}.",
            )
        return values
