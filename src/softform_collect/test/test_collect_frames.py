"""Collecting from a robot that moves at once: what is rejected, what is flagged with its number, what is kept."""

import re
import shutil
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import DriverWatch
from softform_client.held_command import HeldCommand
from softform_client.robot_link import RobotLink
from softform_collect import frame_collector, marker_captures
from softform_collect.frame_collector import FrameCollector
from softform_collect.goal import CollectGoal, CollectSettings
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.frames.references import reference_actuation
from softform_core.frames.store import open_recording
from softform_core.robots import load_robot
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ActuatorState, DriverState
from softform_ros.command_lease import Held, KnownLease
from softform_ros.conversions import (
    cloud_from_points,
    marker_message,
    positions_from_markers,
    seconds_from_stamp,
    stamp_from_seconds,
)
from softform_ros.goal_error import GoalCode

ROBOT = load_robot("membrane")
SETTINGS = CollectSettings(
    frame="base_link",
    source="test",
    bag=None,
    settle_tolerance=250.0,
    settle_timeout=2.0,
    capture_timeout=1.0,
    ready_timeout=1.0,
    captures_a_frame=2,
    averaged_markers=4,
    least_free_disk=1e6,
    drift_warning=0.01,
    drift_limit=0.02,
)
SURFACE, SPOTS = load_pipeline(ROBOT, 30 * 30), load_pipeline(ROBOT, 36)
MARKERS = [f"m{index + 1:02d}" for index in range(36)]


def unchanged(points, frame):
    return points


class QuickRobot:
    """Takes the simulated shape of a command at once; `see` distorts what is captured of frame number `frame`."""

    def __init__(self, see=unchanged, name=lambda names, frame: names):
        self.driver = DriverWatch(ROBOT, 1.0)
        self.clouds, self.markers = CaptureWatch(), CaptureWatch()
        self.command = HeldCommand(self._follow)
        self.stop_reason = None
        self.is_scanning, self.is_driven, self.frame = True, True, 0  # which is at rest
        self.at_frame_one = lambda robot: None
        self._see, self._name, self._held = see, name, None
        self._random = np.random.default_rng(0)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def commands(self, actuation):
        return ROBOT.actuators_of(actuation)

    def hold(self, values, permitted):
        return self.command.hold(values, permitted)

    def let_go(self):
        self.command.release()

    def _follow(self, values):
        self._held = values
        if values.any():
            self.frame += 1
            if self.frame == 1:
                self.at_frame_one(self)

    def __enter__(self):
        self.driver.note_state(DriverState.SAFE, "")
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._ends.set()
        self._thread.join()

    def _noisy(self, points):
        return self._see(points + 2e-4 * self._random.standard_normal(points.shape), self.frame)

    def _run(self):
        shown = None
        while not self._ends.wait(0.02):
            values = np.zeros(9) if self._held is None else self._held
            if shown is not values:
                shown, surface, spots = values, *(one.points(values) / MM_PER_M for one in (SURFACE, SPOTS))
            if self.is_driven:
                self.driver.note_state(DriverState.RUNNING, "")
                settled = [ActuatorState.SETTLED] * 9
                self.driver.note_values(ROBOT.actuators, values, settled, time.time())
            if self.is_scanning:
                stamp = stamp_from_seconds(time.time())
                self.clouds.note(cloud_from_points(self._noisy(surface), "base_link", stamp), seconds(stamp))
                seen = self._noisy(spots)
                seen[: self.frame == 1] = np.nan
                names = self._name(list(MARKERS), self.frame)
                self.markers.note(marker_message(names, seen, "base_link", stamp, 1), seconds(stamp))


def seconds(stamp: Time) -> float:
    return seconds_from_stamp(stamp)


def collect(robot, path, frames=3, via="scanner", stop=lambda: GoalCode.NONE, reference_every=0, **changed):
    told = []
    settings = SimpleNamespace(**{**SETTINGS.__dict__, **changed})
    goal = CollectGoal(via, frames, 0, path, reference_every)
    return FrameCollector(ROBOT, goal, settings, robot, stop, told.append).run(), told


