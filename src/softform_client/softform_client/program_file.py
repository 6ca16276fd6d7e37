"""Reading programs; what is wrong is told with its line, and before anything moves."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import numpy as np
from pydantic import ValidationError

from softform_client.program import (
    DEEPEST,
    KINDS,
    MOST_BLOCKS,
    TAG,
    Block,
    Capture,
    IfErrorAbove,
    MoveToPoints,
    MoveToShape,
    MoveToValues,
    Place,
    Program,
    Repeat,
    Verify,
)
from softform_client.reach_messages import check_places
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.placing import placed
from softform_core.shapes.read import read_shape
from softform_core.shapes.shape import Shape
from softform_core.yaml_files import YamlText, read_text

Aim: TypeAlias = Shape | FeaturePoints | Array
"""Where a block moves the robot to, m or the unit of the actuators (k,)."""

_MOST_FAULTS = 5
_NEXT_STEP = "Correct the file; docs/steps/run-a-program.md shows what a program may hold."


class ProgramFiles(Protocol):
    """Where the files lie that a program names."""

    def shape(self, name: str, unit: Literal["m", "mm"]) -> Shape:
        """Return a target. Raises SoftformError if it cannot be used."""

    def capture(self, name: str) -> Path:
        """Return where a capture is to be written. Raises SoftformError if nowhere."""


@dataclass(frozen=True)
class FolderFiles:
    """Files beside a program, in its folder."""

    folder: Path

    def shape(self, name: str, unit: Literal["m", "mm"]) -> Shape:
        """Return a target, read from its file."""
        return read_shape(self.folder / name, unit)

    def capture(self, name: str) -> Path:
        """Return where a capture is to be written."""
        return self.folder / name


@dataclass(frozen=True)
class Row:
    """A block of a program, and where it stands: its place, and its line in the file."""

    place: Place
    line: int
    block: Block

    @property
    def number(self) -> str:
        """Its place, for people: `2.1` is the first block in the second."""
        return ".".join(str(at + 1) for at in self.place)

    def __str__(self) -> str:
        return f"block {self.number} (line {self.line}), {self.block.title}"


class ProgramText:
    """A program as it is written.

    Args:
        text: YAML.
        origin: Name of the file, for messages.

    Raises:
        SoftformError: If it is no program; with the lines.
    """

    def __init__(self, text: str, origin: str) -> None:
        self._origin = origin
        self._yaml = YamlText(text, origin)
        try:
            self.program = Program.model_validate(self._yaml.content)
        except ValidationError as error:
            raise self._refusal((fault["loc"], _said(fault)) for fault in error.errors()) from None
        self.rows = [Row(place, self._line(place), block) for place, block in self.program.each()]
        if len(self.rows) > MOST_BLOCKS or max(len(row.place) for row in self.rows) > DEEPEST:
            raise SoftformError(
                f"{origin} has {len(self.rows)} blocks.",
                f"Give at most {MOST_BLOCKS}, and at most {DEEPEST} that lie in each other.",
            )

    def aims(self, robot: Robot, files: ProgramFiles) -> dict[Place, Aim]:
        """Check that a robot can be asked for this; returns where each block that moves it leads.

        Raises:
            SoftformError: If not; with the lines.
        """
        aims: dict[Place, Aim] = {}
        faults: list[tuple[Place, str]] = []
        if self.program.robot not in (robot.name, robot.given_as):
            text = f"it is for '{self.program.robot}', and the robot is '{robot.name}'"
            raise self._refusal([(("robot",), text)])
        is_measured = False
        repeats: set[Place] = set()
        for row in self.rows:
            place, block = row.place, row.block
            if isinstance(block, Repeat):
                repeats.add(place)
            try:
                if isinstance(block, IfErrorAbove) and not is_measured:
                    raise SoftformError("no error is measured before it.", "Put a verify or a closed loop there.")
                if isinstance(block, Capture):
                    _check_capture(block.capture, any(place[:end] in repeats for end in range(len(place))), files)
                elif block.moves:
                    aims[place] = _aim(block, robot, files)
            except SoftformError as error:
                faults.append((place, str(error)))
            is_measured |= isinstance(block, Verify) or (isinstance(block, MoveToShape) and block.closed_loop)
        if faults:
            raise self._refusal((_path(place), text) for place, text in faults)
        return aims

    def _line(self, place: Place) -> int:
        return self._yaml.line(_path(place))

    def _refusal(self, faults: Iterable[tuple[tuple[int | str, ...], str]]) -> SoftformError:
        told = []
        for path, text in faults:
            parts = [part for part in path if not str(part).startswith(TAG)]
            where = ", ".join([f"line {self._yaml.line(parts)}", *_words(parts)])
            told.append(f"{where}: {text.rstrip('.')}")
        more = f"; and {len(told) - _MOST_FAULTS} more" if len(told) > _MOST_FAULTS else ""
        return SoftformError(f"{self._origin}, {'; '.join(told[:_MOST_FAULTS])}{more}.", _NEXT_STEP)


def read_program(path: Path) -> ProgramText:
    """Read a program from a file.

    Raises:
        SoftformError: If it cannot be read, or is no program.
    """
    return ProgramText(read_text(path), str(path))


def _path(place: Place) -> tuple[int | str, ...]:
    return tuple(part for at in place for part in ("blocks", at))


def _words(parts: list[int | str]) -> list[str]:
    """Return which block parts of a path name, and what in it, for people."""
    number = []
    while len(parts) > 1 and parts[0] == "blocks" and isinstance(parts[1], int):
        number.append(str(parts[1] + 1))
        parts = parts[2:]
    field = " ".join(str(part + 1) if isinstance(part, int) else part for part in parts)
    return [*([f"block {'.'.join(number)}"] if number else []), *([field] if field else [])]


def _said(fault: object) -> str:
    kind, text = fault["type"], fault["msg"]  # type: ignore[index]
    if kind == "extra_forbidden":
        name = fault["loc"][-1]  # type: ignore[index]
        return f"'{name}' belongs to another block: begin a new one" if name in KINDS else "there is no such field"
    return "give fields with values here" if kind == "model_type" else str(text).removeprefix("Value error, ")


def _aim(block: Block, robot: Robot, files: ProgramFiles) -> Aim:
    if isinstance(block, MoveToShape):
        if not robot.surfaces:
            raise SoftformError(f"'{robot.name}' has a tip and no surface.", "Move it to points or values.")
        shape = files.shape(block.move_to_shape, block.unit)
        return placed(shape, robot) if block.pose == "place" else shape
    if isinstance(block, MoveToValues):
        return robot.check_commands(np.array(block.move_to_values))
    assert isinstance(block, MoveToPoints)
    points = block.move_to_points
    features = FeaturePoints.of(
        [[one.u, one.v] for one in points],
        [one.target for one in points],
        [one.weight for one in points],
        [one.output for one in points],
    )
    check_places(features.on(robot).positions, "Point", robot)
    return features


def _check_capture(name: str, is_repeated: bool, files: ProgramFiles) -> None:
    files.capture(name)
    if is_repeated and "{n}" not in name:
        raise SoftformError("each would be written over the one before.", "Put {n} into its name, which counts.")
