"""What a robot is asked for beside its surfaces, and how networks learn it: frames, a centre line; their names."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from softform_core.robots.description import Description, SurfacePoint

TIP = "tip"
"""Name of the frame whose place is learned and asked for."""

CENTRE_LINE = "centre_line"
"""Name of the output that is the robot's centre line."""

BONES, ELEMENTS = "bones", "elements"
"""What a skin rides on where there is no surface: of a model that tells how it moves, and for pictures alone."""

TIP_MARKER = "tip"
"""Name of the motion-capture marker at that frame."""

Layers = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]


class TipLearning(Description):
    """How the kinematics of a frame are learned (paper 001).

    Attributes:
        segments: N of Sec. III-B: values of each degree of freedom in the simulated data, N^m samples in all.
        forward_kinematics: Hidden layers of N_fk (Sec. III-D).
        jacobian: Hidden layers of N_J.
    """

    segments: Annotated[int, Field(ge=2)]
    forward_kinematics: Layers
    jacobian: Layers


class LineLearning(Description):
    """How a centre line is learned for itself: a B-spline curve, whose control points a network predicts.

    Attributes:
        control_points: Their number.
        forward_kinematics: Hidden layers of the network.
    """

    control_points: Annotated[int, Field(ge=4, le=100)]
    forward_kinematics: Layers


class TubeLine(Description):
    """A centre line that the surface predicts: the middles of the rings of a tube, at its v."""

    patch: str


def _kind_of_line(given: Any) -> str:
    return "tube" if isinstance(given, TubeLine) or (isinstance(given, dict) and "patch" in given) else "learned"


Line = Annotated[
    Annotated[LineLearning, Tag("learned")] | Annotated[TubeLine, Tag("tube")], Discriminator(_kind_of_line)
]


def _kind_of_frame(given: Any) -> str:
    is_point = isinstance(given, SurfacePoint)
    if isinstance(given, dict):
        is_point = bool(SurfacePoint.model_fields.keys() & given.keys())
    return "point" if is_point else "learned"


Frame = Annotated[
    Annotated[TipLearning, Tag("learned")] | Annotated[SurfacePoint, Tag("point")], Discriminator(_kind_of_frame)
]
"""A frame of a body without surfaces is learned for itself; with surfaces it is a point that they predict."""


class SurfaceLearning(Description):
    """Networks of a robot with surfaces, where they are not those of the recipes.

    Attributes:
        forward_kinematics: Hidden layers of N_fk.
        activation: Activation of N_fk by the default recipe; a body that bends far is learned better by a smooth one.
        epochs: Passes of N_fk over the shapes by the default recipe; the recipe's own by default.
        sim_to_real: Hidden layers of N_rbf; those of the recipe by default.
    """

    forward_kinematics: Layers = [128, 128]
    activation: Literal["relu", "tanh"] = "relu"
    epochs: Annotated[int, Field(ge=1)] | None = None
    sim_to_real: Layers | None = None
