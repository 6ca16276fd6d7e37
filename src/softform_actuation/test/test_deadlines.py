"""Deadlines without a clock of their own: punctual, late, and after something that took its time."""

import pytest

from softform_actuation.deadlines import Deadlines


def test_a_tick_a_period_and_none_before() -> None:
    deadlines = Deadlines(0.02, 10.0)
    assert not deadlines.is_due(9.999)
    assert [deadlines.is_due(10.0 + 0.01 * step) for step in range(6)] == [True, False] * 3
    assert deadlines.punctuality().period_mean == pytest.approx(0.02)
    assert deadlines.overruns == 0


def test_what_was_missed_is_counted_and_not_made_up_for() -> None:
    deadlines = Deadlines(0.02, 0.0)
    assert deadlines.is_due(0.0)
    assert deadlines.is_due(0.075)
    assert deadlines.overruns == 2 and deadlines.worst_lateness == pytest.approx(0.055)
    assert not deadlines.is_due(0.076)
    assert deadlines.next == pytest.approx(0.08)


def test_lateness_does_not_shift_the_deadlines_after_it() -> None:
    deadlines = Deadlines(0.02, 0.0)
    for step in range(500):
        assert deadlines.is_due(0.02 * step + 1e-9 + 0.005 * (step % 2))
    assert deadlines.next == pytest.approx(10.0)
    assert deadlines.punctuality().period_p99 == pytest.approx(0.025, abs=1e-4)
    assert deadlines.punctuality().jitter == pytest.approx(0.005, abs=1e-4)


def test_a_pause_that_was_asked_for_is_no_overrun() -> None:
    deadlines = Deadlines(0.02, 0.0)
    assert deadlines.is_due(0.0)
    deadlines.resume(3.0)
    assert deadlines.is_due(3.0) and deadlines.overruns == 0
    assert deadlines.punctuality().period_mean == 0.0
