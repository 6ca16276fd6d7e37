"""Fifteen hundred schedules of driver, lease, guardian, commanders and operator in virtual time break no promise."""

from softform_system_tests.schedules.explore import explore

SCHEDULES = range(20_000, 21_500)
"""`softform bench schedules` runs as many others as one likes."""


def test_many_schedules_keep_every_promise():
    figures = explore(SCHEDULES, 2)
    assert figures["schedules"] == len(SCHEDULES) and figures["violations"] == 0, figures["shortest_failure"]
    assert figures["states"] > 300
