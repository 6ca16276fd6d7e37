"""Runs without ROS: clocks, order, gaps, connections that come and go, and a NatNet server behind all of it."""

import threading
import time

import emulated_natnet as natnet
import numpy as np
import pytest
from captured_scene import BASE, NAMES, SHEET_NAMES, seen, sheet

from softform_capture.motion_capture.attendance import FrameOrder, MarkerGaps
from softform_capture.motion_capture.capture_run import CaptureRun
from softform_capture.motion_capture.captured_frame import CapturedFrame, SourceLostError
from softform_capture.motion_capture.device_clock import DeviceClock, epoch_nanoseconds
from softform_capture.motion_capture.labelling import Labeller
from softform_capture.motion_capture.marker_plausibility import PlausibilityLimits
from softform_capture.motion_capture.natnet_source import NatNetSource
from softform_capture.motion_capture.sources import SourceThread, network_source
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_ros.capture_time import CLOCK_TOLERANCE

PATIENCE = 20.0


def capture_run(**options):
    options = {"stale_after": PATIENCE, "max_latency": 5.0, **options}
    return CaptureRun(load_robot("membrane"), 0.002, PlausibilityLimits(), **options)


def frame(number, age=0.0, spoil=lambda positions: None, start=None):
    positions = seen(number)
    spoil(positions)
    start = time.time_ns() if start is None else start
    return CapturedFrame(number, start + int(1e9 * (number / 100.0 - age)), NAMES, positions)


def wait(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_device_clock_takes_no_delay_for_time():
    random, clock = np.random.default_rng(0), DeviceClock(window=1.0)
    sent = 0.01 * np.arange(300)
    delay = 0.001 + random.exponential(0.01, len(sent))
    found = [clock.host_time(device, 50.0 + device + late) for device, late in zip(sent, delay, strict=True)]
    error = np.array(found) - 50.0 - sent
    assert (error[100:] < 0.003).all() and (error >= 0.001 - 1e-9).all()
    assert clock.host_time(0.0, 900.0) == pytest.approx(900.0), "started anew"


def test_a_packet_that_was_overtaken_keeps_its_own_time():
    clock = DeviceClock()
    for number in range(100):
        clock.host_time(0.01 * number, 50.0 + 0.01 * number)
    assert clock.host_time(0.90, 51.05) == pytest.approx(50.90)
    assert clock.host_time(1.00, 51.06) == pytest.approx(51.00)


def test_a_device_clock_that_drifts_is_followed():
    clock = DeviceClock(window=1.0)
    for device in np.arange(0.0, 100.0, 0.01):
        host = 1.001 * device
        error = clock.host_time(device, host) - host
    assert abs(error) < 0.002


def test_steady_moments_on_the_wall_clock():
    assert abs(epoch_nanoseconds(time.monotonic() - 5.0) - (time.time_ns() - 5_000_000_000)) < 50_000_000


def test_a_clock_that_is_set_back_is_followed_after_one_frame_and_late_frames_are_rejected():
    order = FrameOrder()
    assert not order.accept(100.0, 1)
    with pytest.raises(SoftformError, match="no later"):
        order.accept(99.98, 2)
    assert not order.accept(100.1, 5)
    assert order.lost == 3
    with pytest.raises(SoftformError, match="no later"):
        order.accept(40.0, 6)  # one frame may be a straggler
    assert not order.accept(100.2, 7)
    with pytest.raises(SoftformError, match="no later"):
        order.accept(40.0, 8)
    assert order.accept(40.1, 9)
    assert not order.accept(40.2, 10)
    assert (order.lost, order.clock_steps) == (4, 1)
    assert not order.accept(40.3, 2_000_000)
    assert order.lost == 4, "a system that counts anew has lost nothing"


def test_gaps_are_counted_and_the_lasting_ones_named():
    gaps = MarkerGaps(3)
    for number in range(100):
        gaps.see(np.array([True, not 10 <= number < 20, number < 50]), 0.1 * number)
    assert gaps.count == 2
    assert gaps.lasting(["a", "b", "c"], 3.0) == {"c": pytest.approx(5.0)}
    assert gaps.longest == pytest.approx(5.0)
    gaps.see(np.array([True, True, True]), 0.0)
    assert gaps.lasting(["a", "b", "c"], 0.0) == {}


def test_a_run_reports_what_somebody_should_correct():
    def hide(positions):
        positions[5] = np.nan

    def teleport(positions):
        positions[6] += 0.2

    def swap(positions):
        positions[[4, 12]] = positions[[12, 4]]

    run, start = capture_run(max_gap=0.05, max_latency=PATIENCE), time.time_ns()
    for number in range(10):
        names, believed = run.take(frame(number, 1.0, start=start))
    assert names == SHEET_NAMES and np.abs(believed - sheet(9)).max() < 1e-9
    fault, values = run.health()
    assert fault == ""
    assert (values["gaps"], values["frames_lost"], values["markers"]) == (0, 0, 9)
    assert 800.0 < float(values["latency_ms"]) < 1000.0 * PATIENCE
    for number in range(10, 20):
        run.take(frame(number, 1.0, hide, start))
    assert run.health()[0].startswith("m02 missing for up to 0 s")
    for number, spoil, fault in ((20, teleport, "m03 jumped"), (21, swap, "labels m01, m09 seem to be exchanged")):
        _, believed = run.take(frame(number, 1.0, spoil, start))
        assert np.isnan(believed).any()
        assert fault in run.health()[0]


def test_silence_is_counted_from_the_last_frame(monkeypatch):
    run, started = capture_run(stale_after=1.0), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: started + 30.0)
    run.take(frame(0))
    assert run.health()[0] == ""
    monkeypatch.setattr(time, "monotonic", lambda: started + 37.0)
    assert run.health()[0] == "no usable frame for 7 s"
    assert run.health()[1]["rate_hz"] == "0.0"
    assert run.is_silent
    run.take(frame(1))
    assert not run.is_silent


