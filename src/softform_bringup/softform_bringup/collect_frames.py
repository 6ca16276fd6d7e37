"""Collecting frames: actuate, settle, capture, check, store (paper 000, Sec. V-B2). The work of node `collector`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_bringup.collect_recorders import MarkerRecorder, Recorder, ScanRecorder, labelled, take_markers
from softform_bringup.collect_store import (
    Store,
    asked_actuations,
    begin_session,
    missing_frames,
    open_to_continue,
    provenance,
)
from softform_bringup.robot_link import RobotLink
from softform_core.errors import SoftformError
from softform_core.files import only_writer
from softform_core.frames.marker_quality import MarkerJudge, check_same_rest, rest_frame
from softform_core.frames.marker_store import create_marker_frames
from softform_core.frames.store import FrameStore, create_frames
from softform_core.kinematics.robot_pipeline import load_pipeline
from softform_core.robots import Robot
from softform_interfaces.action import CollectDataset
from softform_ros.conversions import seconds_from_stamp
from softform_ros.goal_error import GoalError

Array = NDArray[np.float64]
Code = CollectDataset.Result
"""Error codes, `NONE` … `INTERNAL_ERROR`; the action's definition is their only list."""

_POLL_SECONDS = 0.1
_AGAIN = "Then run the same command again; it continues."


class CollectError(GoalError):
    """Why collecting ended early, with a code of `collect_dataset`; all frames up to then are kept."""


@dataclass(frozen=True)
class CollectSettings:
    """SI units.

    Attributes:
        frame: The robot's.
        source: Whose frames these are; a data set has those of one source only.
        bag: Raw recording of this run; None without one.
        settle_tolerance: Of settled pressures to their command, Pa.
        settle_timeout: s.
        capture_timeout: s to wait for a capture of the settled robot.
        ready_timeout: s within which the driver must be heard.
        captures_a_frame: Captures of one actuation that are tried before its frame is rejected.
        averaged_markers: Marker frames in one stored frame.
    """

    frame: str
    source: str
    bag: Path | None
    settle_tolerance: float
    settle_timeout: float
    capture_timeout: float
    ready_timeout: float
    captures_a_frame: int
    averaged_markers: int


@dataclass(frozen=True)
class CollectGoal:
    """A checked goal.

    Attributes:
        via: What captures.
        frames: Frames that the data set shall have in the end.
        seed: Of the actuations.
        output: The store.
    """

    via: str
    frames: int
    seed: int
    output: Path


@dataclass(frozen=True)
class Progress:
    """Where a goal stands; as the action's feedback."""

    frame: int
    done: int
    frames: int
    stage: str
    coverage: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class CollectOutcome:
    """What became of a goal; as the action's result."""

    store: Path
    code: int
    message: str = ""
    captured: int = 0
    rejections: dict[int, str] = field(default_factory=dict)


