"""What all descriptions share: their base class and the types of their fields."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softform_core.arrays import Array
from softform_core.yaml_files import write_yaml

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Place = tuple[Finite, Finite, Finite]
Pose = tuple[Finite, Finite, Finite, Finite, Finite, Finite, Finite]
"""Of a device's frame in the robot's: x, y, z (m), qx, qy, qz, qw."""


def _holds_truth(given: Any) -> bool:
    """Whether it is a truth value, or a list with one in it."""
    return isinstance(given, bool) or (isinstance(given, list | tuple) and any(map(_holds_truth, given)))


class Description(BaseModel):
    """A part of a description: unknown fields are rejected, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_numbers(cls, given: Any) -> Any:
        """Reject truth values where numbers belong: YAML reads yes, no, on and off as such, and Python as 1 and 0."""
        for name, field in cls.model_fields.items() if isinstance(given, dict) else ():
            taken = str(field.annotation)
            if _holds_truth(given.get(name)) and "bool" not in taken and "Any" not in taken:
                raise ValueError(f"{name}: yes, no, on, off, true and false are no numbers and no names; quote a name")
        return given

    def save(self, path: Path) -> None:
        """Write it as YAML, `write_yaml`, and raise as that."""
        write_yaml(path, self.model_dump(mode="json"))


POSITIVE = {"neo_hookean": (True,), "yeoh": (True, False, False), "gent": (True, True)}
"""Of each coefficient of a material law, whether it must be positive."""


class Material(Description):
    """An incompressible hyperelastic law and its coefficients (Pa; see `simulation.materials`)."""

    law: Literal["neo_hookean", "yeoh", "gent"]
    coefficients: list[Finite]

    @model_validator(mode="after")
    def _elastic(self) -> "Material":
        positive = POSITIVE[self.law]
        if len(self.coefficients) != len(positive):
            raise ValueError(f"law '{self.law}' takes {len(positive)} coefficients, got {self.coefficients}")
        for index, value in enumerate(self.coefficients):
            if positive[index] and value <= 0.0:
                raise ValueError(f"coefficient {index + 1} of law '{self.law}' must be positive, got {value:g}")
        return self


class SurfaceDescription(Description):
    """B-spline surface of Eq. 1 over one patch of the body: control points along u and v, and polynomial degree.

    `patch` names one of the body's patches; the degree is the order of the B-spline less one.
    """

    patch: str
    rows: Annotated[int, Field(ge=4)]
    columns: Annotated[int, Field(ge=4)]
    degree: Annotated[int, Field(ge=1, le=5)]

    @model_validator(mode="after")
    def _enough(self) -> "SurfaceDescription":
        if min(self.rows, self.columns) <= self.degree:
            raise ValueError(
                f"degree {self.degree} needs at least {self.degree + 1} rows and columns, got {self.rows} and "
                f"{self.columns}"
            )
        return self


Parameter = Annotated[float, Field(ge=0.0, le=1.0)]

_AVERAGED = 24
"""Points that stand for a whole line of parameters; a rim's B-spline is smooth between them."""


class SurfacePoint(Description):
    """A named point of a surface: where (u, v) of a patch lies; a parameter that is left out is averaged over.

    v = 1 alone is the centre of a tube's end, such as the tip of an arm.
    """

    patch: str
    u: Parameter | None = None
    v: Parameter | None = None

    @property
    def parameters(self) -> Array:
        """Parameters (M, 2) in the unit square of its patch; their points have the mean that is meant."""
        middles = (np.arange(_AVERAGED) + 0.5) / _AVERAGED
        along_u, along_v = (middles if value is None else np.array([value]) for value in (self.u, self.v))
        return np.stack(np.meshgrid(along_u, along_v, indexing="ij"), axis=-1).reshape(-1, 2)
