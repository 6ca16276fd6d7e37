"""Growth is distinguished from noise; the bench measures the stack itself."""

import numpy as np
import psutil
import pytest

from softform_interfaces.msg import DriverState
from softform_system_tests.soak.resources import FLOORS, Usage, trend, trends, usage
from softform_system_tests.soak.soak import SignsOfLife

SECONDS = np.arange(0.0, 300.0, 5.0)
NOISE = 0.5 * np.random.default_rng(0).standard_normal(len(SECONDS))


@pytest.mark.parametrize(
    ("values", "grows"),
    [
        (100.0 + NOISE, False),
        (100.0 + NOISE + 0.001 * SECONDS, False),  # 0.3 MB: within the noise
        (100.0 + NOISE + 0.05 * SECONDS, True),
        (100.0 + NOISE - 0.05 * SECONDS, False),
        (np.full(len(SECONDS), 100.0), False),
        (100.0 + 0.003 * SECONDS, False),  # steady, but below the floor
        (100.0 + 4.0 * (SECONDS > 60.0), False),  # a heap that was once needed larger
        (100.0 + 4.0 * (SECONDS > 180.0), True),  # nobody knows whether it ends there
        (100.0 + 2.0 * (SECONDS // 60.0), True),  # in steps, but on and on
    ],
)
def test_growth_is_distinguished_from_noise(values, grows):
    assert trend(SECONDS, values, FLOORS["memory_mb"]).grows is grows


def test_the_slope_is_that_of_the_data():
    line = trend(SECONDS, 100.0 + NOISE + 0.05 * SECONDS, 2.0)
    assert line.slope_per_hour == pytest.approx(180.0, rel=0.05)
    assert line.noise == pytest.approx(0.5, rel=0.3)


def test_one_thread_more_every_minute_is_found_whatever_the_beginning_was_like():
    samples = [Usage(second, 80.0, int(9 + (second - 60) // 60) if second >= 60 else 2, 30) for second in SECONDS]
    found = trends({"driver": samples, "gone": samples[:2]}, after=60.0)
    assert list(found) == ["driver"]
    assert {key: line.grows for key, line in found["driver"].items()} == {
        "memory_mb": False,
        "threads": True,
        "file_descriptors": False,
    }


def test_a_stack_that_stops_ends_the_soak():
    signs = SignsOfLife()
    signs.note_driver(DriverState.SAFE, "waiting for commands")  # before the first command
    signs.begin()
    assert signs.trouble(signs.commanded_at + 1.0) == ""
    assert "no command came for 6 s" in signs.trouble(signs.commanded_at + 6.0)
    signs.commanded_at += 6.0
    assert "recorder reported nothing" in signs.trouble(signs.commanded_at)
    signs.note_driver(DriverState.SAFE, "no command came for 1 s")
    signs.note_driver(DriverState.RUNNING, "following commands")
    assert "the driver stopped: no command came" in signs.trouble(signs.recorder_health_at)


def test_usage_of_this_process():
    held = usage(psutil.Process(), 1.0)
    assert held.memory_mb > 10.0 and held.threads >= 1 and held.file_descriptors >= 3