def test_all_captures_of_a_frame_have_one_time_together(tmp_path):
    """The driver lets go of a robot that is held too long: a second scan by hand has what the first one left."""

    def half(points, frame):
        return points[points[:, 0] < -0.05]

    with QuickRobot(see=half) as robot:
        waits, wait = [], robot.clouds.wait_for_one_after

        def slow(moment, timeout, stopped):
            waits.append(timeout)
            if len(waits) == 2:
                return None  # nobody scans again
            time.sleep(0.4)
            return wait(moment, timeout, stopped)

        robot.clouds.wait_for_one_after = slow
        outcome, _ = collect(robot, tmp_path / "frames.zarr", 1, captures_a_frame=3)
    assert outcome.code == GoalCode.NONE and "it covers" in outcome.rejections[0], outcome
    assert waits[0] > 0.9 and waits[1] < 0.6 and len(waits) == 2


@pytest.mark.parametrize("via", ["scanner", "mocap"])
def test_frames_are_reported_stored_and_added_to(tmp_path, via):
    path = tmp_path / "frames.zarr"
    with QuickRobot() as robot:
        outcome, told = collect(robot, path, 3, via)
        assert (outcome.code, outcome.captured, outcome.rejections) == (GoalCode.NONE, 3, {}), outcome.message
        assert robot.command.values is None
        outcome, _ = collect(robot, path, 4, via)
        assert (outcome.captured, outcome.message) == (4, "")
    assert {one.stage for one in told} == {"settling", "capturing", "storing"} and told[-1].done == 3
    store = open_recording(path, ROBOT)
    assert len(store.sessions) == 2 and np.abs(store.measured - store.actuation).max() < 1.0
    assert not store.actuation[0].any() and (store.actuation[1:] > 0.0).all()  # at rest first, then over the range


def test_markers_begin_with_a_rest_frame_and_missing_ones_are_nan(tmp_path):
    path = tmp_path / "frames.zarr"
    with QuickRobot() as robot:
        collect(robot, path, 3, "mocap")
    recording = open_recording(path, ROBOT)
    assert recording.names == MARKERS
    assert np.abs(recording.rest - SPOTS.points(np.zeros(9)) / MM_PER_M).max() < 5e-4
    assert np.isnan(recording.positions(1)[0]).all() and np.isfinite(recording.positions(1)[1:]).all()
    # The mean of four marker frames is nearer than one: their noise is 0.2 mm.
    error = recording.captured_positions() - SPOTS.points(recording.actuation) / MM_PER_M
    assert np.nanstd(error) < 1.3e-4


def test_markers_that_are_hidden_by_turns_are_all_named(tmp_path):
    path, frames = tmp_path / "frames.zarr", iter(range(10**6))

    def hide(points, frame):
        if frame < 0 and len(points) == len(MARKERS):
            points[[*range(5)] if next(frames) < 30 else [7]] = np.nan
        return points

    with QuickRobot(hide) as robot:
        outcome, _ = collect(robot, path, 1, "mocap")
    assert outcome.code == GoalCode.NONE, outcome.message
    recording = open_recording(path, ROBOT)
    assert sorted(recording.names) == MARKERS
    spots = SPOTS.points(np.zeros(9))[[MARKERS.index(name) for name in recording.names]]
    assert np.abs(recording.rest - spots / MM_PER_M).max() < 5e-4


def noise(points):
    return np.random.default_rng(1).uniform(-0.16, 0.16, points.shape) * [1.0, 1.0, 0.3]


def with_nan(points):
    points = points.copy()
    points[::50] = np.nan
    return points


UNFIT_SCANS = [
    (lambda points: points * MM_PER_M, "millimetres"),
    (noise, "noise|outliers"),
    (lambda points: points[:0], "empty"),
    (lambda points: points * 0.5, "covers"),
    (lambda points: points * 1.5, "beside"),
    (lambda points: points * [1, 1, -1], "mirrored"),
    (lambda points: points * [1, 1, 0] + [0, 0, 0.008], "does not follow"),
    (lambda points: points * [1, 1, 0], "the shape of frame 0"),
]
UNFIT_MARKERS = [
    (lambda points: points * MM_PER_M, "units of"),
    (lambda points: points + 0.05 * (np.arange(len(points)) == 7)[:, None], "m08"),
    (lambda points: points * np.nan, "no marker"),
    (lambda points: points + 0.3, "from the robot"),
]
UNFIT_NAMES = [
    (lambda names: [names[1], names[0], *names[2:]], "m01, m02.*exchanged"),
    (lambda names: [f"x{name}" for name in names], "xm01.*renamed"),
]