def test_frames_that_come_too_soon_are_passed_over_and_not_lost():
    run, first = capture_run(max_rate=100.0), time.time_ns()
    frames = [CapturedFrame(number, first + 2_500_000 * number, NAMES, seen(number)) for number in range(40)]
    used = [number for number, one in enumerate(frames) if run.take(one) is not None]
    assert used == list(range(0, 40, 4))
    assert (run.stream.record.frames, run.stream.order.lost, run.stream.record.rejected) == (10, 0, 0)
    set_back = [CapturedFrame(40 + number, first - 10**10 + 2_500_000 * number, NAMES, seen()) for number in range(9)]
    with pytest.raises(SoftformError, match="no later"):
        run.take(set_back[0])
    assert [run.take(one) is not None for one in set_back[1:]] == [True, False, False, False] * 2
    assert run.stream.order.clock_steps == 1


@pytest.mark.parametrize("age, complaint", [(-0.5, "ahead of this machine's clock"), (7.0, "before they come")])
def test_clocks_that_differ_are_reported(age, complaint):
    run = capture_run()
    for number in range(3):
        run.take(frame(number, age))
    assert complaint in run.health()[0] and "NTP" in run.health()[0]


def test_a_frame_from_the_future_is_rejected_and_the_next_is_used():
    run, start = capture_run(), time.time_ns()
    run.take(frame(0, 1.0, start=start))
    with pytest.raises(SoftformError, match="frame 1 lies .* in the future"):
        run.take(frame(1, -3600.0, start=start))
    assert run.take(frame(2, 1.0, start=start)) is not None
    assert (run.stream.record.rejected, run.stream.order.clock_steps) == (1, 0)
    run.take(frame(3, 0.5 - CLOCK_TOLERANCE, start=start))


@pytest.mark.parametrize("labelled", [len(NAMES), 1, 0])
def test_garbage_from_a_system_does_not_end_the_run(labelled):
    """Labelled markers, and points that the node labels, where no marker can be."""
    run = capture_run(labeller=Labeller(BASE, {}, 0.002, 0.015)) if labelled < len(NAMES) else capture_run()
    start = time.time_ns() - 10**9
    for number in range(20):
        positions = seen(number)
        if number % 2:
            positions[[0, 5]] = [[0.0, 0.0, 0.0], [1e200, 0.0, 0.0]]
        parts = NAMES[:labelled], positions[:labelled], positions[labelled:]
        names, believed = run.take(CapturedFrame(number, start + 20_000_000 * number, *parts))
        assert names == SHEET_NAMES
        assert np.flatnonzero(np.isnan(believed).any(axis=1)).tolist() == ([1] if number % 2 else [])
    assert run.stream.record.rejected == 0


def test_a_frame_that_raises_what_nobody_thought_of_is_rejected(monkeypatch):
    def fail(*arguments):
        raise ValueError("cost matrix is infeasible")

    run = capture_run()
    with monkeypatch.context() as patched:
        patched.setattr(run.stream, "take", fail)
        with pytest.raises(SoftformError, match="Frame 0 cannot be used: ValueError: cost matrix is infeasible"):
            run.take(frame(0, 1.0))
    assert run.health()[1]["last_rejection"] == "ValueError: cost matrix is infeasible"
    assert run.reject(KeyError("x")) == "KeyError: 'x'"
    assert run.reject(SoftformError("No stamp.", "Stamp it.")) == "No stamp. Stamp it."
    assert run.stream.record.rejected == 3
    assert run.take(frame(1, 1.0)) is not None


