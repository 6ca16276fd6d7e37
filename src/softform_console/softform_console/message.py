"""What messages between server and page are made of; SI units. An unknown field, NaN and infinity are refused."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=100)]
Metres = Annotated[float, Field(ge=-100.0, le=100.0)]
Length = Annotated[float, Field(gt=0.0, le=100.0)]
Vector = tuple[float, float, float]
Place = tuple[Metres, Metres, Metres]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]
RobotIndex = Annotated[int, Field(ge=0, le=1000)]
Epoch = Annotated[str, Field(pattern=r"^[0-9]{1,20}$")]
Stamp = Annotated[float, Field(ge=0.0)]
TargetId = Annotated[int, Field(ge=1, le=1_000_000)]
Values = Annotated[list[float], Field(min_length=1, max_length=1000)]
Pose = Literal["fixed", "free", "place"]
Operator = Literal["you", "other", "none"]


class Message(BaseModel):
    """A message or a part of one."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Point(Message):
    """A point of the robot, by patch and (u, v) or by frame, and where it is wanted, m in the robot's frame."""

    id: Annotated[int, Field(ge=1, le=1_000_000)]
    output: Name
    u: Unit = 0.0
    v: Unit = 0.0
    target: Place
    weight: Annotated[float, Field(gt=0.0, le=1000.0)] = 1.0
