"""Carries programs out, block after block."""

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from softform_client.capture_files import write_capture
from softform_client.client import ActuatorPath, Code, GoalFailedError, Mode, ShapeClient
from softform_client.program import (
    VIA,
    Block,
    Capture,
    IfErrorAbove,
    MoveToPoints,
    MoveToShape,
    MoveToValues,
    Place,
    Repeat,
    Verify,
    Wait,
)
from softform_client.program_file import Aim, ProgramFiles, ProgramText, Row
from softform_client.reach_messages import pose_from_message
from softform_core.errors import SoftformError
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

_POLL_SECONDS = 0.05
_ROUND_SECONDS = 0.01
"""Pause after each round of a `repeat`, s: one of nothing that takes time must not keep a processor busy."""

_MOST_STEPS = 100_000
"""Most steps that are kept; of a longer program the last."""

_ENDED = "The robot was made safe, at fault or reset since the program began, which ends it."
STAYS = "The robot stays where it is; ./softform release lets go of it, ./softform stop makes it safe."


@dataclass(frozen=True)
class Step:
    """A block that is done; errors m: `predicted` of a move, `measured` by a capture."""

    block: str
    line: int
    title: str
    text: str
    seconds: float
    predicted: float | None = None
    measured: float | None = None


@dataclass(frozen=True)
class Ended:
    """How a program ended: at which row, None if it is done, with what error code of an action (0: none), and why."""

    state: Literal["done", "stopped", "failed"]
    row: Row | None
    code: int
    text: str
    steps: list[Step] = field(default_factory=list)


class _StoppedError(Exception):
    pass


