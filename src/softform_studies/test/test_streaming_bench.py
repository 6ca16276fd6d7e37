"""The streaming bench without a stack: the path of its target, and the figures made of what was recorded."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from softform_core.errors import SoftformError
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.robots import load_robot
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ServoState
from softform_ros.conversions import points_from_cloud, stamp_from_nanoseconds
from softform_studies.streaming.bench_streaming import StreamingRecord, punctuality, surface_error_mm
from softform_studies.streaming.streamed_path import StreamedPath, actuation_path

MS = 1_000_000
START = 1_700_000_000 * 10**9


def test_the_path_is_closed_within_the_range_and_slower_than_the_robot():
    robot = load_robot("membrane")
    path = actuation_path(robot, 600, seed=0)
    assert (path > robot.actuation_min).all() and (path < robot.actuation_max).all()
    steps = np.abs(np.diff(np.vstack([path, path[:1]]), axis=0)).max()
    assert (0.2 * robot.actuation_slew < steps * 50.0).all() and (steps * 50.0 < robot.actuation_slew).all()
    assert (actuation_path(robot, 600, seed=0) == path).all() and (actuation_path(robot, 600, seed=1) != path).any()


def test_the_messages_hold_the_predicted_shapes():
    robot = load_robot("membrane")
    pipeline, path = load_pipeline(robot), actuation_path(robot, 5, seed=0)
    streamed = StreamedPath(pipeline, path, len(pipeline.uv), "base_link")
    stamp = stamp_from_nanoseconds(START)
    message = streamed.message(7, stamp)
    assert message.header.stamp == stamp and message.header.frame_id == "base_link" and len(streamed) == 5
    assert points_from_cloud(message) == pytest.approx(pipeline.points(path[2]) / MM_PER_M, abs=1e-7)
    assert streamed.message(0, Time()).header.stamp == Time()


def record_of(latency_ms, missed=0, unanswered=()):
    record = StreamingRecord()
    for place in range(100):
        stamp = START + place * 20 * MS
        record.sent.append((stamp, place))
        if place not in unanswered:
            answer = stamp + latency_ms(place) * MS
            for again in (0, 15 * MS):
                state = ServoState(state=ServoState.TRACKING, mean_error=2e-5)
                state.header.stamp, state.target = map(stamp_from_nanoseconds, (answer + again, stamp))
                state.commands, state.deadlines_missed = 10 + 2 * place, 1 + missed * place
                record.states.append(state)
    return record


def test_latency_counts_from_the_publishers_stamp_to_the_first_answer():
    figures = punctuality(record_of(lambda place: 30 if place == 50 else 10), START)
    assert figures["target_to_command_ms"] == {"p50": 10.0, "p99": pytest.approx(10.2), "max": 30.0}
    assert figures["targets"] == 100 and figures["targets_answered"] == 1.0 and figures["tracking_share"] == 1.0
    assert figures["deadline_met"] == 1.0 and figures["predicted_error_mm"] == 0.02


def test_missed_deadlines_and_unanswered_targets_are_reported():
    figures = punctuality(record_of(lambda place: 10, missed=1, unanswered={3, 4}), START)
    assert figures["deadline_met"] == 0.5 and figures["targets_answered"] == 0.98


def test_what_was_before_does_not_count():
    figures = punctuality(record_of(lambda place: 90 if place < 50 else 10), START + 50 * 20 * MS)
    assert figures["target_to_command_ms"]["max"] == 10.0 and figures["targets"] == 50


def test_a_servo_that_says_nothing_is_an_error():
    with pytest.raises(SoftformError, match="reported no commands"):
        punctuality(StreamingRecord(), START)


def test_the_measured_error_is_the_distance_to_the_surface():
    line = np.linspace(-0.1, 0.1, 80)
    flat = np.stack([*np.meshgrid(line, line), np.zeros((80, 80))], axis=-1).reshape(-1, 3)
    inside = flat[np.abs(flat[:, :2]).max(axis=1) < 0.09]
    assert surface_error_mm(inside + [0.0007, 0.0003, 0.002], flat) == pytest.approx(2.0, abs=1e-6)