def flagged_in_turn(tmp_path, via, unfit, names):
    """Frame 0 and the last one are fit, each one between them unfit in a way of its own."""
    changes = [unchanged, *(lambda points, frame, change=change: change(points) for change, _ in unfit)]
    changes += [unchanged] * (len(names) + 1)
    namings = [lambda names: names] * (len(unfit) + 1) + [change for change, _ in names] + [lambda names: names]
    with QuickRobot(
        lambda points, frame: changes[max(frame, 0)](points, frame), lambda names, frame: namings[max(frame, 0)](names)
    ) as robot:
        outcome, told = collect(robot, tmp_path / "frames.zarr", len(changes), via, captures_a_frame=1)
    assert outcome.code == GoalCode.NONE, outcome.message
    expected = [said for _, said in [*unfit, *names]]
    assert list(outcome.rejections) == list(range(1, len(expected) + 1))
    for number, said in enumerate(expected, start=1):
        assert re.search(said, outcome.rejections[number]), outcome.rejections[number]
        assert any(one.note.startswith(f"frame {number} is rejected") for one in told)
    store = open_recording(tmp_path / "frames.zarr", ROBOT)
    assert list(store.captured) == [0, len(expected) + 1]
    return store


def test_unfit_scans_are_flagged_with_their_number_and_the_others_kept(tmp_path):
    store = flagged_in_turn(tmp_path, "scanner", UNFIT_SCANS, [])
    assert len(store.points(1)) == len(SURFACE.uv)  # what was captured is kept, to look at


def test_unfit_markers_are_flagged_with_their_number_and_the_others_kept(tmp_path):
    flagged_in_turn(tmp_path, "mocap", UNFIT_MARKERS, UNFIT_NAMES)


def test_an_unfit_capture_is_taken_again(tmp_path):
    tries = []

    def see(points, frame):
        tries.append(frame)
        return points[:0] if frame == 1 and tries.count(1) < 3 else points

    with QuickRobot(see) as robot:
        outcome, _ = collect(robot, tmp_path / "frames.zarr", 2, captures_a_frame=5)
    assert outcome.captured == 2 and not outcome.rejections


def test_the_holes_of_an_organised_cloud_are_left_out(tmp_path):
    with QuickRobot(lambda points, frame: with_nan(points) if frame == 1 else points) as robot:
        kept, _ = collect(robot, tmp_path / "kept.zarr", 2)
    assert kept.captured == 2
    assert np.isfinite(open_recording(tmp_path / "kept.zarr", ROBOT).points(1)).all()


def test_a_stuck_robot_is_flagged_from_the_second_frame_on(tmp_path):
    first = []

    def stuck(points, frame):
        if len(points) < 100:
            return points
        if not first:
            first.append(points)
        return first[0] + 1e-4 * np.random.default_rng().standard_normal(points.shape)

    with QuickRobot(stuck) as robot:
        outcome, _ = collect(robot, tmp_path / "frames.zarr", 3)
    assert list(outcome.rejections) == [1, 2]
    assert all("the shape of frame 0" in reason for reason in outcome.rejections.values())


def test_markers_that_were_moved_between_sessions_are_rejected(tmp_path):
    path = tmp_path / "frames.zarr"
    with QuickRobot() as robot:
        collect(robot, path, 1, "mocap")
    with QuickRobot(lambda points, frame: points + [0.0, 0.01, 0.0]) as robot:
        outcome, _ = collect(robot, path, 2, "mocap")
    assert outcome.code == GoalCode.CAPTURE_FAILED and "rested elsewhere" in outcome.message
    assert list(open_recording(path).captured) == [0]


