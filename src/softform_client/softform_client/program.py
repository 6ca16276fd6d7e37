"""Programs: what a robot does, block after block, as people write it in YAML."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

MOST_BLOCKS = 1000
DEEPEST = 8
"""Most blocks that lie in each other."""

Place: TypeAlias = tuple[int, ...]
"""Of a block: its index, after those of the blocks that it lies in."""

File = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Metres = Annotated[float, Field(ge=-100.0, le=100.0)]


class Part(BaseModel):
    """A program or a part of one."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Block(Part, ABC):
    """A block; `title` says in a few words what it does."""

    moves: ClassVar[bool] = False

    @property
    @abstractmethod
    def title(self) -> str:
        """What it does, for people."""


class MoveToShape(Block):
    """Bring the surface to the shape of a file; with `closed_loop` corrected by captures, and so measured."""

    moves = True
    move_to_shape: File
    unit: Literal["m", "mm"]
    pose: Literal["fixed", "free", "place"] = "fixed"
    closed_loop: bool = False
    partial: bool = False
    accept_unreachable: bool = False

    @property
    def title(self) -> str:
        """What it does, for people."""
        return f"move to {self.move_to_shape}{' in a closed loop' if self.closed_loop else ''}"


class Point(Part):
    """A point of the robot, by patch and (u, v), or by frame, and where it is wanted: x, y, z in m."""

    output: str = ""
    u: Share = 0.5
    v: Share = 0.5
    target: Annotated[list[Metres], Field(min_length=3, max_length=3)]
    weight: Annotated[float, Field(gt=0.0, le=1000.0)] = 1.0


class MoveToPoints(Block):
    """Bring points of the robot to their places."""

    moves = True
    move_to_points: Annotated[list[Point], Field(min_length=1, max_length=1000)]
    accept_unreachable: bool = False

    @property
    def title(self) -> str:
        """What it does, for people."""
        count = len(self.move_to_points)
        return f"move {count} point{'s' * (count > 1)}"


class MoveToValues(Block):
    """Bring the actuators to values, in their unit and in the order of the robot's description."""

    moves = True
    move_to_values: Annotated[list[float], Field(min_length=1, max_length=1000)]

    @property
    def title(self) -> str:
        """What it does, for people."""
        values = [f"{value:g}" for value in self.move_to_values]
        return f"move all actuators to {values[0]}" if len({*values}) == 1 else f"move to {', '.join(values)}"


class Wait(Block):
    """Hold for a time, s."""

    wait: Annotated[float, Field(ge=0.0, le=86_400.0)]

    @property
    def title(self) -> str:
        """What it does, for people."""
        return f"wait {self.wait:g} s"


class Verify(Block):
    """Capture the robot and compare it with the shape that it was moved to last, else with the one predicted."""

    verify: None = None

    @model_validator(mode="before")
    @classmethod
    def _may_be_a_word(cls, given: Any) -> Any:
        return {"verify": None} if given == "verify" else given

    @property
    def title(self) -> str:
        """What it does, for people."""
        return "verify"


class Capture(Block):
    """Write what is captured: a cloud (.ply, .pcd) or markers (.csv); `{n}` in the name counts."""

    capture: File

    @field_validator("capture")
    @classmethod
    def _is_of_a_type_that_is_written(cls, name: str) -> str:
        if PurePath(name).suffix.lower() not in VIA:
            raise ValueError(f"'{name}' is of no type that is written; end it with {', '.join(VIA)}")
        return name

    @property
    def title(self) -> str:
        """What it does, for people."""
        return f"capture {self.capture}"


class Repeat(Block):
    """Do blocks again and again."""

    repeat: Annotated[int, Field(ge=1, le=100_000)]
    blocks: "Blocks"

    @property
    def title(self) -> str:
        """What it does, for people."""
        return f"repeat {self.repeat} times"


class IfErrorAbove(Block):
    """Do blocks if the mean error that was measured last is above this, mm."""

    if_error_above_mm: Annotated[float, Field(ge=0.0, le=1e5)]
    blocks: "Blocks"

    @property
    def title(self) -> str:
        """What it does, for people."""
        return f"if the error is above {self.if_error_above_mm:g} mm"


VIA = {".ply": "scanner", ".pcd": "scanner", ".csv": "mocap"}
"""What captures, by the ending of the file that is to be written."""

TAG = "block:"
"""What the tags of blocks begin with in the places of pydantic's errors."""

KINDS = {
    "move_to_shape": MoveToShape,
    "move_to_points": MoveToPoints,
    "move_to_values": MoveToValues,
    "wait": Wait,
    "verify": Verify,
    "capture": Capture,
    "repeat": Repeat,
    "if_error_above_mm": IfErrorAbove,
}


def _kind(given: Any) -> str | None:
    names = [given] if given == "verify" else given if isinstance(given, dict) else ()
    return next((TAG + name for name in KINDS if name in names), None)


AnyBlock = Annotated[
    Annotated[MoveToShape, Tag(TAG + "move_to_shape")]
    | Annotated[MoveToPoints, Tag(TAG + "move_to_points")]
    | Annotated[MoveToValues, Tag(TAG + "move_to_values")]
    | Annotated[Wait, Tag(TAG + "wait")]
    | Annotated[Verify, Tag(TAG + "verify")]
    | Annotated[Capture, Tag(TAG + "capture")]
    | Annotated[Repeat, Tag(TAG + "repeat")]
    | Annotated[IfErrorAbove, Tag(TAG + "if_error_above_mm")],
    Discriminator(
        _kind,
        custom_error_type="block",
        custom_error_message=f"this is no block; one has {', '.join([*KINDS][:-1])} or {[*KINDS][-1]}",
    ),
]
Blocks = Annotated[list[AnyBlock], Field(min_length=1, max_length=MOST_BLOCKS)]


class Program(Part):
    """A program for one robot: a name in `config/robots`, or the path of a description."""

    robot: Annotated[str, Field(min_length=1, max_length=200)]
    title: Annotated[str, Field(max_length=200)] = ""
    blocks: Blocks

    def each(self) -> Iterator[tuple[Place, Block]]:
        """Yield all blocks with their places, as they are written."""
        yield from _each(self.blocks, ())


def _each(blocks: list[Any], place: Place) -> Iterator[tuple[Place, Block]]:
    for at, block in enumerate(blocks):
        yield (*place, at), block
        yield from _each(getattr(block, "blocks", []), (*place, at))


for _model in (Repeat, IfErrorAbove, Program):
    _model.model_rebuild()