class FrameCollector:
    """Carries out one goal.

    Args:
        robot: Who is captured.
        goal: What to collect.
        settings: How.
        link: To the robot.
        stop: Code for which to stop, `NONE` to go on.
        tell: Takes the progress.
    """

    def __init__(
        self,
        robot: Robot,
        goal: CollectGoal,
        settings: CollectSettings,
        link: RobotLink,
        stop: Callable[[], int],
        tell: Callable[[Progress], None],
    ) -> None:
        """Nothing moves yet."""
        self._robot, self._goal, self._settings, self._link = robot, goal, settings, link
        self._stop, self._tell = stop, tell
        self._store: Store | None = None

    def run(self) -> CollectOutcome:
        """Collect what is missing; returns an outcome whatever happens. The robot is let go of."""
        code, message = Code.NONE, ""
        try:
            with only_writer(self._goal.output, "collecting"):
                self._collect()
        except CollectError as error:
            code, message = error.code, str(error)
        except SoftformError as error:
            code, message = Code.STORE_FAILED, str(error)
        except Exception as error:  # the node must live on for the next goal
            code, message = Code.INTERNAL_ERROR, f"{type(error).__name__}: {error}"
        finally:
            self._link.command.release()
        if self._store is None:
            return CollectOutcome(self._goal.output, code, message)
        return CollectOutcome(self._goal.output, code, message, len(self._store.captured), self._store.rejections)

    def _collect(self) -> None:
        goal, source = self._goal, self._settings.source
        actuations = asked_actuations(self._robot, goal.frames, goal.seed)
        try:
            self._store = open_to_continue(goal.output, self._robot, goal.seed, source, goal.via, writable=True)
        except SoftformError as error:
            raise CollectError(Code.INVALID_GOAL, error.message, error.next_step) from error
        if self._store is not None:
            self._store.extend(actuations)
            if not len(missing_frames(self._store, goal.frames)):
                return
        self._wait_until_ready()
        recorder = self._scans(actuations) if goal.via == "scanner" else self._markers(actuations)
        assert self._store is not None
        begin_session(self._store, self._settings.bag)
        for number in missing_frames(self._store, goal.frames):
            self._collect_frame(self._store, int(number), recorder)

    def _scans(self, actuations: Array) -> ScanRecorder:
        if self._store is None:
            origin = provenance(self._goal.seed, self._settings.source, self._goal.via)
            self._store = create_frames(self._goal.output, self._robot, actuations, origin)
        assert isinstance(self._store, FrameStore)
        return ScanRecorder(self._store, self._robot, self._link.clouds, self._settings.frame)

    def _markers(self, actuations: Array) -> MarkerRecorder:
        """Begin with a rest frame: it names and places the markers, or shows that they are where they were."""
        load_pipeline(self._robot)  # refused before anything moves if there is none; loading it later takes seconds
        names, rest = self._rest_frame()
        try:
            store = self._store
            assert not isinstance(store, FrameStore)
            if store is None:
                judge = MarkerJudge(self._robot, names, rest)
                origin = provenance(self._goal.seed, self._settings.source, self._goal.via)
                self._store = store = create_marker_frames(
                    self._goal.output, self._robot, actuations, names, rest, origin
                )
            else:
                check_same_rest(store.names, store.rest, names, rest, self._robot)
                judge = MarkerJudge(self._robot, store.names, store.rest)
        except SoftformError as error:
            raise CollectError(Code.CAPTURE_FAILED, error.message, error.next_step) from error
        averaged, frame = self._settings.averaged_markers, self._settings.frame
        return MarkerRecorder(store, self._robot, judge, self._link.markers, frame, averaged)

    def _rest_frame(self) -> tuple[list[str], Array]:
        idle = np.clip(np.zeros(self._robot.degrees_of_freedom), self._robot.pressure_min, self._robot.pressure_max)
        self._tell_stage(0, "settling")
        _, moment = self._settle(idle, self._hold(idle), "the rest frame")
        try:
            for _ in range(self._settings.captures_a_frame):  # a marker that is missing now may be seen a moment later
                taken = take_markers(
                    self._link.markers,
                    self._settings.averaged_markers,
                    moment,
                    self._settings.capture_timeout,
                    self._stopped,
                )
                if taken is None:
                    raise self._nothing_came("captured_markers", "the rest frame")
                names, rest = rest_frame(labelled(taken, self._settings.frame), self._robot)
                if len(names) == len(taken[-1].name):
                    break
                moment = seconds_from_stamp(taken[-1].header.stamp)
        except CollectError:
            raise
        except SoftformError as error:
            raise CollectError(Code.CAPTURE_FAILED, error.message, error.next_step) from error
        # Placing the markers takes seconds in which no command is repeated: the robot at rest may as well vent.
        self._link.command.release()
        return names, rest

    def _collect_frame(self, store: Store, number: int, recorder: Recorder) -> None:
        """Actuate, settle, capture, check and store one frame; an unfit capture is taken again."""
        command, what = store.actuation[number], f"frame {number}"
        self._tell_stage(number, "settling")
        _, moment = self._settle(command, self._hold(command), what)
        for _ in range(self._settings.captures_a_frame):
            self._tell_stage(number, "capturing")
            captured_at = recorder.take(moment, self._settings.capture_timeout, self._stopped)
            # The pressures of the capture are those of a robot that is still settled after it.
            measured, _ = self._settle(command, moment if captured_at is None else captured_at, what)
            if captured_at is None:
                raise self._nothing_came(recorder.topic, what)
            coverage, fault = recorder.judge(command)
            if not fault:
                break
            moment = captured_at
        recorder.store_frame(number, measured, captured_at)
        self._tell_stage(number, "storing", coverage, f"frame {number} is rejected: {fault}" if fault else "")

    def _hold(self, command: Array) -> float:
        """Command the robot; returns when, s since the epoch."""
        commanded_at = time.time()
        self._link.command.hold(command)
        return commanded_at

    def _settle(self, command: Array, since: float, what: str) -> tuple[Array, float]:
        """Wait until the robot has settled after `since`; returns measured pressures (k,) Pa and when."""
        tolerance, timeout = self._settings.settle_tolerance, self._settings.settle_timeout
        try:
            settled = self._link.driver.wait_until_settled(command, tolerance, timeout, since, self._stopped)
        except GoalError as error:  # the driver's word, which knows of no frames
            message = f"{what.capitalize()} was not captured. {error.message}"
            raise CollectError(Code.DRIVER_FAILED, message, f"{error.next_step} {_AGAIN}") from error
        if settled is None:
            raise self._stop_error(what)
        return settled.pressures, settled.stamp

    def _stopped(self) -> bool:
        return self._link.stop_reason is not None or self._stop() != Code.NONE

    def _stop_error(self, what: str) -> CollectError:
        if self._stop() == Code.NONE:
            return CollectError(
                Code.DRIVER_FAILED,
                f"The driver stopped following commands before {what} was captured: {self._link.stop_reason}",
                f"Remove the cause. {_AGAIN}",
            )
        why = {Code.CANCELLED: "Collecting was cancelled", Code.NODE_DEACTIVATED: "The node was deactivated"}
        reason = why.get(self._stop(), "Collecting was stopped")
        return CollectError(self._stop(), f"{reason} before {what} was captured; the robot vents.", _AGAIN)

    def _nothing_came(self, topic: str, what: str) -> CollectError:
        if self._stopped():
            return self._stop_error(what)
        return CollectError(
            Code.CAPTURE_FAILED,
            f"No {topic} of the settled robot came within {self._settings.capture_timeout:g} s for {what}.",
            f"Check the capture device (its diagnostics say what it rejected). {_AGAIN}",
        )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self._settings.ready_timeout
        while not self._stopped():
            try:
                self._link.driver.refuse_unless_ready()
                return
            except GoalError as error:
                if time.monotonic() > deadline:
                    raise CollectError(Code.DRIVER_FAILED, error.message, error.next_step) from error
                time.sleep(_POLL_SECONDS)
        raise self._stop_error("a frame")

    def _tell_stage(self, number: int, stage: str, coverage: float = 0.0, note: str = "") -> None:
        done = 0 if self._store is None else len(self._store) - len(self._store.pending)
        self._tell(Progress(number, done, self._goal.frames, stage, coverage, note))