@pytest.mark.parametrize(
    ("fails", "code", "said"),
    [
        (lambda robot: setattr(robot, "is_scanning", False), GoalCode.CAPTURE_FAILED, "No captured_cloud"),
        (lambda robot: setattr(robot, "is_driven", False), GoalCode.DRIVER_FAILED, "actuator_state"),
        (lambda robot: setattr(robot, "stop_reason", "someone pressed stop"), GoalCode.DRIVER_FAILED, "pressed stop"),
    ],
    ids=["silent scanner", "silent driver", "stop"],
)
def test_what_fails_is_named_with_its_frame_and_frames_are_kept(tmp_path, fails, code, said):
    path = tmp_path / "frames.zarr"
    with QuickRobot() as robot:
        robot.at_frame_one = fails
        outcome, _ = collect(robot, path)
        assert robot.command.values is None
    assert outcome.code == code and said in outcome.message and "rame 1" in outcome.message, outcome.message
    assert outcome.captured == 1 and "continues" in outcome.message
    with QuickRobot() as robot:
        assert collect(robot, path)[0].captured == 3


def test_a_cancel_lets_go_of_the_robot(tmp_path):
    with QuickRobot() as robot:
        outcome, _ = collect(
            robot, tmp_path / "f.zarr", 9, stop=lambda: GoalCode.CANCELLED if robot.frame == 2 else GoalCode.NONE
        )
        assert robot.command.values is None
    assert outcome.code == GoalCode.CANCELLED and 1 <= outcome.captured <= 2


class DriftingRobot(QuickRobot):
    """Its markers of the reference pose are `shifts` m beside the first ones, one capture after the other."""

    def __init__(self, shifts):
        super().__init__(lambda points, frame: points + [0.0, self.shift, 0.0])
        self.captures, self._shifts, self.shift = -1, shifts, 0.0

    def _follow(self, values):
        is_reference = np.array_equal(values, reference_actuation(ROBOT))
        self.captures += is_reference
        self.shift = self._shifts[self.captures] if is_reference else 0.0
        super()._follow(values)


def test_drift_of_the_reference_pose_is_reported_kept_and_ends_collecting(tmp_path):
    path, size = tmp_path / "frames.zarr", float(ROBOT.extent.max())
    shifts = [0.0, 0.002 * size, 0.015 * size, 0.03 * size]
    with DriftingRobot(shifts) as robot:
        outcome, told = collect(robot, path, 9, "mocap", reference_every=1)
        assert robot.command.values is None
    notes = [one.note for one in told if one.stage == "reference"]
    assert outcome.code == GoalCode.ROBOT_DRIFTED and outcome.captured == 3, outcome.message
    assert "is the limit" in outcome.message and [note.startswith("WARNING") for note in notes] == [False, False, True]
    with DriftingRobot([0.0, 0.0, 0.0]) as robot:  # it was put back: the same command goes on
        outcome, _ = collect(robot, path, 6, "mocap", reference_every=2)
    assert (outcome.code, outcome.captured) == (GoalCode.NONE, 6), outcome.message
    references = open_recording(path, ROBOT).references
    assert list(references.frames_done) == [0, 1, 2, 3, 3, 5, 6]
    assert np.nanmean(references.drift(), axis=1) == pytest.approx([*shifts, 0.0, 0.0, 0.0], abs=3e-4)
    assert np.abs(references.measured - reference_actuation(ROBOT)).max() < 1.0
    store = open_recording(path, ROBOT)
    # The reference pose, reached from rest, came before frames 3 and 5, and frame 3 before frame 4.
    pasts = store.pasts(ROBOT.rest_actuation)
    assert np.array_equal(pasts[3][-2:], pasts[5][-2:])
    assert np.array_equal(pasts[5][-2:], [ROBOT.rest_actuation, reference_actuation(ROBOT)])
    assert np.array_equal(pasts[4][-1], store.actuation[3])


def hide_most(message):
    hidden = positions_from_markers(message)
    hidden[:30] = np.nan
    return hidden


def see_a_ghost(message):
    ghostly = positions_from_markers(message)
    ghostly[20] += [0.0, 0.0, 0.3 * ROBOT.extent.max()]
    return ghostly


