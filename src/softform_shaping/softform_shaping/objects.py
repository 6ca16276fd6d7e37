"""Objects as descriptions (`config/objects`): what the controller knows of one, and what the true one is like."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from softform_core.errors import SoftformError
from softform_core.paths import places
from softform_core.robots.body import Body, body_class
from softform_core.robots.description import Description, NotNegative, Positive
from softform_core.yaml_files import read_yaml

__all__ = ["Hold", "ShapedObject", "load_object", "object_names"]

Colour = tuple[
    Annotated[int, Field(ge=0, le=255)], Annotated[int, Field(ge=0, le=255)], Annotated[int, Field(ge=0, le=255)]
]


class Hold(Description):
    """How firmly the grippers hold the true object: beyond this it slips, until that is what is left.

    Attributes:
        force: N, along the jaws; without end, if left out.
        torque: N m.
        slip: m that it slips for each N beyond, and rad for each N m times `turn`.
        turn: Of the slip's angle over its way, 1/m^2.
    """

    force: Positive = 1e9
    torque: Positive = 1e9
    slip: NotNegative = 0.0
    turn: NotNegative = 100.0


class ShapedObject(Description):
    """An object that two grippers hold.

    Attributes:
        name: Of the file, too.
        title: In a few words.
        source: Origin of its numbers.
        body: As the controller models it, in its own frame: long axis z, the grippers hold its ends.
        truth: How the true one differs: fields of a reality of the body's kind.
        hold: Of the true one.
        colour: Red, green, blue.
        yield_stress: Of von Mises (Eq. 9), from which it is damaged, Pa; unknown, if left out.
    """

    name: str
    title: str
    source: str
    body: Body
    truth: dict[str, Any] = {}
    hold: Hold = Hold()
    colour: Colour = (230, 190, 40)
    yield_stress: Positive | None = None

    @field_validator("body", mode="before")
    @classmethod
    def _of_its_kind(cls, given: Any, info: ValidationInfo) -> Any:
        if isinstance(given, Body):
            return given
        if not isinstance(given, dict) or not isinstance(given.get("kind"), str):
            raise ValueError("a body needs its kind")
        try:
            return body_class(given["kind"]).model_validate(given, context=info.context)
        except SoftformError as error:
            raise ValueError(str(error)) from error


def object_names() -> list[str]:
    """Names of the described objects."""
    return sorted({path.stem for place in places() for path in (place / "config" / "objects").glob("*.yaml")})


def load_object(name_or_path: str | Path) -> ShapedObject:
    """Read an object by its name in `config/objects` or by the path of a description.

    Raises:
        SoftformError: If there is none, or the description is wrong.
    """
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        found = [place / "config" / "objects" / f"{name_or_path}.yaml" for place in places()]
        path = next((each for each in found if each.is_file()), Path())
        if not path.is_file():
            raise SoftformError(
                f"There is no object '{name_or_path}' in config/objects.",
                f"Known: {', '.join(object_names()) or 'none'}. A path to a .yaml file works, too.",
            )
    try:
        return ShapedObject.model_validate(read_yaml(path), context={"folder": path.parent})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise SoftformError(
            f"{path} describes no object: {where}: {first['msg']}.", "Compare it with config/objects/sponge.yaml."
        ) from error
