"""Whatever the cameras do wrong for a while: what is published is where the marker is, or missing."""

import time

import numpy as np
from captured_scene import BASE, NAMES, ROTATION, SHEET_NAMES, seen, sheet
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from softform_capture.motion_capture.capture_run import CaptureRun
from softform_capture.motion_capture.captured_frame import CapturedFrame
from softform_capture.motion_capture.marker_plausibility import PlausibilityLimits
from softform_core.robots import load_robot

OFF_THE_SHEET = ROTATION.inv().apply([0.0, 0.0, 1.0])
# so that none arrives at the place of another; neighbours to different sides, as together they would be a bulge
MARKER = st.integers(0, len(NAMES) - 1)
FAULT = st.one_of(
    st.tuples(st.just("occlude"), MARKER, MARKER),
    st.tuples(st.just("swap"), MARKER, MARKER),
    st.tuples(st.just("teleport"), MARKER, st.sampled_from([0.05, 0.08, 0.5])),
    st.tuples(st.just("ghost at"), MARKER, MARKER),
)
SPAN = st.tuples(st.integers(5, 18), st.integers(1, 10), FAULT)  # from which frame, for how many


def spoil(positions, fault):
    kind, marker, other = fault
    if kind == "occlude":
        positions[[marker, other]] = np.nan
    elif kind == "swap":
        positions[[marker, other]] = positions[[other, marker]]
    elif kind == "teleport":
        positions[marker] += other * (-1) ** marker * OFF_THE_SHEET
    else:
        positions[marker] = positions[other]


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SPAN, max_size=4))
@example([(5, 1, ("occlude", 5, 8)), (5, 1, ("teleport", 4, 0.05)), (5, 1, ("teleport", 6, 0.05))])
@example([(5, 1, ("occlude", 0, 0)), (5, 1, ("teleport", 1, 0.05))])
@example([(5, 1, ("occlude", 0, 0)), (5, 2, ("occlude", 2, 2)), (5, 3, ("swap", 1, 3))])
def test_nothing_false_is_published(spans):
    run = CaptureRun(load_robot("membrane"), 0.002, PlausibilityLimits(), max_rate=1000.0)
    start = time.time_ns() - 10**9
    for number in range(25):
        positions = seen(number)
        for first, count, fault in spans:
            if first <= number < first + count:
                spoil(positions, fault)
        names, given_places = run.take(CapturedFrame(number, start + 10_000_000 * number, NAMES, positions))
        assert names == SHEET_NAMES
        shown = np.isfinite(given_places).all(axis=1)
        assert np.abs(given_places - sheet(number))[shown].max(initial=0.0) < 0.01
        untouched = [i for i, p in enumerate(positions[len(BASE) :]) if np.array_equal(p, seen(number)[len(BASE) + i])]
        if not any(first <= number for first, _, _ in spans):
            assert shown[untouched].all()