@pytest.mark.parametrize("spoil", [hide_most, see_a_ghost])
@pytest.mark.parametrize(("which", "times"), [(0, 1), (0, 2), (1, 1)])
def test_one_bad_look_at_the_reference_pose_ends_nothing(tmp_path, monkeypatch, spoil, which, times):
    """As a frame is: another look is taken; only if each of them is bad collecting ends, and none of them is kept."""
    path, looks = tmp_path / "frames.zarr", []
    take = marker_captures.take_markers

    def look(*arguments):
        taken = take(*arguments)
        if robot.captures == which:
            looks.append(len(looks))
            if len(looks) <= times:
                for one in taken:
                    one.cloud.position = marker_message(
                        one.cloud.name, spoil(one.cloud), "base_link", one.cloud.header.stamp, 1
                    ).position
        return taken

    monkeypatch.setattr(marker_captures, "take_markers", look)
    with DriftingRobot(np.zeros(9)) as robot:
        outcome, _ = collect(robot, path, 3, "mocap", reference_every=3)
    references = open_recording(path, ROBOT).references
    if times == SETTINGS.captures_a_frame:
        assert outcome.code == GoalCode.CAPTURE_FAILED and "reference pose" in outcome.message and not len(references)
    else:
        assert (outcome.code, outcome.captured, len(references)) == (GoalCode.NONE, 3, 2), outcome.message
        assert np.nanmax(references.drift()) < 0.01 * ROBOT.extent.max()


def test_a_cancel_on_the_way_to_the_reference_pose_lets_go_of_the_robot(tmp_path):
    with DriftingRobot(np.zeros(9)) as robot:
        stop = lambda: GoalCode.CANCELLED if robot.captures == 1 else GoalCode.NONE  # noqa: E731
        outcome, _ = collect(robot, tmp_path / "f.zarr", 9, "mocap", stop, reference_every=1)
        assert robot.command.values is None
    assert outcome.code == GoalCode.CANCELLED and "the reference pose" in outcome.message and outcome.captured == 1
    assert len(open_recording(tmp_path / "f.zarr", ROBOT).references) == 1


def test_collecting_ends_before_the_disk_is_full_and_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "f.zarr"
    with QuickRobot() as robot:
        free = lambda place: SimpleNamespace(free=2e6 if robot.frame < 1 else 0.9e6)  # noqa: E731
        monkeypatch.setattr(frame_collector.shutil, "disk_usage", free)
        outcome, _ = collect(robot, path, 9)
        assert outcome.code == GoalCode.STORE_FAILED and "2 MB left" in outcome.message  # nine scans do not fit
        assert robot.frame == 0 and not path.exists()
        outcome, _ = collect(robot, path, 2, "mocap")
        assert robot.command.values is None
        assert outcome.code == GoalCode.NONE, outcome.message
        outcome, _ = collect(robot, path, 3, "mocap")
        assert outcome.code == GoalCode.STORE_FAILED and "continues" in outcome.message and outcome.captured == 2
        monkeypatch.undo()
        assert collect(robot, path, 3, "mocap")[0].captured == 3


@pytest.mark.parametrize(
    ("changed", "said"), [({"source": "elsewhere"}, "source 'test'"), ({"via": "mocap"}, "via 'scanner'")]
)
def test_a_data_set_is_of_one_source(tmp_path, changed, said):
    with QuickRobot() as robot:
        collect(robot, tmp_path / "f.zarr", 1)
        outcome, _ = collect(robot, tmp_path / "f.zarr", 2, **changed)
    assert outcome.code == GoalCode.INVALID_GOAL and said in outcome.message


def test_nothing_is_commanded_once_collecting_is_to_end(tmp_path):
    """The wish comes while a frame is judged or stored, when nothing waits for it."""
    told = []
    goal = CollectGoal("scanner", 9, 0, tmp_path / "f.zarr", 0)
    with QuickRobot() as robot:
        stop = lambda: GoalCode.CANCELLED if any(one.stage == "storing" for one in told) else GoalCode.NONE  # noqa: E731
        outcome = FrameCollector(ROBOT, goal, SETTINGS, robot, stop, told.append).run()
        assert robot.frame == 0
    assert outcome.code == GoalCode.CANCELLED and outcome.captured == 1


class HeldLease:
    """The link's lease, without a driver."""

    def __init__(self):
        self.known = KnownLease()
        self.asked_in = []

    def note(self, state):
        return self.known.note(state.holder, state.lease)

    @property
    def is_held(self):
        return bool(self.known.held.lease)

    def acquire(self, epoch):
        self.asked_in.append(epoch)
        self.known.grant(Held(8, 3, epoch))

    def release(self, goes_on):
        return bool(self.known.drop().lease)


