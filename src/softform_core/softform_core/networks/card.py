"""Common fields of all model cards: robot, actuations, weights, and how to make the model again."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from softform_core.robots import Robot

Count = Annotated[int, Field(ge=0)]
Millimetres = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Entry(BaseModel):
    """A part of a card: unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Actuation(Entry):
    """One degree of freedom that a model takes, and its range in the unit of the card."""

    name: str
    minimum: float
    maximum: float


class Split(Entry):
    """Samples in each part; symmetric images of a shape always lie in the same part."""

    train: Count
    validation: Count
    test: Count


class SurfaceEntry(Entry):
    """The B-spline surface (Eq. 1) over one patch that a model predicts or corrects."""

    patch: str
    rows: Count
    cols: Count
    degree: Count
    periodic: bool

    def __str__(self) -> str:
        """Return the surface in words."""
        form = "tube, u around it" if self.periodic else "sheet"
        return f"{self.rows} x {self.cols} control points of a B-spline surface of degree {self.degree} ({form})"


class KinematicsReference(Entry):
    """The N_fk that a model was trained with; the model is rejected beside any other."""

    weights_sha256: str


class ModelCard(Entry):
    """Fields that all model cards share; each kind of model has a subclass.

    Attributes:
        model: Kind of the model.
        quantity: Quantity of the actuators, such as pressure.
        unit: SI unit of the actuations.
        actuations: Degrees of freedom that the model takes, in their order.
        actuators: Names of the actuators that these drive.
    """

    schema_name: Literal["softform/model"] = "softform/model"
    schema_version: Literal[2] = 2
    model: str
    robot: str
    robot_fingerprint: str
    quantity: str
    unit: str
    actuations: list[Actuation]
    actuators: list[str]
    command: str
    git_revision: str
    created: str
    torch_version: str
    weights_file: str
    weights_bytes: Count
    weights_sha256: str

    def to_markdown(self) -> str:
        """Return the card for people."""
        raise NotImplementedError

    def _head(self, title: str) -> str:
        """Return the title and origin of the page."""
        card = self.weights_file.replace(".pt", ".json")
        return f"""# {title} of the robot '{self.robot}'

Made by `{self.command}`, which makes it again. Do not edit: this page is generated from `{card}`."""

    def _files(self) -> str:
        return (
            f"| weights | `{self.weights_file}` (TorchScript), {self.weights_bytes} bytes, sha256 "
            f"`{self.weights_sha256}` |\n"
            f"| robot description | `{self.robot_fingerprint}`: the model is rejected for any other |"
        )

    def _takes(self) -> str:
        ranges = ", ".join(f"{one.name} {one.minimum:g} … {one.maximum:g}" for one in self.actuations)
        if len({(one.minimum, one.maximum) for one in self.actuations}) == 1:
            one = self.actuations[0]
            ranges = f"{', '.join(each.name for each in self.actuations)}; {one.minimum:g} … {one.maximum:g}"
        return f"{len(self.actuations)} actuations, {self.quantity} in {self.unit} ({ranges})"

    def _made(self) -> str:
        return f"Revision {self.git_revision}, torch {self.torch_version}, {self.created}."


class SurfaceCard(ModelCard):
    """Further fields that the cards of surface models share.

    Attributes:
        surfaces: Entry of each patch.
    """

    surfaces: list[SurfaceEntry]

    def _surface(self) -> str:
        return ", ".join(map(str, self.surfaces))


def actuation_fields(robot: Robot) -> dict[str, Any]:
    """Return the card's fields on the actuations of a robot."""
    ranges = zip(robot.actuation_names, robot.actuation_min.tolist(), robot.actuation_max.tolist(), strict=True)
    return {
        "quantity": robot.quantity,
        "unit": robot.actuation_unit,
        "actuations": [{"name": name, "minimum": low, "maximum": high} for name, low, high in ranges],
        "actuators": robot.actuators,
    }


def surface_entries(robot: Robot) -> list[SurfaceEntry]:
    """Return the card's entries on the surfaces of a robot."""
    pairs = zip(robot.surfaces, robot.patches.patches, strict=True)
    return [SurfaceEntry(patch=one.patch, **patch._asdict()) for one, patch in pairs]
