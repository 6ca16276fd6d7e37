"""Collecting frames: actuate, settle, capture, check, store (paper 000, Sec. V-B2). The work of node `collector`."""

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from softform_client.capture_watch import Moment
from softform_client.robot_link import RobotLink
from softform_collect.data_set import (
    Store,
    asked_actuations,
    begin_session,
    bytes_needed,
    missing_frames,
    open_to_continue,
    provenance,
)
from softform_collect.goal import AGAIN, CollectGoal, CollectOutcome, CollectSettings
from softform_collect.marker_captures import MarkerCaptures
from softform_collect.recorders import MarkerRecorder, Recorder, ScanRecorder
from softform_collect.reference_pose import ReferencePose
from softform_collect.settled_robot import SettledRobot
from softform_core.arrays import Array
from softform_core.files import only_writer
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.marker_quality import MarkerJudge, check_same_rest
from softform_core.frames.marker_store import create_marker_frames
from softform_core.frames.store import FrameStore, create_frames
from softform_core.robots import Robot
from softform_interfaces.action import CollectDataset
from softform_ros.goal_error import GoalCode, GoalError, failure, in_code


def check_free_disk(place: Path, least_free: float, needed: float = 0.0) -> None:
    """End collecting while `least_free` bytes beside the `needed` ones are left where the data set is or will be.

    Raises:
        GoalError: If less is free.
    """
    existing = next(one for one in (place, *place.parents) if one.exists())
    free = shutil.disk_usage(existing).free
    if free >= least_free + needed:
        return
    what = f"{needed / 1e6:.0f} MB are still to be written and " if needed else ""
    raise GoalError(
        GoalCode.STORE_FAILED,
        f"The disk of {place} has {free / 1e6:.0f} MB left; {what}{least_free / 1e6:.0f} MB are to stay free.",
        f"Free space, or give another --output. {AGAIN}",
    )


_MOST_IN_A_ROW = 10
"""Consecutive unfit frames after which robot or cameras must have changed, so that later frames would be unfit, too."""