@pytest.mark.parametrize(
    ("states", "held", "is_stop"),
    [
        ([DriverState.FAULT, DriverState.OFFLINE], False, False),  # it has not followed yet: that is waited for
        ([DriverState.SAFE, DriverState.RUNNING, DriverState.SAFE], False, False),  # the link gave its lease up
        ([DriverState.SAFE, DriverState.RUNNING, DriverState.SAFE], True, True),
        ([DriverState.SAFE, DriverState.RUNNING, DriverState.MAKING_SAFE, DriverState.SAFE], False, False),
        ([DriverState.SAFE, DriverState.RUNNING, DriverState.MAKING_SAFE], True, True),
        ([DriverState.RUNNING, DriverState.HOLDING], False, False),
        ([DriverState.MAKING_SAFE, DriverState.FAULT], False, True),
        ([DriverState.SAFE, DriverState.FAULT], False, True),
        ([DriverState.SAFE, DriverState.FAULT, DriverState.SAFE], False, True),  # a reset does not undo it
        ([DriverState.RUNNING, DriverState.OFFLINE], True, True),
    ],
)
def test_what_counts_as_a_stop_of_the_driver(states, held, is_stop):
    link = RobotLink(ROBOT, SimpleNamespace(get_name=lambda: "collector"), frames=None)
    link._lease = HeldLease()
    link.command = HeldCommand(lambda values: None)
    if held:
        link._lease.known.grant(Held(7, 3, 5))
        link.command.hold(np.full(9, 1000.0))
    for count, state in enumerate(states):
        holder = "collector" if held and count < len(states) - 1 else ""
        link._on_driver_state(DriverState(state=state, reason="because", holder=holder, lease=7))
    assert link.stop_reason == ("because" if is_stop else None)
    assert link.command.values is None


def test_a_collection_asks_for_every_lease_in_the_epoch_in_which_it_was_asked_for():
    link = RobotLink(ROBOT, SimpleNamespace(get_name=lambda: "collector"), frames=None, epoch=5)
    link._lease = HeldLease()
    link.command = HeldCommand(lambda values: None)
    link._on_driver_state(DriverState(state=DriverState.SAFE, lease=7, epoch=5))
    assert link.hold(np.full(9, 1000.0), lambda: True)
    link.let_go()
    # Frozen between two frames it misses a stop and a reset; the driver's next word comes before its next command.
    link._on_driver_state(DriverState(state=DriverState.SAFE, lease=8, epoch=7))
    link.hold(np.full(9, 1000.0), lambda: True)
    assert link._lease.asked_in == [5, 5]


@pytest.mark.long
def test_many_unfit_frames_in_a_row_end_collecting_and_are_taken_again(tmp_path):
    path = tmp_path / "frames.zarr"
    with QuickRobot(lambda points, frame: points * 0.5 if frame >= 2 else points) as robot:
        outcome, _ = collect(robot, path, 14, captures_a_frame=1)
    assert outcome.code == GoalCode.CAPTURE_FAILED and "2 to 11" in outcome.message and "covers" in outcome.message
    assert outcome.captured == 2 and not outcome.rejections
    with QuickRobot() as robot:
        outcome, _ = collect(robot, path, 14)
    assert (outcome.code, outcome.captured, outcome.rejections) == (GoalCode.NONE, 14, {}), outcome.message


def test_a_store_that_goes_away_is_reported_and_the_robot_let_go_of(tmp_path):
    path = tmp_path / "frames.zarr"
    with QuickRobot() as robot:
        robot.at_frame_one = lambda robot: shutil.rmtree(path)
        outcome, _ = collect(robot, path)
        assert robot.command.values is None
    assert outcome.code != GoalCode.NONE and "cannot be read" in outcome.message and outcome.captured == 0


def test_a_growth_that_was_cut_short_does_not_stop_the_frames_before_it(tmp_path):
    path = tmp_path / "frames.zarr"
    with QuickRobot() as robot:
        collect(robot, path, 3, stop=lambda: GoalCode.CANCELLED if robot.frame == 2 else GoalCode.NONE)
    status = open_recording(path, ROBOT, writable=True)._array("status")
    status.resize((99,))
    with QuickRobot() as robot:
        outcome, _ = collect(robot, path, 3)
    assert (outcome.code, outcome.captured) == (GoalCode.NONE, 3), outcome.message