class ProgramRun:
    """One run of a program.

    Args:
        text: The program.
        aims: Where its blocks lead, as `ProgramText.aims` returns it.
        robot: What it commands.
        files: Where its captures are written.
        epoch: The driver's epoch in which it is meant: it ends with that.
        begun: Called with each block that begins, and what becomes of it then.
        done: Called with each block that is done.
    """

    def __init__(
        self,
        text: ProgramText,
        aims: Mapping[Place, Aim],
        robot: ShapeClient,
        files: ProgramFiles,
        epoch: int,
        begun: Callable[[Row, str], None] = lambda row, text: None,
        done: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self._text, self._aims, self._robot, self._files, self._epoch = text, aims, robot, files, epoch
        self._begun, self._done = begun, done
        self._rows = {row.place: row for row in text.rows}
        self._at: Row | None = None
        self._steps: deque[Step] = deque(maxlen=_MOST_STEPS)
        self._captures: Counter[Place] = Counter()
        self._error: float | None = None
        self._target: Shape | None = None
        self._is_unwanted = threading.Event()

    def cancel(self) -> None:
        """End the program: the robot stays where it is. To be repeated until `run` returns; from any thread."""
        self._is_unwanted.set()
        self._robot.cancel()

    def run(self) -> Ended:
        """Carry the program out, and return how it ended."""
        try:
            self._go_on()
            self._run_blocks(self._text.program.blocks, ())
        except _StoppedError:
            return self._ended("stopped", 0, "It was stopped.")
        except GoalFailedError as failure:
            if self._is_unwanted.is_set():
                return self._ended("stopped", failure.code, "It was stopped.")
            name = next(
                (
                    name
                    for name in dir(failure.result)
                    if name.isupper() and getattr(failure.result, name) == failure.code
                ),
                "",
            )
            return self._ended("failed", failure.code, f"[{failure.code} {name}] {failure}")
        except SoftformError as error:
            return self._ended("failed", 0, str(error))
        self._at = None
        return self._ended("done", Code.NONE, "It is done; the robot holds.")

    def _ended(self, state: Literal["done", "stopped", "failed"], code: int, text: str) -> Ended:
        if self._at is not None:
            text = f"Ended in {self._at}. {text} {STAYS if state == 'stopped' else ''}".rstrip()
        return Ended(state, self._at, code, text, [*self._steps])

    def _go_on(self) -> None:
        if self._is_unwanted.is_set():
            raise _StoppedError
        if self._robot.epoch != self._epoch:
            raise SoftformError(_ENDED, "Look at the robot, and run it again if that is still meant.")

    def _run_blocks(self, blocks: list[Any], place: Place) -> None:
        for at, block in enumerate(blocks):
            self._run_block(block, (*place, at))

    def _run_block(self, block: Block, place: Place) -> None:
        self._at = row = self._rows[place]
        self._go_on()
        self._begun(row, "")
        since = time.monotonic()
        if isinstance(block, Repeat):
            for count in range(1, block.repeat + 1):
                self._begun(row, f"{count} of {block.repeat}")
                self._run_blocks(block.blocks, place)
                self._is_unwanted.wait(_ROUND_SECONDS)
            return
        if isinstance(block, IfErrorAbove):
            is_above = self._error is not None and self._error * MM_PER_M > block.if_error_above_mm
            self._note(row, since, f"it is {_mm(self._error)}: {'yes' if is_above else 'left out'}")
            if is_above:
                self._run_blocks(block.blocks, place)
            return
        if isinstance(block, Wait):
            while (left := since + block.wait - time.monotonic()) > 0.0:
                self._is_unwanted.wait(min(left, _POLL_SECONDS))
                self._go_on()
            self._note(row, since, "")
        elif isinstance(block, Verify | Capture):
            self._capture(row, block, since)
        else:
            self._move(row, block, since)

    def _move(self, row: Row, block: Block, since: float) -> None:
        def note(feedback: Any) -> None:
            self._begun(row, feedback.stage)

        aim = self._aims[row.place]
        common: dict[str, Any] = {"epoch": self._epoch, "on_feedback": note}
        self._target, measured = None, None
        if isinstance(block, MoveToValues):
            assert isinstance(aim, np.ndarray)
            self._robot.follow(ActuatorPath(aim[None]), **common)
            self._note(row, since, "")
            return
        if isinstance(block, MoveToPoints):
            assert isinstance(aim, FeaturePoints)
            result = self._robot.reach(
                None, Mode.PLAN_AND_MOVE, features=aim, accept_unreachable=block.accept_unreachable, **common
            )
        else:
            assert isinstance(block, MoveToShape) and isinstance(aim, Shape)
            result = self._robot.reach(
                aim,
                Mode.CLOSED_LOOP if block.closed_loop else Mode.PLAN_AND_MOVE,
                partial=block.partial,
                fix_pose=block.pose != "free",
                accept_unreachable=block.accept_unreachable,
                **common,
            )
            pose = pose_from_message(result.solve.target_pose)
            self._target = aim.transformed(pose.rotation, pose.translation) if block.pose == "free" else aim
            if result.measured.valid:
                self._error = measured = _finite(result.measured.mean_error)
        predicted = _finite(result.solve.mean_error)
        text = f"predicted error {_mm(predicted)}"
        self._note(row, since, text if measured is None else f"{text}, measured {_mm(measured)}", predicted, measured)

    def _capture(self, row: Row, block: Verify | Capture, since: float) -> None:
        via, place = "", None
        if isinstance(block, Capture):
            self._captures[row.place] += 1
            place = self._files.capture(block.capture.replace("{n}", str(self._captures[row.place])))
            via = VIA[place.suffix.lower()]
        target = self._target if via in ("", "scanner") else None
        result = self._robot.capture(target, via=via, on_feedback=lambda feedback: self._begun(row, feedback.stage))
        measured = _finite(result.measured.mean_error)
        text = f"{_mm(measured)} from the {'predicted' if target is None else 'wanted'} shape"
        if place is None and measured is None:
            raise SoftformError("The capture tells no error.", "Capture more of the robot; see its message.")
        if place is None:
            self._error = measured
        else:
            text = f"{write_capture(place, result)} points in {place}, {text}"
        self._note(row, since, text, None, measured)

    def _note(
        self, row: Row, since: float, text: str, predicted: float | None = None, measured: float | None = None
    ) -> None:
        seconds = time.monotonic() - since
        step = Step(row.number, row.line, row.block.title, text, seconds, predicted, measured)
        self._steps.append(step)
        self._done(step)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _mm(metres: float | None) -> str:
    return "not known" if metres is None else f"{metres * MM_PER_M:.2f} mm"
