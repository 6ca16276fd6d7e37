"""What all descriptions share: their base class and the types of their fields."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Place = tuple[Finite, Finite, Finite]


class Description(BaseModel):
    """A part of a description: unknown fields are rejected, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Material(Description):
    """An incompressible hyperelastic law and its coefficients (Pa; see `simulation.materials`)."""

    law: Literal["neo_hookean", "yeoh", "gent"]
    coefficients: list[float]


class SurfaceDescription(Description):
    """B-spline surface of Eq. 1 over one patch of the body: control points along u and v, and polynomial degree.

    `patch` names one of the body's patches; the degree is the order of the B-spline less one.
    """

    patch: str
    rows: Annotated[int, Field(ge=4)]
    columns: Annotated[int, Field(ge=4)]
    degree: Annotated[int, Field(ge=1, le=5)]