class FrameCollector:
    """Carries out one goal.

    Args:
        robot: Robot that is captured.
        goal: Goal of the collection.
        settings: Settings of the planner.
        link: Connection to the robot.
        stop: Code for which to stop, `NONE` to go on.
        tell: Takes the progress.
    """

    def __init__(
        self,
        robot: Robot,
        goal: CollectGoal,
        settings: CollectSettings,
        link: RobotLink,
        stop: Callable[[], GoalCode],
        tell: Callable[[CollectDataset.Feedback], None],
    ) -> None:
        self._robot, self._goal, self._settings, self._link = robot, goal, settings, link
        self._settled, self._tell = SettledRobot(link, settings, stop), tell
        self._captures = MarkerCaptures(robot, self._settled, settings)
        self._store: Store | None = None

    def run(self) -> CollectOutcome:
        """Collect what is missing; returns an outcome whatever happens. The robot is let go of."""
        code, message = GoalCode.NONE, ""
        try:
            with only_writer(self._goal.output, "collecting"):
                self._collect()
        except Exception as error:
            code, message = failure(error, GoalCode.STORE_FAILED)
        finally:
            self._link.let_go()
        if self._store is None:
            return CollectOutcome(code, message, self._goal.output)
        try:
            return CollectOutcome(code, message, self._goal.output, len(self._store.captured), self._store.rejections)
        except Exception as error:  # a disk that was pulled, or a store that was removed: that is to be reported, too
            unreadable = f"The frames in {self._goal.output} cannot be read: {error!r}."
            code = GoalCode.STORE_FAILED if code is GoalCode.NONE else code
            return CollectOutcome(code, f"{message} {unreadable}".strip(), self._goal.output)

    def _collect(self) -> None:
        goal, source = self._goal, self._settings.source
        actuations = asked_actuations(self._robot, goal.frames, goal.seed)
        with in_code(GoalCode.INVALID_GOAL):
            self._store = open_to_continue(goal.output, self._robot, goal.seed, source, goal.via, writable=True)
        to_do = goal.frames
        if self._store is not None:
            to_do = len(missing_frames(self._store, goal.frames)) + max(0, goal.frames - len(self._store))
            if not to_do:
                return
        needed = to_do * bytes_needed(goal.via, self._settings.bag is not None)
        check_free_disk(goal.output, self._settings.least_free_disk, needed)
        if self._store is not None:
            self._store.extend(actuations)
        self._settled.wait_until_ready()
        recorder = self._scans(actuations) if goal.via == "scanner" else self._markers(actuations)
        assert self._store is not None
        begin_session(self._store, self._settings.bag)
        self._collect_frames(self._store, recorder)

    def _collect_frames(self, store: Store, recorder: Recorder) -> None:
        """Collect the missing frames, with the reference pose before the first, after the last and in between."""
        reference, every = None, self._goal.reference_every
        if every and isinstance(recorder, MarkerRecorder):
            tell = partial(self._tell_stage, 0, "reference", 0.0)
            reference = ReferencePose(recorder, self._captures, self._settings, tell)
        rejected: list[int] = []
        for count, number in enumerate(missing_frames(store, self._goal.frames)):
            check_free_disk(self._goal.output, self._settings.least_free_disk)
            if reference is not None and count % every == 0:
                reference.check()
            fault = self._collect_frame(store, int(number), recorder)
            rejected = [*rejected, int(number)] if fault else []
            if len(rejected) == _MOST_IN_A_ROW:
                store.take_back(rejected)
                raise GoalError(
                    GoalCode.CAPTURE_FAILED,
                    f"{len(rejected)} frames in a row were unfit, {rejected[0]} to {rejected[-1]}; of the last one: "
                    f"{fault}",
                    f"See whether robot, scanner or cameras were moved. Those frames are taken again. {AGAIN}",
                )
        if reference is not None:
            reference.check()

    def _scans(self, actuations: Array) -> ScanRecorder:
        if self._store is None:
            origin = provenance(self._goal.seed, self._settings.source, self._goal.via)
            self._store = create_frames(self._goal.output, self._robot, actuations, origin)
        assert isinstance(self._store, FrameStore)
        return ScanRecorder(self._store, self._robot, self._link.clouds, self._settings.frame)

    def _markers(self, actuations: Array) -> MarkerRecorder:
        """Begin with a rest frame: it names and places the markers, or shows that they are where they were."""
        load_pipeline(self._robot)  # rejected before anything moves if there is none; loading it later takes seconds
        self._tell_stage(0, "settling")
        names, rest = self._captures.rest_frame()
        with in_code(GoalCode.CAPTURE_FAILED):
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
        averaged, frame = self._settings.averaged_markers, self._settings.frame
        return MarkerRecorder(store, self._robot, judge, self._link.markers, frame, averaged)

    def _collect_frame(self, store: Store, number: int, recorder: Recorder) -> str:
        """Actuate, settle, capture, check and store one frame; an unfit capture is taken again.

        Returns:
            Why it is rejected; empty if it is not.
        """
        command, what = store.actuation[number], f"frame {number}"
        self._tell_stage(number, "settling")
        moment: Moment = self._settled.go_to(command, what)
        note, fault, coverage = "", "", 0.0
        # One time for all captures: who scans by hand may fill it, and the driver lets go of what is held for longer.
        until = time.monotonic() + self._settings.capture_timeout
        for _ in range(self._settings.captures_a_frame):
            self._tell_stage(number, "capturing", note=note)
            captured = recorder.take(moment, until - time.monotonic(), self._settled.is_stopped)
            # The values of the capture are those of a robot that is still settled after it.
            measured = self._settled.still_settled(command, (captured or moment).stamp, what)
            if captured is None and not fault:
                raise self._settled.nothing_came(recorder.topic, what)
            if captured is None:
                break
            moment = captured
            coverage, fault = recorder.judge(command)
            if not fault:
                break
            note = f"{what} is captured again: {fault}"
        recorder.store_frame(number, self._robot.actuation_of(measured.values), moment.stamp)
        self._tell_stage(number, "storing", coverage, f"frame {number} is rejected: {fault}" if fault else "")
        return fault

    def _tell_stage(self, number: int, stage: str, coverage: float = 0.0, note: str = "") -> None:
        done = 0 if self._store is None else len(self._store) - len(self._store.pending)
        told = CollectDataset.Feedback(
            frame=number, done=done, frames=self._goal.frames, stage=stage, coverage=coverage, note=note
        )
        self._tell(told)