def test_missing_markers_are_reported_before_unknown_ones_and_few_of_these():
    run, start = capture_run(max_gap=0.05), time.time_ns()
    run.take(frame(0, 1.0, start=start))
    for number in range(1, 20):
        one = frame(number, 1.0, start=start)
        reflections = [f"r{20 * number + k}" for k in range(20)]
        names = [*NAMES[:5], "renamed", *NAMES[6:], *reflections]
        positions = np.vstack([one.positions, one.positions[4] + np.arange(1, 21)[:, None]])
        run.take(CapturedFrame(number, one.captured_at, names, positions))
    fault = run.health()[0]
    assert fault.startswith("m02 missing for up to 0 s: occluded, or fallen off?; unknown markers r380, ")
    assert "and 95 more: were they renamed?" in fault
    assert len(fault) < 250


def test_a_base_that_was_moved_is_reported_as_long_as_it_is():
    def knock(positions):
        positions[0] += 0.02

    run, start = capture_run(), time.time_ns() - 2 * 10**9
    run.take(frame(0, start=start))
    run.take(frame(1, 0.0, knock, start))
    assert run.health()[0].startswith("the last good alignment is used: The base markers are")
    with pytest.raises(SoftformError, match="were moved"):
        run.take(frame(103, 0.0, knock, start))
    assert run.health()[0].startswith("The base markers are")


def test_expected_markers_are_there_from_the_start():
    run = capture_run(markers=[*SHEET_NAMES, "m10"], renames={"tip": "m10"})
    part = frame(0, 1.0)
    names, believed = run.take(CapturedFrame(0, part.captured_at, NAMES[:6], part.positions[:6]))
    assert names == [*SHEET_NAMES, "m10"] and np.isfinite(believed).all(axis=1).sum() == 2
    full = CapturedFrame(1, part.captured_at + 10_000_000, [*NAMES, "tip"], np.vstack([seen(1), seen(1)[4:5] + 0.01]))
    assert np.isfinite(run.take(full)[1]).all()


class Flaky:
    """A source that fails in every way: it does not open, says nothing, is lost, raises what it should not."""

    def __init__(self):
        self.malformed, self.opened, self.closed = 0, 0, 0
        self.on_open = lambda: None

    def open(self):
        self.on_open()
        self.opened += 1
        if self.opened == 1:
            raise SoftformError("It is switched off.")

    def receive(self, timeout):
        if self.opened == 2:
            raise SourceLostError("The cable is out.")
        if self.opened == 3:
            raise ZeroDivisionError("a client's own mistake")
        if self.opened == 4:
            time.sleep(timeout)
            return None
        time.sleep(0.001)
        return frame(self.opened)

    def close(self):
        self.closed += 1


def test_a_connection_is_made_again_whatever_ended_it():
    frames, failures, told, source = [], [], [], Flaky()
    thread = SourceThread(source, frames.append, 0.3, told.append)
    source.on_open = lambda: failures.append(thread.record.failure)
    thread.start()
    wait(lambda: frames)
    thread.stop()
    assert (
        told
        == failures[-4:]
        == [
            "It is switched off.",
            "The cable is out.",
            "a client's own mistake",
            "No frame for 0.3 s. Is the system streaming?",
        ]
    )
    assert (thread.record.opened, thread.record.lost, thread.record.connected) == (4, 3, False)
    assert source.closed == source.opened
    assert not any(one.name == "motion capture" for one in threading.enumerate())


def test_a_natnet_server_that_restarts_is_followed_and_labels_hold():
    run = capture_run()
    given = []
    server = natnet.NatNetServer()
    source = NatNetSource("127.0.0.1", "127.0.0.1", server.port, patience=0.5)
    thread = SourceThread(source, lambda one: given.append(run.take(one)), silence=0.4)
    thread.start()
    try:
        wait(lambda: len(given) > 20)
        port = server.port
        server.stop()
        wait(lambda: thread.record.lost == 1)
        before = len(given)
        server = natnet.NatNetServer(port=port)
        wait(lambda: len(given) > before + 20)
    finally:
        thread.stop()
        server.stop()
    names, believed = given[-1]
    assert names == SHEET_NAMES and np.isfinite(believed).all()
    assert np.abs(np.delete(believed - sheet(), 4, axis=0)).max() < 1e-5
    assert run.stream.record.residual < 1e-5
    assert run.stream.record.jumps == 0


def test_a_network_system_needs_a_server():
    for system in ("vicon", "natnet", "qualisys"):
        with pytest.raises(SoftformError, match="Set `server`"):
            network_source({"system": system, "server": "", "port": 0})
    source = network_source({"system": "qualisys", "server": "127.0.0.1", "port": 0})
    assert source._port == 22223
    assert len(BASE) == 4
